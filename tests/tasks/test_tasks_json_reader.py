"""Task files and folders of one's own."""

import json
import re

import pytest

from jaxarc.tasks import TaskFormatError, load_tasks
from jaxarc.tasks.json_reader import read_json

GRID = [[1, 2, 3], [4, 5, 6]]
TASK = {"train": [{"input": GRID, "output": [[7]]}], "test": [{"input": [[0]], "output": GRID}]}


def write(path, data=TASK):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
    return path


def test_one_file_is_a_set_of_one_task(tmp_path):
    tasks = read_json(write(tmp_path / "abc.json"))
    assert tasks.task_ids == ("abc",)
    task = tasks.raw_task("abc")
    assert task.train[0][0].tolist() == GRID
    assert task.test[0][1].tolist() == GRID
    assert tasks.max_grid_shape == (2, 3)


def test_folder_is_read_recursively_in_the_order_of_paths(tmp_path):
    for name in ("b/x.json", "a/z.json", "c.json", "a/deep/y.json"):
        write(tmp_path / name)
    assert read_json(tmp_path).task_ids == ("y", "z", "x", "c")


def test_other_and_hidden_files_are_left_out(tmp_path):
    write(tmp_path / "a.json")
    write(tmp_path / ".hidden.json", {})
    write(tmp_path / ".git" / "b.json", {})
    (tmp_path / "LICENSE").write_text("text")
    assert read_json(str(tmp_path)).task_ids == ("a",)


def test_two_files_of_one_id_are_refused_by_name(tmp_path):
    write(tmp_path / "a" / "same.json")
    write(tmp_path / "b" / "same.json")
    with pytest.raises(TaskFormatError, match="two files give the task id 'same'") as caught:
        read_json(tmp_path)
    assert str(tmp_path / "a" / "same.json") in str(caught.value)
    assert str(tmp_path / "b" / "same.json") in str(caught.value)


def test_folder_without_tasks_is_refused(tmp_path):
    with pytest.raises(TaskFormatError, match=r"has no \*\.json file"):
        read_json(tmp_path)


def test_missing_path_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file or folder"):
        read_json(tmp_path / "nothing")


def test_message_names_file_pair_row_and_column(tmp_path):
    data = {**TASK, "train": [*TASK["train"], {"input": [[0, 0], [0, None]], "output": [[1]]}]}
    file = write(tmp_path / "bad.json", data)
    place = re.escape(f"{file}: train pair 1 input, row 1, column 1: got null (None)")
    with pytest.raises(TaskFormatError, match=place):
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
        (b'{"train": NaN, "test": []}', r"'train' must be a list of pairs, got nan"),
    ],
)
def test_damaged_file_is_refused_by_name(tmp_path, content, message):
    file = tmp_path / "damaged.json"
    file.write_bytes(content)
    with pytest.raises(TaskFormatError, match=message) as caught:
        read_json(file)
    assert str(caught.value).startswith(str(file))


def test_byte_order_mark_is_allowed(tmp_path):
    file = tmp_path / "mark.json"
    file.write_bytes(b"\xef\xbb\xbf" + json.dumps(TASK).encode())
    assert len(read_json(file)) == 1
