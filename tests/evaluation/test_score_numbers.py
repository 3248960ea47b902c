"""The numbers made of solved test outputs, each as its source counts, and what counts as an answer."""

import dataclasses

import numpy as np
import pytest

from jaxarc.datasets import TaskSet
from jaxarc.evaluation.submission import Score, SubmissionError, is_right, score_submission
from jaxarc.tasks import RawTask

SCORE = Score({"all": (True, True), "half": (True, False), "none": (False, False, False), "one": (True,)})


def test_the_numbers_are_those_of_a_hand_count():
    assert SCORE.as_dict() == {
        "output_score": 4 / 8,
        "task_score": 2 / 4,
        "mean_task_share": (1 + 1 / 2 + 0 + 1) / 4,
        "solved_outputs": 4,
        "num_outputs": 8,
        "solved_tasks": 2,
        "num_tasks": 4,
    }


def test_a_score_stays_as_it_is():
    with pytest.raises(dataclasses.FrozenInstanceError):
        SCORE.solved = {}


@pytest.mark.parametrize(
    ("attempt", "right"),
    [([[1, 2]], True), ([[1, 3]], False), ([[1], [2]], False), ([[1, 2], [1, 2]], False), ([[1]], False)],
)
def test_an_answer_is_right_cell_by_cell_and_in_size(attempt, right):
    assert is_right(np.array(attempt, np.int8), np.array([[1, 2]], np.int8)) == right


@pytest.mark.parametrize(("count", "named"), [(3, "'a', 'b', 'c'"), (4, "'a', 'b', 'c', ...")])
def test_of_many_unknown_tasks_three_are_named(count, named):
    grid = np.ones((1, 1), np.int8)
    tasks = TaskSet("one", (RawTask("known", ((grid, grid),), ((grid, grid),)),))
    submission = {name: [[grid]] for name in ("known", *"abcd"[:count])}
    with pytest.raises(SubmissionError, match=rf"{count} task\(s\).*\({named}\)"):
        score_submission(submission, tasks)
