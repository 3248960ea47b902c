"""Task files and folders of one's own."""

import gc
import json
import os

import pytest
from small_tasks import write_json

from jaxarc.datasets import load_tasks
from jaxarc.datasets.json_files import read_json
from jaxarc.datasets.json_format import MAX_FILE_BYTES, read_task
from jaxarc.tasks import TaskFormatError

GRID = [[1, 2, 3], [4, 5, 6]]
TASK = {"train": [{"input": GRID, "output": [[7]]}], "test": [{"input": [[0]], "output": GRID}]}


def test_one_file_is_a_set_of_one_task(tmp_path):
    tasks = read_json(write_json(tmp_path / "abc.json", TASK))
    assert tasks.task_ids == ("abc",)
    task = tasks.raw_task("abc")
    assert task.train[0][0].tolist() == GRID
    assert task.test[0][1].tolist() == GRID
    assert tasks.max_grid_shape == (2, 3)


def test_folder_is_read_recursively_in_the_order_of_paths(tmp_path):
    for name in ("b/x.json", "a/z.json", "c.json", "a/deep/y.json"):
        write_json(tmp_path / name, TASK)
    assert read_json(tmp_path).task_ids == ("y", "z", "x", "c")


WRONG_CELL = {**TASK, "train": [*TASK["train"], {"input": [[0, 0], [0, None]], "output": [[1]]}]}


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, r"has no \*\.json file"),
        ({"a/same.json": TASK, "b/same.json": TASK}, r"'same': .*/a/same\.json .*/b/same\.json"),
        ({"a.json": TASK, "many.json": {"a": TASK}}, "two files give the task id 'a'"),
        ({"bad.json": WRONG_CELL}, r"/bad\.json: train pair 1 input, row 1, column 1: got null \(None\)"),
        ({"many.json": {"good": TASK, "bad": {**TASK, "test": []}}}, r"/many\.json: bad: 'test' has no pairs"),
        ({"many.json": {"good": TASK, "note": "hello"}}, "note: a task is a JSON object"),
    ],
    ids=["no-file", "two-files", "file-and-mapping", "cell", "no-test", "note"],
)
def test_a_folder_that_cannot_be_read_says_why(tmp_path, files, words):
    for name, data in files.items():
        write_json(tmp_path / name, data)
    with pytest.raises(TaskFormatError, match=words):
        load_tasks(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON at line 1, column 1"),
        (json.dumps(TASK).encode()[:-9], "not JSON at line 1, column"),
        (b"\xff\xfe\x00", r"not UTF-8 text \(byte 0\)"),
        (b"[" * 100_000, "cannot be an ARC task"),
        (b'{"train": ' + b"9" * 5000 + b"}", "cannot be an ARC task"),
        (b"[1, 2]", "a task is a JSON object"),
        (b'{"train": NaN, "test": []}', "NaN is not JSON"),
        (b'{"train": [], "test": [Infinity]}', "Infinity is not JSON"),
        (b'{"train": [], "train": [], "test": []}', "has the key 'train' twice"),
        (b'{"train": [{"input": [[1]], "input": [[2]], "output": [[1]]}]}', "has the key 'input' twice"),
        (b'{"train" : [{"input": [[1]], "input" : [[2]], "note": ":"}]}', "has the key 'input' twice"),
        (b'{"a": {"b": {"c": {"d": {"e": {"f": {"g": 1, "g": 2}}}}}}}', "has the key 'g' twice"),
        (b'{"train": [1, {"a": 1, "a": 2}]}', "has the key 'a' twice"),
    ],
)
def test_damaged_file_is_refused_by_name(tmp_path, content, message):
    file = tmp_path / "damaged.json"
    file.write_bytes(content)
    with pytest.raises(TaskFormatError, match=message) as caught:
        read_json(file)
    assert str(caught.value).startswith(str(file))


@pytest.mark.parametrize("text", ["a note: with colons", "\ud800", "[1, 2]: [3]"])
def test_colons_and_odd_letters_in_strings_change_nothing(tmp_path, text):
    file = write_json(tmp_path / "noted.json", {**TASK, "note": text})
    assert read_json(file).raw_task("noted").train[0][0].tolist() == GRID


def test_reading_leaves_the_garbage_collector_as_it_was(tmp_path):
    file = write_json(tmp_path / "a.json", TASK)
    read_json(file)
    assert gc.isenabled()
    gc.disable()
    try:
        read_json(file)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_mapping_from_id_to_task_is_a_set(tmp_path):
    file = write_json(tmp_path / "many.json", {"b": TASK, "a": TASK})
    assert read_json(file).task_ids == ("b", "a")


def test_concept_is_the_subfolder(tmp_path):
    write_json(tmp_path / "Copy" / "a.json", TASK)
    write_json(tmp_path / "b.json", TASK)
    assert {task.task_id: task.concept for task in read_json(tmp_path)} == {"a": "Copy", "b": ""}
    assert read_json(tmp_path / "Copy" / "a.json").tasks[0].concept == ""


def test_large_file_is_refused_before_it_is_read(tmp_path):
    file = tmp_path / "huge.json"
    with file.open("wb") as stream:
        stream.truncate(MAX_FILE_BYTES + 1)  # takes no room on the disk
    with pytest.raises(TaskFormatError, match=r"huge\.json: 67,108,865.*67,108,864"):
        read_json(file)


def test_pipe_and_links_that_lead_nowhere_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe.json")
    with pytest.raises(TaskFormatError, match=r"pipe\.json: not a regular file"):
        read_json(tmp_path)
    (tmp_path / "pipe.json").unlink()
    (tmp_path / "loop.json").symlink_to("loop.json")
    for path in (tmp_path, tmp_path / "loop.json"):
        with pytest.raises(TaskFormatError, match=r"loop\.json: .* a link that leads nowhere"):
            read_json(path)


def test_byte_order_mark_is_allowed(tmp_path):
    file = tmp_path / "mark.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(TASK).encode())
    assert len(read_json(file)) == 1


def test_the_generated_pairs_of_a_neurogolf_file_are_the_pool():
    pair = {"input": [[1]], "output": [[2]]}
    wide = {"input": [[0] * 31], "output": [[2]]}
    task = read_task("a", {"train": [pair], "test": [pair], "arc-gen": [pair, wide, pair]}, "a.json")
    assert (len(task.train), len(task.test), len(task.pool)) == (1, 1, 2)
    for wrong in ({"0": pair}, [{"input": [[1]]}], [3]):
        with pytest.raises(TaskFormatError, match="arc-gen"):
            read_task("a", {"train": [pair], "test": [pair], "arc-gen": wrong}, "a.json")
