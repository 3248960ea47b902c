"""Task sets in the data folder: what is installed is read back, what is damaged is named."""

import zipfile

import numpy as np
import pytest

from jaxarc.datasets.installed import (
    NotInstalledError,
    data_folder,
    install,
    installed_names,
    installed_path,
    read_installed,
)
from jaxarc.datasets.task_set import TaskSet, digest_of
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


def test_a_hidden_answer_and_further_pairs_are_read_back():
    (task, _) = small_set()
    pools = RawTask.of_pool("pools", task.pairs * 3)
    hidden = RawTask("hidden", task.train, ((task.train[0][0], None),))
    read = read_installed(install(TaskSet("mine", (pools, hidden)), "mine").stem)
    assert digest_of(read) == digest_of([pools, hidden])
    assert [len(task.pool) for task in read] == [5, 0]
    assert not read[1].has_answers


def test_names_are_listed_and_foreign_files_left_out(folder):
    assert installed_names() == ()
    assert not folder.exists()
    for name in ("mine", "lab/mine"):
        install(small_set(), name)
    (folder / "tasks" / ".mine.tasks.x.part").write_text("")
    (folder / "tasks" / "a b.tasks").write_text("")
    assert installed_names() == ("lab/mine", "mine")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../x", "a/../b", "/a", "a/", "a/b/c", "a b", "a:first 3", "a@1", "ä", ".a"]
)
def test_a_name_that_could_leave_the_folder_or_mean_more_is_refused(name):
    with pytest.raises(ValueError, match="cannot name a task set"):
        installed_path(name)


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
        str(folder / "tasks" / "concept-arc.tasks"),
        "jaxarc tasks download concept-arc",
        "https://github.com/victorvikram/ConceptARC/archive/HEAD.zip",
        "jaxarc tasks import FILE --name concept-arc",
    ]
    assert all(part in str(raised.value) for part in expected)
    assert isinstance(raised.value, FileNotFoundError)


def test_a_set_of_one_s_own_that_is_not_there_says_how_to_import_it():
    with pytest.raises(NotInstalledError, match="jaxarc tasks import PATH --name mine"):
        read_installed("mine")


CHANGES = [  # member, what is done to it, what the message says
    ("cells", lambda cells: b"\x0a" + cells[1:], "0..9"),
    ("cells", lambda cells: cells[1:], "bytes"),
    ("sizes", lambda sizes: b"\x1f" + sizes[1:], "1..30"),
    ("sizes", lambda sizes: bytes(2) + sizes[2:], "1..30"),
    ("sizes", lambda sizes: sizes[:-1], "bytes"),
    ("tasks.json", lambda tasks: tasks.replace(b'"b"', b'"a"'), "'a'"),
    ("tasks.json", lambda tasks: tasks.replace(b'"a"', b'""'), "id"),
    ("tasks.json", lambda tasks: tasks.replace(b'"Copy"', b"1"), "text"),
    ("tasks.json", lambda tasks: tasks.replace(b"2, 1, 0", b"3, 0, 0"), "no test"),
    ("tasks.json", lambda tasks: tasks.replace(b"2, 1, 0", b"-2, 5, 0"), "negative"),
    ("tasks.json", lambda tasks: tasks.replace(b"2, 1, 0", b"1" * 30 + b", 1, 0"), "int"),
    ("tasks.json", lambda tasks: b"[]", "mine.tasks"),
    ("tasks.json", lambda tasks: b"{", "JSON"),
]


@pytest.mark.parametrize(("member", "change", "said"), CHANGES)
def test_a_changed_file_is_named_with_the_fix(member, change, said):
    path = install(small_set(), "mine")
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert change(parts[member]) != parts[member]
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, change(part) if name == member else part)
    with pytest.raises(TaskFormatError) as raised:
        read_installed("mine")
    message = str(raised.value)
    assert message.startswith(str(path))
    assert said in message
    assert message.endswith("jaxarc tasks import PATH --name mine --replace")


def test_a_damaged_published_set_says_to_download_it_again():
    installed_path("mini-arc").parent.mkdir(parents=True)
    installed_path("mini-arc").write_text("[1, 2")
    with pytest.raises(TaskFormatError, match=r"mini-arc\.tasks: .*jaxarc tasks download mini-arc --again"):
        read_installed("mini-arc")
