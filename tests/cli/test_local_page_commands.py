"""What ``jaxarc play`` and ``jaxarc watch`` refuse before anything is served."""

import importlib.util
import json

import pytest
from run_command import run_command
from small_tasks import TASK

from jaxarc.datasets.catalogue import find_task


@pytest.fixture
def data(tmp_path):
    (tmp_path / "data").mkdir()
    for name in ("one", "two"):
        (tmp_path / "data" / f"{name}.json").write_text(json.dumps(TASK))
    return tmp_path / "data"


def refused(*arguments):
    result = run_command(*arguments, "--no-open", columns=300)
    assert result.exit_code == 2, result.output
    return result.stderr


def test_a_task_is_found_by_dataset_by_path_and_by_id(data, monkeypatch):
    assert find_task("arc-agi-1/training")[1:] == ("arc-agi-1/training", "007bbfb7")
    assert find_task("arc-agi-1/training/d037b0a7")[1:] == ("arc-agi-1/training", "d037b0a7")
    assert find_task("00576224")[1:] == ("arc-agi-1/evaluation", "00576224")
    assert find_task(f"{data}/two")[1:] == (str(data), "two")
    monkeypatch.chdir(data.parent)
    assert find_task("data")[1:] == (str(data), "one")  # a name that lasts


@pytest.mark.parametrize(
    ("word", "words"),
    [
        ("no-such-task", "no task of the 4 data sets here, is called 'no-such-task'"),
        ("arc-agi-1/training/d037b0a8", "did you mean 'd037b0a7'"),
        ("no-such-set/d037b0a7", "no dataset, file or folder 'no-such-set'"),
    ],
)
def test_a_task_that_is_not_there_is_one_line(word, words):
    assert words in refused("play", word)


def test_wrong_options_are_reported():
    assert "train/9" in refused("play", "--pair", "train/9")
    assert "'https://hub.example/user'" in refused("play", "--allow-host", "https://hub.example/user")
    assert "'boxes'" in refused("play", "--format", "boxes")


def test_a_folder_that_is_no_run_is_reported(tmp_path):
    assert "there is no config.json in" in refused("watch", tmp_path)


@pytest.mark.parametrize("command", [("play",), ("watch", "run")])
def test_without_the_libraries_the_extra_is_named(monkeypatch, command):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else find(name))
    assert "uvicorn, not installed here: pip install 'jaxarc-rl[play]'" in refused(*command)
