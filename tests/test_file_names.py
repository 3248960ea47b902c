"""No name from a file is a path: every writer names its files by one function."""

import datetime
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_command import run_command
from small_tasks import TASK

from jaxarc.config import ConfigValidationError
from jaxarc.config.agent_training import LoggingConfig
from jaxarc.datasets import load_tasks, read_json
from jaxarc.datasets.installed import check_set_name
from jaxarc.files import file_name, file_names
from jaxarc.play.episode import new_episode_file
from jaxarc.traces.units import PairId

PATHS = ("../../up", "/abs", "a/b", "..", ".", "C:\\up", "C:up", "a\\b", "~", "~root/x")
NAMES = (
    *("", ".hidden", "CON", "nul.txt", "com1", "AUX ", "x.", "x ", "-", "a*"),
    *("a\nb", "a\x00", "\x1b[2J", "\u202eb", "e\u0301"),
)
LONG = "x" * 200
WRONG = (*PATHS, *NAMES, LONG)


@pytest.mark.parametrize(
    "text", ["007bbfb7", "a-b", "Center1", "a b", "x_solutions", "train", "日本", "task.v2", "con1"]
)
def test_a_file_name_stays_as_it_is(text):
    assert file_name(text) == text


@pytest.mark.parametrize("text", WRONG)
def test_what_is_no_file_name_gets_one(text):
    name = file_name(text)
    assert name != text
    assert file_name(name) == name


@given(st.lists(st.text(max_size=12) | st.sampled_from([*WRONG, "a-b", "A-B", "a", "A", "\ud800", file_name("a/b")])))
def test_names_are_never_paths_and_never_equal(tmp_path_factory, texts):
    folder = tmp_path_factory.getbasetemp()
    names = file_names(texts)
    assert list(names) == list(dict.fromkeys(texts))
    assert len({name.casefold() for name in names.values()}) == len(names)
    for name in names.values():
        assert Path(name).name == name
        assert not name.startswith(".")
        assert (folder / f"{name}.json").parent == folder
        assert len(name.encode()) <= 150


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def set_with(tmp_path):
    """A file of tasks with these ids, two folders down."""

    def write(*task_ids: str) -> Path:
        file = tmp_path / "deep" / "er" / "tasks.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(dict.fromkeys(task_ids, TASK)))
        return file

    return write


def test_an_export_reads_back_whole(set_with, tmp_path):
    ids = ["a/b", "a-b", "A-B", ".hidden", "../../up", "/abs", "CON", LONG, "x_solutions", "x_challenges", "metadata"]
    tasks = load_tasks(set_with(*ids))
    out = tmp_path / "deep" / "out"
    before = files_below(tmp_path)
    result = run_command("tasks", "export", tmp_path / "deep" / "er" / "tasks.json", out)
    assert result.exit_code == 0
    assert result.stderr.count("\n") == 1
    assert "'a/b'" in result.stderr
    assert all(name.startswith("deep/out/") for name in files_below(tmp_path) - before)
    assert sorted(read_json(out).task_ids) == sorted(tasks.task_ids)
    assert "warning" not in run_command("tasks", "export", "007bbfb7", tmp_path / "plain").stderr


@pytest.mark.parametrize("text", [*WRONG, "日" * 60])
def test_other_writers_take_no_path_either(tmp_path, text):
    file = new_episode_file(tmp_path, PairId(text, "test", 0), datetime.datetime(2026, 1, 2))
    assert file.parent == tmp_path
    file.write_text("")
    with pytest.raises(ConfigValidationError, match="run_name"):
        LoggingConfig(run_name=text if text != "日" * 60 else "日/本")
    if text != "a/b":  # a set may be in a group
        with pytest.raises(ValueError, match="name"):
            check_set_name(text)
