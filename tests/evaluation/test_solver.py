"""Solvers in plain Python: what they get, what they may return, and what their mistakes cost."""

import numpy as np
import pytest
from small_exam import EXAM, task, task_set

from jaxarc.evaluation import evaluate_solver
from jaxarc.evaluation.solver import PLACEHOLDER

HIDDEN = task_set(task("hidden", ([[1, 2]], None)))


def rows(result):
    return {row.task_id: row for row in result.rows}


def test_the_identity_solves_what_is_its_own_answer():
    seen = []
    result = evaluate_solver(lambda train, grid: grid, EXAM, on_progress=lambda *counts: seen.append(counts))
    assert result.score.solved == {"three": (True, False, True), "right": (True,), "wrong": (False,)}
    three = rows(result)["three"]
    assert (three.solved_outputs, three.num_outputs, three.attempts, three.solves) == (2, 3, 6, 4)
    assert (three.submitted, three.mean_steps) == (None, None)
    assert rows(result)["wrong"].best_similarity == 0.5  # [[5]] of [[5, 5]]
    assert seen == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize(
    ("answer", "attempts"),
    [
        ([[1, 2]], ["1 2", "1 2"]),
        (np.array([[1, 2]]), ["1 2", "1 2"]),
        ([np.array([1, 2])], ["1 2", "1 2"]),
        ([[np.int64(1), 2]], ["1 2", "1 2"]),
        ([[[1, 2]], [[3]]], ["1 2", "3"]),
        ((np.array([[1, 2]]), [[3]], [[4]]), ["1 2", "3"]),
        (np.array([[[1, 2]], [[3, 4]]]), ["1 2", "3 4"]),
    ],
)
def test_one_grid_or_several_as_arrays_or_lists(answer, attempts):
    result = evaluate_solver(lambda train, grid: answer, HIDDEN)
    assert [" ".join(map(str, grid.ravel())) for grid in result.submission["hidden"][0]] == attempts
    assert rows(result)["hidden"].error is None


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "NoneType"),
        ([], "list"),
        ([[1], [2, 3]], "row 1"),
        ([[11]], "11"),
        ([[[1]], [[10]]], "attempt 2"),
        ("12", "str"),
    ],
)
def test_what_is_no_grid_is_an_error_of_its_task(answer, words):
    result = evaluate_solver(lambda train, grid: answer, EXAM)
    assert words in rows(result)["right"].error
    assert rows(result)["right"].error.startswith("test input 0: TaskFormatError")
    assert result.score.solved_outputs == 0


def test_errors_are_kept_by_task_and_the_run_goes_on():
    def solve(train, grid):
        if grid[0, 0] == 2:
            raise KeyError("two")
        if grid[0, 0] == 4:
            raise SystemExit(3)
        return grid

    result = evaluate_solver(solve, EXAM)
    first, *_ = (row.error for row in result.rows)
    assert first.startswith("test input 1: KeyError: 'two'")
    assert f"({__file__}, line " in first
    assert [row.error is None for row in result.rows] == [False, True, True]
    assert result.score.solved["three"] == (True, False, False)
    # A file to hand in needs a grid everywhere; the placeholder is no attempt of the solver's.
    assert [len(grids) for grids in result.submission["three"]] == [2, 2, 2]
    assert rows(result)["three"].attempts == 2


def test_a_placeholder_never_counts_as_solved():
    def solve(train, grid):
        raise ValueError

    result = evaluate_solver(solve, task_set(task("zeros", ([[1]], PLACEHOLDER))))
    assert result.score.solved == {"zeros": (False,)}
    assert rows(result)["zeros"].best_similarity == 0.0


def test_a_solver_gets_copies_of_demonstrations_and_input_alone():
    taken = []

    def solve(train, grid):
        taken.append((len(train), train[0][0].tolist(), train[0][1].tolist(), grid.dtype))
        train[0][0][:] = 7
        grid[:] = 100 * grid  # int8 would overflow
        return grid // 100

    result = evaluate_solver(solve, EXAM, attempts=1)
    assert taken == [(1, [[1]], [[2]], np.int64)] * 5
    assert EXAM.raw_task("right").test[0][0].tolist() == [[5, 6], [7, 8]]
    assert result.score.solved["right"] == (True,)


def test_a_hidden_set_has_a_submission_and_no_score():
    result = evaluate_solver(lambda train, grid: grid, HIDDEN)
    row = rows(result)["hidden"]
    assert result.score is None
    assert repr(result) == "Evaluation(1 tasks, answers unknown)"
    assert (row.num_outputs, row.solved_outputs, row.solves, row.best_similarity) == (1, None, None, None)
    assert result.submission["hidden"][0][0].tolist() == [[1, 2]]


def test_ctrl_c_leaves_the_solver():
    def solve(train, grid):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate_solver(solve, EXAM)
