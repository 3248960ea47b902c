"""Files in the format of the ARC Prize: written and read back, scored, and refused with the reason."""

import hashlib
import json

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from small_exam import EXAM
from small_tasks import write_json

from jaxarc.datasets import json_format
from jaxarc.evaluation import (
    SubmissionError,
    evaluate_solver,
    majority_vote,
    read_submission,
    rows_of_submission,
    score_submission,
    write_submission,
)
from jaxarc.evaluation.submission import SUBMISSION_DIGEST
from jaxarc.tasks import TaskFormatError

GRID = arrays.arrays(np.int8, st.tuples(st.integers(1, 30), st.integers(1, 30)), elements=st.integers(0, 9))
TASKS = st.lists(st.lists(GRID, min_size=2, max_size=2), min_size=1, max_size=3)
SUBMISSIONS = st.dictionaries(st.text(min_size=1, max_size=8), TASKS, max_size=3)
GOOD = {
    "three": [
        {"attempt_1": [[9]], "attempt_2": [[1]]},
        {"attempt_1": [[3, 3]], "attempt_2": [[3]]},
        {"attempt_1": [[4]], "attempt_2": [[4]]},
    ],
    "right": [{"attempt_1": [[5, 6], [7, 8]], "attempt_2": [[0]]}],
    "wrong": [{"attempt_1": [[5]], "attempt_2": [[5, 5, 5]]}],
}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "submission.json"


@settings(max_examples=30)
@given(SUBMISSIONS)
def test_a_submission_comes_back_as_it_was_written(tmp_path_factory, submission):
    path = write_submission(tmp_path_factory.mktemp("files") / "submission.json", submission)
    again = read_submission(path)
    assert list(again) == list(submission)
    for task_id, inputs in submission.items():
        assert len(again[task_id]) == len(inputs)
        for attempts, expected in zip(again[task_id], inputs, strict=True):
            assert all(map(np.array_equal, attempts, expected))
            assert all(grid.dtype == np.int8 for grid in attempts)


def test_the_file_is_what_the_arc_prize_asks_for(file):
    one, two = np.array([[1, 2], [3, 4]], np.int8), np.array([[0]], np.int8)
    write_submission(file, {"a": [[one, two], [two, one]], "b": [[two, two]]})
    assert json.loads(file.read_text()) == {
        "a": [{"attempt_1": [[1, 2], [3, 4]], "attempt_2": [[0]]}, {"attempt_1": [[0]], "attempt_2": [[1, 2], [3, 4]]}],
        "b": [{"attempt_1": [[0]], "attempt_2": [[0]]}],
    }


def test_either_attempt_may_be_right_and_the_order_of_tasks_does_not_matter(file):
    turned_round = dict(reversed(GOOD.items()))
    score = score_submission(read_submission(write_json(file, turned_round)), EXAM)
    assert score.solved == {"three": (True, True, True), "right": (True,), "wrong": (False,)}
    assert (score.output_score, score.task_score, score.mean_task_share) == (4 / 5, 2 / 3, 2 / 3)


class OnlyDlpack:
    """A grid of another library that knows DLPack alone."""

    def __init__(self, grid):
        self.grid = np.array(grid, np.int8)

    def __dlpack__(self, **options):
        return self.grid.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.grid.__dlpack_device__()


class OnADevice:
    """A grid of another library on an accelerator."""

    ndim = 2

    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


SPELLINGS = {
    "lists": lambda grid: grid,
    "tuples": lambda grid: tuple(map(tuple, grid)),
    "numpy": lambda grid: np.array(grid, np.uint8),
    "jax": lambda grid: jnp.array(grid, jnp.int32),
    "rows of numpy": lambda grid: [np.array(row) for row in grid],
    "rows of jax": lambda grid: [jnp.array(row, jnp.int32) for row in grid],
    "cells of numpy": lambda grid: [[np.int64(cell) for cell in row] for row in grid],
    "cells of jax": lambda grid: [[jnp.int32(cell) for cell in row] for row in grid],
    "dlpack": OnlyDlpack,
}


@pytest.mark.parametrize("spell", SPELLINGS.values(), ids=SPELLINGS)
def test_lists_and_arrays_of_any_library_are_the_same_grids(file, spell):
    answers = {task.task_id: [[spell(answer.tolist())] * 2 for _, answer in task.test] for task in EXAM}
    score = score_submission(answers, EXAM)
    assert score.solved_outputs == score.num_outputs
    assert all(row.best_similarity == 1 for row in rows_of_submission(answers, EXAM))
    write_submission(file, answers)
    assert score_submission(read_submission(file), EXAM).solved == score.solved
    answer_of = {task.test[0][0].tobytes(): spell(task.test[0][1].tolist()) for task in EXAM}
    solve = lambda _, grid: answer_of.get(grid.astype(np.int8).tobytes(), spell([[0]]))
    result = evaluate_solver(solve, EXAM)
    assert [row.error for row in result.rows] == [None] * 3
    assert result.score is not None
    assert result.score.solved_outputs >= 3
    votes = majority_vote([spell([[1]]), spell([[2, 3]]), spell([[2, 3]])], 1)
    assert [grid.tolist() for grid in votes] == [[[2, 3]]]


GRID_FAULTS = {
    "floats": [[1.0, 2.0]],
    "booleans": np.ones((2, 2), bool),
    "padding": np.array([[1, -1]]),
    "31 columns": np.zeros((1, 31), int),
    "no cell": np.zeros((0, 3), int),
    "none": None,
    "color 10": [[np.int8(10)]],
    "ragged rows": [np.array([1, 2]), np.array([1])],
    "on a device": OnADevice(),
}
BAD_SUBMISSIONS = {
    **{name: {"x": [[[[1]], grid]]} for name, grid in GRID_FAULTS.items()},
    "one attempt": {"x": [[[[1]]]]},
    "three attempts": {"x": [[[[1]]] * 3]},
    "no id": {"": [[[[1]], [[1]]]]},
    "a number for an id": {5: [[[[1]], [[1]]]]},
    "no list": {"x": None},
    "an object": {"x": {"attempt_1": [[1]]}},
    "no mapping": [[[[1]], [[1]]]],
}


@pytest.mark.parametrize("submission", BAD_SUBMISSIONS.values(), ids=BAD_SUBMISSIONS)
def test_what_cannot_be_read_is_not_written(file, submission):
    with pytest.raises(SubmissionError) as caught:
        write_submission(file, submission)
    assert "\n" not in str(caught.value)
    assert not file.exists()


@pytest.mark.parametrize("grid", GRID_FAULTS.values(), ids=GRID_FAULTS)
def test_what_is_no_grid_is_neither_scored_nor_voted_for(grid):
    for use in (
        lambda: score_submission({"right": [[grid]]}, EXAM.select(ids=["right"])),
        lambda: majority_vote([grid], 1),
    ):
        with pytest.raises(TaskFormatError):
            use()


@pytest.mark.parametrize("attempts", [1, 3])
def test_the_number_of_attempts_is_a_choice(file, attempts):
    grids = [np.full((1, 1), i, np.int8) for i in range(attempts)]
    write_submission(file, {"a": [grids]}, attempts)
    assert len(read_submission(file, attempts)["a"][0]) == attempts
    with pytest.raises(
        SubmissionError, match="'attempt_2' is missing" if attempts == 1 else "'attempt_3' is one too many"
    ):
        read_submission(file)


def entry(**changes):
    return {"x": [{"attempt_1": [[1]], "attempt_2": [[2]], **changes}]}


BAD_FILES = {
    "no JSON": ("{", "not JSON at line 1"),
    "a list": ([], "a submission is an object from task id to attempts, got a list of 0"),
    "a task twice": ('{"x": [], "x": []}', "an object has the key 'x' twice"),
    "an attempt twice": (
        '{"x": [{"attempt_1": [[1]], "attempt_1": [[1]]}]}',
        "an object has the key 'attempt_1' twice",
    ),
    "nested deep": ("[" * 100_000, "cannot be an ARC task|not JSON"),
    "task of no list": ({"x": {"attempt_1": [[1]]}}, "task 'x': a list of test inputs is expected"),
    "input of no object": ({"x": [[[1]]]}, "task 'x', test input 0: an object is expected, got a list of 1"),
    "attempt missing": ({"x": [{"attempt_1": [[1]]}]}, "task 'x', test input 0: 'attempt_2' is missing"),
    "attempt too many": (entry(attempt_3=[[1]]), "'attempt_3' is one too many"),
    "null": (
        entry(attempt_2=None),
        "task 'x', test input 0, attempt_2: a grid is a list of rows or an array, got null",
    ),
    "color 10": (entry(attempt_1=[[10]]), "attempt_1, row 0, column 0: got 10"),
}


@pytest.mark.parametrize(("content", "complaint"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_is_refused_with_the_place(file, content, complaint):
    with pytest.raises(SubmissionError, match=complaint) as caught:
        read_submission(write_json(file, content))
    assert str(caught.value).startswith(str(file))
    assert "\n" not in str(caught.value)


def test_a_huge_file_is_refused_before_it_is_read(file, monkeypatch):
    monkeypatch.setattr(json_format, "MAX_FILE_BYTES", 10)
    with pytest.raises(SubmissionError, match="limit is 10"):
        read_submission(write_json(file, GOOD))


def test_a_submission_that_is_not_the_one_of_its_summary_is_refused(file):
    write_json(file, GOOD)
    summary = file.with_name("summary.json")
    for harmless in ([], {}, {SUBMISSION_DIGEST: hashlib.sha256(file.read_bytes()).hexdigest()}):
        write_json(summary, harmless)
        assert list(read_submission(file)) == list(GOOD)
    write_json(file, of(wrong=None))
    with pytest.raises(SubmissionError, match=r"summary\.json"):
        read_submission(file)


@given(st.data())
def test_a_score_is_what_a_plain_count_of_equal_lists_gives(data):
    """The count of the ARC Prize, on nested lists: a pair is worth a point when either attempt equals its output."""
    submission, points, shares = {}, 0, []
    for raw in EXAM:
        answers = [answer.tolist() for _, answer in raw.test]
        attempts = st.lists(st.sampled_from([*answers, [[0]], [[1, 1]]]), min_size=2, max_size=2)
        chosen = [data.draw(attempts) for _ in answers]
        solved = [answer in two for answer, two in zip(answers, chosen, strict=True)]
        points += sum(solved)
        shares.append(sum(solved) / len(solved))
        submission[raw.task_id] = [[np.array(grid, np.int8) for grid in two] for two in chosen]
    score = score_submission(submission, EXAM)
    assert score.solved_outputs == points
    assert score.mean_task_share == pytest.approx(sum(shares) / len(shares))
    assert score.task_score == shares.count(1.0) / len(shares)


def of(**changes):
    return {task_id: inputs for task_id, inputs in {**GOOD, **changes}.items() if inputs is not None}


OTHER_SETS = {
    "id missing": (of(wrong=None), r"not one for 'exam': it lacks 1 of its 3 tasks \('wrong'\)"),
    "id unknown": (of(other=GOOD["wrong"]), r"it has 1 task\(s\) that the set does not have \('other'\)"),
    "another set": (
        {f"t{i}": GOOD["wrong"] for i in range(5)},
        r"has 5 .* \('t0', 't1', 't2', ...\) and lacks 3 of its 3 tasks \('three', 'right', 'wrong'\); score it",
    ),
    "input missing": (of(three=GOOD["three"][:2]), r"task 'three': 2 test input\(s\) in the submission, but .* has 3"),
    "input too many": (of(right=GOOD["right"] * 2), r"task 'right': 2 test input\(s\) in the submission, but .* has 1"),
    "nothing": ({}, "lacks 3 of its 3 tasks"),
}


@pytest.mark.parametrize(("content", "complaint"), OTHER_SETS.values(), ids=OTHER_SETS)
def test_a_submission_of_another_task_set_is_refused(file, content, complaint):
    submission = read_submission(write_json(file, content))
    with pytest.raises(SubmissionError, match=complaint):
        score_submission(submission, EXAM)
