"""Every rule of the format, with what the message says."""

import pytest

from jaxarc.datasets.json_format import read_task
from jaxarc.tasks.raw_task import TaskFormatError, check_grid


def task(train_input=None, **changes):
    good = [[1, 2], [3, 4]]
    pair = {"input": good if train_input is None else train_input, "output": good}
    return {"train": [{"input": good, "output": good}, pair], "test": [{"input": good, "output": good}]} | changes


def refused(data):
    with pytest.raises(TaskFormatError) as caught:
        read_task("a", data, "a.json")
    message = str(caught.value)
    assert message.startswith("a.json: ")
    assert "\n" not in message
    assert len(message) < 300
    return message


TASK = task()
WRONG = {  # what is no task, and the place and the value in the message
    "list": ([], "a list of 0"),
    "null": (None, "null"),
    "no test": ({"train": TASK["train"]}, "'test'"),
    "no pairs": (task(train=[]), "'train'"),
    "pairs in a dict": (task(test={}), "'test'"),
    "32 pairs": (task(test=TASK["test"] * 32), "'test' has 32"),
    "a pair in a list": (task(test=[[1, 2]]), "test pair 0"),
    "no output": (task(test=[{"input": [[1]]}]), "test pair 0: the key 'output'"),
    "text": (task("12"), "train pair 1 input: a grid is a list of rows or an array, got '12'"),
    "no rows": (task([]), "train pair 1 input"),
    "one row": (task([1, 2]), "train pair 1 input, row 0"),
    "empty row": (task([[]]), "train pair 1 input, row 0"),
    "ragged": (task([[1, 2], [3, 4, 5]]), "train pair 1 input, row 1: the row has 3 cells and row 0 has 2"),
    "31 rows": (task([[0]] * 31), "train pair 1 input: the grid is 31x1"),
    "31 columns": (task([[0] * 31]), "train pair 1 input: the grid is 1x31"),
}


@pytest.mark.parametrize(("data", "named"), WRONG.values(), ids=WRONG)
def test_what_is_no_task_is_refused_with_its_place(data, named):
    assert named in refused(data)


@pytest.mark.parametrize(
    ("cell", "got"),
    [
        (10, "10"),
        (-1, "-1"),
        (True, "True"),
        (3.0, "3.0"),
        ("3", "'3'"),
        (None, "null"),
        ([3], "a list of 1"),
        ("x" * 500, "..."),
        (10**500, "12 digits"),
    ],
)
def test_cell_must_be_a_whole_number_0_to_9(cell, got):
    message = refused(task([[0, 0, 0], [0, 9, cell]]))
    assert "train pair 1 input, row 1, column 2: got " in message
    assert got in message


def test_sides_of_1_and_30_are_allowed():
    assert check_grid([[9]], "here").shape == (1, 1)
    assert check_grid([[9] * 30] * 30, "here").shape == (30, 30)
