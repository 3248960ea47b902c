"""A short episode has the same bits in every mode of JAX, and the sessions of noxfile.py name tests that exist."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import short_episode

ROOT = Path(__file__).parents[1]


def test_an_episode_has_the_same_bits_in_wide_and_checked_modes():
    """Without compilation too, says test_contract.py."""
    variables = dict.fromkeys(["JAX_ENABLE_X64", "JAX_DEBUG_NANS", "JAX_DEBUG_KEY_REUSE"], "1")
    done = subprocess.run(
        [sys.executable, "-m", "short_episode", *variables], cwd=ROOT / "tests",
        env={**os.environ, **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == short_episode.play()


def test_an_episode_has_the_same_bits_without_the_undocumented_rules_of_jax():
    code = (
        "from jax.interpreters import partial_eval; del partial_eval.dce_rules; "
        "import conftest, short_episode; print(short_episode.play())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT / "tests", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == short_episode.play()


def test_every_test_that_a_session_names_exists():
    tree = ast.parse((ROOT / "noxfile.py").read_text(encoding="utf-8"))
    words = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    paths = [word for word in words if word.startswith("tests/")]
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_every_slow_test_that_is_named_exists():
    lines = (ROOT / "tests" / "slow_tests.txt").read_text(encoding="utf-8").splitlines()
    gone = []
    for line in filter(lambda line: line and not line.startswith("#"), lines):
        name, _, when = line.partition(" ")
        assert when in {"", "nightly"}
        file, _, case = name.partition("::")
        test = case.partition("[")[0]  # "test_example_runs[surrogate.py]" is a case of test_example_runs
        path = ROOT / "tests" / file
        if not path.exists() or (test and f"def {test}(" not in path.read_text(encoding="utf-8")):
            gone.append(line)
    assert gone == []
