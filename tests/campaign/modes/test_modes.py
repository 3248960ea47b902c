"""A short episode is the same in every mode, and the program that runs all tests in every mode tells what became."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from campaign.modes import interpreters, modes, short_episode

SUITE = """
import os, pytest

def test_runs_in_the_mode():
    assert os.environ["JAX_DEBUG_NANS"] == "1"

def test_fails():
    raise ValueError("two and two")

@pytest.mark.skip(reason="not today")
def test_is_skipped():
    pass
"""


def test_an_episode_has_the_same_bits_in_wide_and_checked_modes():
    """Without compilation too, says test_contract.py."""
    variables = {key: value for name in ("x64", "nans", "keys") for key, value in modes.MODES[name].variables.items()}
    told = subprocess.run(
        [sys.executable, "-m", "campaign.modes.short_episode", *variables], cwd=interpreters.ROOT / "tests",
        env={**os.environ, **variables}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert told.stdout.strip() == short_episode.play()


def test_a_mode_tells_what_passed_failed_and_was_skipped(tmp_path):
    tests = tmp_path / "test_small.py"
    tests.write_text(SUITE, encoding="utf-8")
    outcome = modes.run_mode("nans", tmp_path, [str(tests)], workers=0)
    assert (outcome.passed, outcome.failed, outcome.skipped) == (1, 1, 1)
    assert outcome.findings == ["test_fails: ValueError: two and two"]
    assert outcome.versions.startswith("{}.{}.".format(*sys.version_info))


def test_a_mode_whose_tests_could_not_start_is_a_finding(tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 4, "3.12.0 0.10.2"))
    (finding,) = modes.run_mode("nans", tmp_path).findings
    assert finding == f"pytest ended with 4; see {tmp_path / 'nans.log'}"


def test_a_mode_whose_python_is_missing_is_a_finding(tmp_path, monkeypatch):
    monkeypatch.setitem(modes.MODES, "new", modes.Mode("not released yet", python="3.99"))
    assert modes.main(["new", "--folder", str(tmp_path), "--json", str(tmp_path / "told.json")]) == 1
    assert "no python3.99 is on the path; install it, or name it: PYTHON399=" in (tmp_path / "told.json").read_text()


def test_an_unknown_mode_is_refused_and_the_known_ones_are_named(capsys):
    with pytest.raises(SystemExit):
        modes.main(["x65"])
    assert "there is no mode 'x65'; known: x64, nans, keys" in capsys.readouterr().err


def test_every_test_that_a_mode_runs_exists():
    named = {path for mode in modes.MODES.values() for path in mode.tests}
    assert [path for path in sorted(named) if not (interpreters.ROOT / path).exists()] == []


class TestFindPython:
    def program(self, folder: Path, prints: str) -> str:
        file = folder / "python3.99"
        file.write_text(f"#!/bin/sh\n{prints}\n", encoding="utf-8")
        file.chmod(0o755)
        return str(file)

    def test_a_variable_goes_before_the_path(self, tmp_path):
        named, on_path = tmp_path / "named", tmp_path / "path"
        named.mkdir()
        on_path.mkdir()
        first, second = (self.program(folder, "echo 3.99") for folder in (named, on_path))
        path = {"PATH": str(on_path)}
        assert str(interpreters.find_python("3.99", {"PYTHON399": first, **path})) == first
        assert str(interpreters.find_python("3.99", path)) == second

    @pytest.mark.parametrize(
        ("prints", "what"), [("echo 3.98", "is Python 3.98, and Python 3.99 was asked"), ("exit 1", "does not start")]
    )
    def test_what_is_not_that_python_is_refused(self, tmp_path, prints, what):
        file = self.program(tmp_path, prints)
        with pytest.raises(interpreters.MissingInterpreterError, match=f"{file} {what}.*; install it, or name it"):
            interpreters.find_python("3.99", {"PATH": str(tmp_path)})

    def test_a_named_file_that_is_not_there_is_refused(self, tmp_path):
        with pytest.raises(interpreters.MissingInterpreterError, match="does not start: No such file or directory"):
            interpreters.find_python("3.99", {"PYTHON399": str(tmp_path / "gone"), "PATH": ""})

    def test_this_python_is_found_without_a_path(self):
        assert interpreters.find_python("{}.{}".format(*sys.version_info), {"PATH": ""}) == Path(sys.executable)
