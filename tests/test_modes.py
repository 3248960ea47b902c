"""A short episode has the same bits in every mode of JAX, and the sessions of noxfile.py name tests that exist."""

import ast
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import short_episode
from process_group import run_python
from slow_list import list_anew

from jaxarc.primitives import OLDEST_JAX

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


# A step by one call of the library, for which tasks are stored as they are, and one by XLA.
EXECUTORS = (
    {"executor": "native", "start_grid": "input", "symmetries": "none", "recolor": "none", "shuffle_demos": False},
    {"executor": "xla"},
)


@pytest.mark.parametrize("interface", ["partial_eval.dce_rules", "mlir.lower_fun"])
def test_an_episode_has_the_same_bits_where_jax_lacks_an_interface_that_it_does_not_promise(interface):
    code = f"""
        import conftest, equinox  # which asks for the same interfaces, when it is imported
        from jax.interpreters import mlir, partial_eval
        del {interface}
        import short_episode
        from jaxarc import primitives
        print(primitives._bind_batched is None, primitives._bind_call is None)
        print(*(short_episode.play(**rules) for rules in {EXECUTORS}), sep="\\n")
    """
    is_gone = interface != "partial_eval.dce_rules"  # the rule of a primitive
    expected = [short_episode.play(**rules) for rules in EXECUTORS]
    assert run_python(textwrap.dedent(code)).splitlines() == [f"{is_gone} {is_gone}", *expected]


def test_an_older_jax_is_refused_with_the_fix():
    older = "import sys, jax; jax.__version_info__ = (0, 8, 2); jax.__version__ = '0.8.2'; "
    lowest = ".".join(map(str, OLDEST_JAX))
    for code in ("import jaxarc; jaxarc.make", "from jaxarc.__main__ import main; sys.argv = ['', 'info']; main()"):
        done = subprocess.run([sys.executable, "-c", older + code], capture_output=True, text=True, check=False)
        *before, last = done.stderr.splitlines()
        assert done.returncode == 1
        assert {lowest, "0.8.2:", "pip", "install", "jax"} <= set(last.split())
        assert ("main()" in code) == (before == [])  # the command has no traceback
    assert f'"jax>={lowest}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


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
        file, _, case = line.removesuffix(" nightly").partition("::")
        test = case.partition("[")[0]  # "test_example_runs[surrogate.py]" is a case of test_example_runs
        path = ROOT / "tests" / file
        if not path.exists() or (test and f"def {test}(" not in path.read_text(encoding="utf-8")):
            gone.append(line)
    assert gone == []


def test_slow_tests_are_named_by_file_where_most_of_it_is_slow_and_what_is_nightly_stays():
    named = {"a.py::test_many": "nightly", "a.py::test_many[1]": "", "b.py": "", "c.py::test_old": ""}
    seconds = {
        "a.py::test_many[1]": 5.0,
        "a.py::Test::test_of_a_class[x]": 2.0,
        **{f"a.py::test_quick[{case}]": 0.0 for case in range(9)},
        "c.py::test_old": 0.1,
        "c.py::test_slow": 3.0,
        "c.py::test_slower": 9.0,
    }
    assert list_anew(named, seconds, 1.0) == [
        "a.py::test_many nightly",
        "a.py::test_many[1]",
        "a.py::test_of_a_class",
        "b.py",  # which did not run
        "c.py",
    ]
