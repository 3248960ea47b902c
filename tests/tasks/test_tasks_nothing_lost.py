"""No task is lost or turned in silence: it is read, or a line says so."""

import json
import zipfile

import pytest
from small_tasks import PAIR, TASK, write_json

from jaxarc.datasets import load_tasks, read_json
from jaxarc.datasets.archives import SkippedFilesWarning, read_zip
from jaxarc.tasks import RawTask, TaskFormatError

PAIRS = [PAIR, PAIR, PAIR]


@pytest.mark.parametrize(
    "keys", [("training", "testing"), ("Train", "Test"), ("demos", "tests"), ("training", "evaluation")]
)
def test_parts_of_a_task_under_other_names_are_no_tasks(tmp_path, keys):
    data = dict.fromkeys(keys, PAIRS)
    for given in (data, write_json(tmp_path / "t.json", data), [data]):
        with pytest.raises(TaskFormatError, match="'train'"):
            load_tasks(given)


def test_tasks_may_have_the_names_of_parts(tmp_path):
    data = {"train": TASK, "test": TASK, "other": TASK}
    for given in (data, write_json(tmp_path / "t.json", data)):
        assert load_tasks(given).task_ids == ("train", "test", "other")
    assert load_tasks({"test1": PAIRS, "test2": PAIRS}).task_ids == ("test1", "test2")


def test_the_keys_of_a_mapping_are_the_ids_whatever_its_tasks_are():
    ours = RawTask("own", (([[1]], [[2]]),), (([[1]], [[2]]),), title="Title")
    given = {"a": ours, "b": TASK, "c": {**TASK, "id": "own"}, "d": PAIRS}
    tasks = load_tasks(given)
    assert tasks.task_ids == ("a", "b", "c", "d")
    assert (tasks["a"].title, ours.task_id) == ("Title", "own")
    assert load_tasks({5: ours}).task_ids == ("5",)


def test_tasks_of_a_list_keep_the_ids_that_they_have(tmp_path):
    listed = [{**TASK, "id": "a"}, {**TASK, "task_id": "b"}, TASK]
    assert load_tasks(listed).task_ids == ("a", "b", "task-2")
    assert load_tasks(listed[0]).task_ids == ("a",)
    assert load_tasks(write_json(tmp_path / "t.json", listed)).task_ids == ("a", "b", "t-2")
    with pytest.raises(TaskFormatError, match="'a'"):
        load_tasks(write_json(tmp_path / "t.json", [listed[0], listed[0]]))


def test_links_to_folders_are_followed_once(tmp_path):
    write_json(tmp_path / "store" / "a.json")
    folder = tmp_path / "set"
    write_json(folder / "evaluation" / "b.json")
    (folder / "training").symlink_to(tmp_path / "store")
    (folder / "again").symlink_to(folder / "evaluation")
    (folder / "evaluation" / "up").symlink_to(folder)
    (folder / "evaluation" / "root").symlink_to("/")
    (tmp_path / "store" / "back").symlink_to(folder)
    tasks = read_json(folder)
    assert sorted((task.task_id, task.concept) for task in tasks) == [("a", "training"), ("b", "evaluation")]
    (tmp_path / "link").symlink_to(folder)
    assert sorted(read_json(tmp_path / "link").task_ids) == ["a", "b"]


@pytest.mark.parametrize("ending", [".JSON", ".Json"])
def test_the_case_of_an_ending_does_not_matter(tmp_path, ending):
    write_json(tmp_path / f"T3{ending}")
    assert read_json(tmp_path).task_ids == ("T3",)
    assert read_json(tmp_path / f"T3{ending}").task_ids == ("T3",)
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(f"T3{ending}", json.dumps(TASK))
    assert read_zip(tmp_path / "x.zip").task_ids == ("T3",)


SKIPPED = ("more.jsonl", "more.JSONL", "deep/more.csv", "more.json.gz", "more.zip", ".hidden.json")


@pytest.mark.parametrize("name", SKIPPED)
def test_files_that_may_hold_tasks_are_not_skipped_in_silence(tmp_path, name):
    write_json(tmp_path / "set" / "a.json")
    write_json(tmp_path / "set" / name, "{}")
    with pytest.warns(SkippedFilesWarning) as caught:
        assert read_json(tmp_path / "set").task_ids == ("a",)
    assert [name in str(warning.message) for warning in caught] == [True]
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("a.json", json.dumps(TASK))
        archive.writestr(name, "{}")
    with pytest.warns(SkippedFilesWarning):
        assert read_zip(tmp_path / "x.zip").task_ids == ("a",)


def test_what_holds_no_tasks_is_skipped_in_silence(tmp_path):
    write_json(tmp_path / "a.json")
    for name in ("README.md", "LICENSE", "._a.json", ".git/x.json", "picture.png", ".DS_Store"):
        write_json(tmp_path / name, "{}")
    assert read_json(tmp_path).task_ids == ("a",)


def test_tasks_named_as_the_files_of_kaggle_are_read(tmp_path):
    for name in ("x_solutions", "x_challenges", "solutions", "metadata"):
        write_json(tmp_path / f"{name}.json")
    assert sorted(read_json(tmp_path).task_ids) == ["metadata", "solutions", "x_challenges", "x_solutions"]


@pytest.mark.parametrize("task_id", ["a\nb", "\x1b[2Jx", "x" * 201, "\ud800"])
def test_ids_that_a_terminal_cannot_show_are_refused_everywhere(tmp_path, task_id):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("mapping.json", json.dumps({task_id: TASK}))
    ours = RawTask("own", (([[1]], [[2]]),), (([[1]], [[2]]),))
    for given in ({task_id: TASK}, {task_id: ours}, [{**TASK, "id": task_id}], tmp_path / "x.zip"):
        with pytest.raises(TaskFormatError) as caught:
            load_tasks(given)
        assert str(caught.value).isprintable()
