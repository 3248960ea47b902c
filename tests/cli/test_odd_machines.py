"""Machines that lack something: a home folder, a wide terminal, Unicode, the device that was asked for."""

import io
import os
import pwd
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from run_command import run_command

from jaxarc.cli.main import main
from jaxarc.datasets import load_tasks
from jaxarc.datasets.installed import data_folder
from jaxarc.errors import UsageError
from jaxarc.files import CacheFolderError, compiled_folder, user_cache, user_path
from jaxarc.native.library import cache_folder
from jaxarc.runs.folder import make_new_folder
from jaxarc.traces.cache import default_folder

FOLDERS = (data_folder, default_folder, cache_folder, compiled_folder, lambda: user_cache("compiled"))
TASK = '{"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[1]], "output": [[2]]}]}'


@pytest.fixture
def no_home(monkeypatch, tmp_path):
    """A user without HOME and without an entry in passwd, as containers run them."""

    def unknown(user):
        raise KeyError(f"getpwuid(): uid not found: {user}")

    for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "JAXARC_CACHE", "JAXARC_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path / "tmp" / f"jaxarc-{os.geteuid()}"


@pytest.fixture
def home(monkeypatch, tmp_path):
    folder = tmp_path / "my höme"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "JAXARC_CACHE", "JAXARC_DATA"):
        monkeypatch.delenv(name, raising=False)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    yield folder
    assert list(work.iterdir()) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_without_a_home_folders_are_private_and_temporary(no_home, folder):
    assert folder().is_relative_to(no_home)
    assert no_home.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_temporary_folder_of_others_is_not_used(no_home, folder):
    no_home.mkdir()
    no_home.chmod(0o777)
    with pytest.raises(CacheFolderError):
        folder()


def test_without_a_home_commands_run_and_its_sign_is_one_line(no_home, tmp_path):
    assert run_command("tasks", "list").exit_code == 0
    assert run_command("tasks", "show", "007bbfb7").exit_code == 0
    result = run_command("tasks", "stats", "~/tasks")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert "HOME" in result.stderr
    assert not (tmp_path / "~").exists()


def test_the_sign_of_the_home_folder_is_read_wherever_a_path_is(home, monkeypatch):
    assert make_new_folder(Path("~/runs"), "one") == home / "runs" / "one"
    (home / "tasks").mkdir()
    (home / "tasks" / "a.json").write_text(TASK)
    for name in ("~/tasks", "~/tasks:first 1", Path("~/tasks/a.json")):
        assert load_tasks(name).task_ids == ("a",)
    assert run_command("tasks", "show", "a", "--dataset", "~/tasks", "--output=~/a.svg").exit_code == 0
    assert (home / "a.svg").is_file()
    for variable, folder in (
        ("JAXARC_DATA", data_folder),
        ("JAXARC_CACHE", default_folder),
        ("JAXARC_CACHE", cache_folder),
    ):
        monkeypatch.setenv(variable, "~/mine")
        assert folder().is_relative_to(home / "mine")
    with pytest.raises(UsageError, match="~nobody-of-this-name"):
        user_path("~nobody-of-this-name/x")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
@pytest.mark.parametrize(
    "arguments", [("tasks", "show", "007bbfb7"), ("tasks", "stats", "no-such-sét-日本\udcff"), ("--help",)]
)
def test_letters_that_the_encoding_lacks_end_no_command(monkeypatch, encoding, errors, arguments):
    streams = [io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors=errors) for _ in range(2)]
    monkeypatch.setattr(sys, "stdout", streams[0])
    monkeypatch.setattr(sys, "stderr", streams[1])
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    for stream in streams:
        stream.flush()
    assert ended.value.code == (2 if "stats" in arguments else 0)
    assert sum(len(stream.buffer.getvalue()) for stream in streams) > 50


@pytest.mark.parametrize("columns", [0, 1, 7])
def test_a_terminal_of_no_width_gets_the_words_all_the_same(columns):
    for arguments in (("tasks", "list"), ("--help",), ("tasks", "stats", "--help")):
        result = run_command(*arguments, columns=columns)
        assert result.exit_code == 0
        assert "arc-agi-1/training" in result.stdout or "Usage" in result.stdout


def test_a_device_that_is_not_here_is_one_line():
    command = [sys.executable, "-m", "jaxarc", "rollout", "arc-agi-1/training:first=1"]
    told = subprocess.run(
        command, env={**os.environ, "JAX_PLATFORMS": "bogus"}, capture_output=True, text=True, check=False
    )
    assert (told.returncode, told.stdout, told.stderr.count("\n")) == (1, "", 1)
    assert "bogus" in told.stderr
    assert "JAX_PLATFORMS" in told.stderr
