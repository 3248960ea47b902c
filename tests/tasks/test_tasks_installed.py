"""Task sets in the data folder: what is installed is read back, what is damaged is named."""

import json
import random
import re

import numpy as np
import pytest

from jaxarc.datasets.installed import (
    NotInstalledError,
    check_set_name,
    data_folder,
    install,
    installed_names,
    installed_path,
    read_installed,
)
from jaxarc.datasets.task_set import TaskSet
from jaxarc.tasks.raw_task import RawTask, TaskFormatError


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXARC_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


def small_set() -> TaskSet:
    pair = ([[1, 2]], [[0], [9]])
    tasks = [RawTask("b", (pair, pair), (pair,), "Größe", "Copy"), RawTask("a", (pair,), (([[3]], [[4]]),))]
    return TaskSet("mine", tuple(tasks))


def test_what_is_installed_is_read_back():
    install(small_set(), "lab/mine")
    read = read_installed("lab/mine")
    assert read.name == "lab/mine"
    assert [(task.task_id, task.title, task.concept) for task in read] == [("b", "Größe", "Copy"), ("a", "", "")]
    for task, before in zip(read, small_set(), strict=True):
        for grid, same in zip(np.ravel(task.named_grids()), np.ravel(before.named_grids()), strict=True):
            assert list(map(str, grid)) == list(map(str, same))


def test_the_file_has_the_documented_format(folder):
    path = install(small_set(), "mine")
    record = json.loads(path.read_text(encoding="utf-8"))
    assert path == folder / "tasks" / "mine.json"
    assert (record["format"], record["name"], len(record["digest"])) == ("jaxarc-tasks/1", "mine", 64)
    assert record["tasks"]["a"] == {
        "title": "",
        "concept": "",
        "train": [{"input": [[1, 2]], "output": [[0], [9]]}],
        "test": [{"input": [[3]], "output": [[4]]}],
    }


def test_names_are_listed_and_foreign_files_left_out(folder):
    assert installed_names() == ()
    assert not folder.exists()
    for name in ("mine", "lab/mine"):
        install(small_set(), name)
    (folder / "tasks" / ".mine.json.x.part").write_text("")
    (folder / "tasks" / "a b.json").write_text("")
    assert installed_names() == ("lab/mine", "mine")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/../b", "/a", "a/", "a/b/c", "a b", "a:first 3", "a@1", "ä", ".a"]
)
def test_a_name_that_could_leave_the_folder_or_mean_more_is_refused(name):
    with pytest.raises(ValueError, match="cannot name a task set"):
        installed_path(name)


@pytest.mark.parametrize("name", ["a", "mini-arc", "lab/easy_2.1", "007"])
def test_simple_names_are_taken(name):
    assert check_set_name(name) == name


def test_the_folder_follows_the_environment_at_each_call(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXARC_DATA", str(tmp_path / "other"))
    assert data_folder() == tmp_path / "other"
    monkeypatch.delenv("JAXARC_DATA")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert data_folder().name == "jaxarc"
    assert tmp_path in data_folder().parents
    assert not data_folder().exists()


def test_a_published_set_that_is_not_there_says_how_to_get_it(folder):
    with pytest.raises(NotInstalledError) as raised:
        read_installed("concept-arc")
    expected = [
        str(folder / "tasks" / "concept-arc.json"),
        "jaxarc tasks download concept-arc",
        "https://github.com/victorvikram/ConceptARC/archive/HEAD.zip",
        "jaxarc tasks import FILE --name concept-arc",
    ]
    assert all(part in str(raised.value) for part in expected)
    assert isinstance(raised.value, FileNotFoundError)


def test_a_set_of_one_s_own_that_is_not_there_says_how_to_import_it():
    with pytest.raises(NotInstalledError, match="jaxarc tasks import PATH --name mine"):
        read_installed("mine")


CHANGES = [  # what is done to the file, what the message says
    (lambda record: record["tasks"]["a"]["train"][0]["input"][0].__setitem__(0, 5), "digest"),
    (lambda record: record["tasks"]["a"].update(title="new"), "digest"),
    (lambda record: record["tasks"].update(c=record["tasks"].pop("a")), "digest"),
    (lambda record: record.pop("digest"), "digest"),
    (lambda record: record.update(format="jaxarc-tasks/2"), "jaxarc-tasks/1"),
    (lambda record: record.update(name="other"), "'other'"),
    (lambda record: record.update(tasks={}), "no tasks"),
    (lambda record: record.update(tasks=[1]), "no tasks"),
    (lambda record: record["tasks"]["a"].pop("title"), "strings"),
    (lambda record: record["tasks"]["a"].update(train=3), "train"),
    (lambda record: record["tasks"].update(a=None), "object"),
    (lambda record: record["tasks"].update({"": record["tasks"].pop("a")}), "strings"),
]


@pytest.mark.parametrize(("change", "said"), CHANGES)
def test_a_changed_file_is_named_with_the_fix(change, said):
    path = install(small_set(), "mine")
    record = json.loads(path.read_text(encoding="utf-8"))
    change(record)
    path.write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(TaskFormatError) as raised:
        read_installed("mine")
    message = str(raised.value)
    assert re.match(re.escape(str(path)), message)
    assert said in message
    assert message.endswith("jaxarc tasks import PATH --name mine --replace")


def test_a_damaged_published_set_says_to_download_it_again():
    installed_path("mini-arc").parent.mkdir(parents=True)
    installed_path("mini-arc").write_text("[1, 2")
    with pytest.raises(TaskFormatError, match=r"mini-arc\.json: damaged.*jaxarc tasks download mini-arc --again"):
        read_installed("mini-arc")


def test_a_file_with_flipped_or_missing_bytes_reads_right_or_is_an_error():
    path = install(small_set(), "mine")
    whole = path.read_bytes()
    before = [(task.task_id, task.title, task.concept) for task in small_set()]
    draw = random.Random(0)
    for trial in range(300):
        content = bytearray(whole)
        if trial % 3 == 0:
            del content[draw.randrange(len(content)) :]
        else:
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        path.write_bytes(content)
        try:
            assert [(task.task_id, task.title, task.concept) for task in read_installed("mine")] == before
        except TaskFormatError as error:
            assert str(path) in str(error)  # noqa: PT017 - both ways are right, one of them must be
