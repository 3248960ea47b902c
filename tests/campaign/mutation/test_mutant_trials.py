"""Tests run in forks see the files as they are at that moment, and what becomes of them is told apart."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from campaign.mutation.known_mutants import known_mutants
from campaign.mutation.mutant_targets import TARGETS

ROOT = Path(__file__).parents[3]
TESTS = {
    "passes": "assert color() == 3",
    "fails": "assert color() == 4",
    "hangs": "while True: pass",
    "dies": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
}


@pytest.fixture(scope="module")
def ask(tmp_path_factory):
    """Send a request to the process that runs tests, in a small tree of its own."""
    tree = tmp_path_factory.mktemp("tree")
    (tree / "tests").mkdir()
    (tree / "tests/conftest.py").touch()
    (tree / "pyproject.toml").write_text("[tool.pytest.ini_options]\npythonpath = ['.']\n")
    for name, body in TESTS.items():
        text = f"from painted import color\n\ndef test_it():\n    {body}\n"
        (tree / f"tests/test_{name}.py").write_text(text)
    process = subprocess.Popen(
        [sys.executable, "-m", "campaign.mutation.mutant_trials"],
        cwd=tree,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def answer(test, painted="def color():\n    return 3\n"):
        (tree / "painted.py").write_text(painted)
        request = {"tests": [f"tests/test_{test}.py"], "seconds": 1, "keeps_compiled": False}
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        told = json.loads(process.stdout.readline())
        return told["outcome"], told["by"]

    yield answer
    process.kill()
    process.communicate()


def test_outcomes_are_distinguished(ask):
    assert ask("passes") == ("passed", "")
    assert ask("fails") == ("failed", "tests/test_fails.py::test_it")
    assert ask("dies") == ("failed", "the process ended with SIGSEGV")
    assert ask("hangs") == ("timeout", "the time was over")
    assert ask("of_which_there_is_none")[0] == "broken"


def test_each_run_sees_the_files_as_they_are(ask):
    broken = "def color():\n    return 3 +\n"
    assert ask("passes") == ("passed", "")
    assert ask("passes", "def color():\n    return 5\n") == ("failed", "tests/test_passes.py::test_it")
    assert ask("passes", broken) == ("failed", "import of tests/test_passes.py")
    assert ask("passes") == ("passed", "")


def test_files_and_tests_of_the_campaign_are_there():
    for file, tests in TARGETS.items():
        assert (ROOT / "src/jaxarc" / file).is_file()
        for name in tests:
            assert not name.startswith("tests/") or (ROOT / name.split("::")[0]).is_file(), name


def test_explained_mutants_are_of_lines_that_are_still_there():
    known = known_mutants()
    assert len({(mutant.file, mutant.was, mutant.becomes) for mutant in known}) == len(known)
    for mutant in known:
        assert mutant.reason
        lines = (ROOT / "src/jaxarc" / mutant.file).read_text(encoding="utf-8").splitlines()
        assert mutant.was in [" ".join(line.split()) for line in lines], mutant
