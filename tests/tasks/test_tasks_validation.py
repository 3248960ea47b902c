"""Every rule of the format, with what the message says."""

import pytest

from jaxarc.datasets.json_format import check_task
from jaxarc.tasks.raw_task import TaskFormatError, check_grid


def task(train_input=None, **changes):
    good = [[1, 2], [3, 4]]
    pair = {"input": good if train_input is None else train_input, "output": good}
    return {"train": [{"input": good, "output": good}, pair], "test": [{"input": good, "output": good}]} | changes


def refused(data):
    with pytest.raises(TaskFormatError) as caught:
        check_task(data, "a.json")
    message = str(caught.value)
    assert message.startswith("a.json: ")
    assert "\n" not in message
    assert len(message) < 300
    return message


def test_good_task_gives_its_pairs_as_int8():
    train, test = check_task(task(), "a.json")
    assert (len(train), len(test)) == (2, 1)
    assert train[1][0].dtype == "int8"
    assert train[1][0].tolist() == [[1, 2], [3, 4]]


def test_other_keys_are_allowed():
    data = task(name="mine")
    data["train"][0]["note"] = "first"
    check_task(data, "a.json")


@pytest.mark.parametrize(("data", "got"), [([], "a list of 0"), ("x", "'x' (str)"), (None, "null"), (3, "3 (int)")])
def test_task_must_be_an_object(data, got):
    assert f"a task is a JSON object with the keys 'train' and 'test', got {got}" in refused(data)


@pytest.mark.parametrize("key", ["train", "test"])
def test_both_splits_must_be_there(key):
    data = task()
    del data[key]
    message = refused(data)
    assert f"the key {key!r} is missing" in message
    assert "found keys: " in message


@pytest.mark.parametrize("key", ["train", "test"])
def test_splits_must_be_non_empty_lists_of_at_most_31_pairs(key):
    assert f"{key!r} has no pairs; a task needs at least one {key} pair" in refused(task(**{key: []}))
    assert f"{key!r} must be a list of pairs, got a dict of 0" in refused(task(**{key: {}}))
    assert f"{key!r} has 32 pairs, the limit is 31" in refused(task(**{key: task()["test"] * 32}))


@pytest.mark.parametrize("pair", [[1, 2], None, "x"])
def test_pair_must_be_an_object(pair):
    assert "test pair 0: a pair is an object with the keys 'input' and 'output'" in refused(task(test=[pair]))


@pytest.mark.parametrize(("pair", "missing"), [({"input": [[1]]}, "output"), ({}, "input")])
def test_pair_must_have_both_grids(pair, missing):
    message = refused(task(test=[pair]))
    assert f"test pair 0: the key {missing!r} is missing" in message
    assert "test pairs too" in message


@pytest.mark.parametrize(
    ("grid", "expected"),
    [
        ("12", "train pair 1 input: a grid is a list of rows or an array, got '12' (str)"),
        ({}, "train pair 1 input: a grid is a list of rows or an array, got a dict of 0"),
        ([], "train pair 1 input: the grid has no rows; a side is 1..30"),
        ([1, 2], "train pair 1 input, row 0: a row is a list of colors, got 1 (int)"),
        ([[1], "2"], "train pair 1 input, row 1: a row is a list of colors, got '2' (str)"),
        ([[]], "train pair 1 input, row 0: the row is empty"),
        ([[1, 2], [3]], "train pair 1 input, row 1: the row has 1 cells and row 0 has 2"),
        ([[1, 2], [3, 4, 5]], "train pair 1 input, row 1: the row has 3 cells and row 0 has 2"),
        ([[0]] * 31, "train pair 1 input: the grid is 31x1, sides are 1..30; crop"),
        ([[0] * 31], "train pair 1 input: the grid is 1x31, sides are 1..30; crop"),
    ],
)
def test_grid_must_be_a_rectangle_of_1_to_30(grid, expected):
    assert expected in refused(task(grid))


@pytest.mark.parametrize(
    ("cell", "got"),
    [
        (10, "10 (int)"),
        (-1, "-1 (int)"),
        (True, "True (bool)"),
        (3.0, "3.0 (float)"),
        (float("nan"), "nan (float)"),
        ("3", "'3' (str)"),
        (None, "null (None)"),
        ([3], "a list of 1"),
        ("x" * 500, "..."),
        (10**500, "a whole number of more than 12 digits"),
    ],
)
def test_cell_must_be_a_whole_number_0_to_9(cell, got):
    message = refused(task([[0, 0, 0], [0, 9, cell]]))
    assert "train pair 1 input, row 1, column 2: got " in message
    assert got in message
    assert "cells are whole numbers 0..9" in message


def test_output_is_checked_like_input():
    data = task(test=[{"input": [[1]], "output": [[1, 11]]}])
    assert "test pair 0 output, row 0, column 1: got 11" in refused(data)


def test_sides_of_1_and_30_are_allowed():
    assert check_grid([[9]], "here").shape == (1, 1)
    assert check_grid([[9] * 30] * 30, "here").shape == (30, 30)


def test_null_stands_for_a_color_where_one_is_given():
    pairs, _ = check_task(task([[None, 3]]), "a.json", null_color=5)
    assert pairs[1][0].tolist() == [[5, 3]]
    assert "Mini-ARC writes null for color 0" in refused(task([[None, 3]]))


@pytest.mark.parametrize("cell", [True, 1.0, "1", 10, -1, 256, 10**30, [1]])
def test_the_check_of_whole_grids_refuses_what_the_check_of_cells_refuses(cell):
    with pytest.raises(TaskFormatError, match="row 1, column 0"):
        check_grid([[0, 1], [cell, 2]], "a.json")


@pytest.mark.parametrize("rows", [[{0: 1, 1: 2}], ["12"], [b"12"], [range(2)]])
def test_a_row_is_a_list(rows):
    with pytest.raises(TaskFormatError, match="row 0: a row is a list of colors"):
        check_grid(rows, "a.json")
