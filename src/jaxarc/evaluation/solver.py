"""Evaluate a solver: a plain Python function from the demonstrations and a test input of a task to guessed grids."""

import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Int8

from jaxarc.config import EvaluationConfig
from jaxarc.datasets import TaskSet
from jaxarc.evaluation.evaluate import Evaluation
from jaxarc.evaluation.submission import score_submission
from jaxarc.evaluation.task_rows import rows_of_submission
from jaxarc.experts.expert import Caught
from jaxarc.host_arrays import is_array, to_numpy
from jaxarc.jobs import HERE, Job, Place, run
from jaxarc.tasks import RawTask
from jaxarc.tasks.raw_task import TaskFormatError, check_grid

Solver: TypeAlias = Callable[[list[tuple[np.ndarray, np.ndarray]], np.ndarray], Any]
"""``solve(train, test_input)``: the demonstrations as (input, output) and a test input, NumPy arrays of whole numbers
``[h, w]`` that it may change. It returns a grid or several, the likeliest first, as arrays or lists of rows."""

# What stands in a submission for a test input without an attempt, as in Kaggle's sample file. No test output of
# ARC-AGI-1 and 2 is equal to it.
PLACEHOLDER: Final = np.zeros((2, 2), np.int8)


class SolvedTask(NamedTuple):
    """A task after its solver was called for each test input."""

    task: RawTask
    attempts: list[list[Int8[np.ndarray, "h w"]]]  # at each test input, as many as are asked for; none after an error
    error: str | None  # the first one: test input, type, message and line


def evaluate_solver(
    solve: Solver,
    tasks: TaskSet,
    attempts: int = EvaluationConfig.attempts,
    *,
    on_progress: Callable[[int, int], None] = lambda done, total: None,
) -> Evaluation:
    """Let a solver guess the answer of every test input of a task set, and score its guesses by the rules of ARC.

    The first ``attempts`` grids that it returns count; where there are fewer, the first one fills the rest. A test
    input at which it raises an error, or returns something else than grids, has no attempt: the row of the task names
    the error, and the run goes on.

    Args:
        solve: called once for each test input, see :data:`Solver`.
        tasks: with or without the answers of the tests; the solver does not see them.
        attempts: at each test input; the ARC Prize counts 2.
        on_progress: called with tasks done and tasks in all.

    Raises:
        TypeError: the solver cannot be called.
        ValueError: there is no attempt.
    """
    if not callable(solve):
        raise TypeError(f"a solver is a function solve(train, test_input), got {type(solve).__name__}; pass one")
    if attempts < 1:
        raise ValueError(f"attempts must be at least 1, got {attempts}; the ARC Prize counts 2")
    done = []
    for solved in solve_tasks(Job(lambda: solve), tasks, attempts):
        done.append(solved)
        on_progress(len(done), len(tasks))
    return evaluation_of(done, tasks.name, attempts)


def solve_tasks(
    load: Job,
    tasks: TaskSet,
    attempts: int,
    place: Place = HERE,
    seconds: float | None = None,
    folder: Path | None = None,
    about: str | None = None,
) -> Iterator[SolvedTask]:
    """Yield each task as soon as its solver was called for all its test inputs.

    A test input at which the solver exceeds its time, or ends its process twice, has no attempt and an error.

    Args:
        load: returns the solver, once in each process.
        tasks: see :func:`evaluate_solver`.
        attempts: at each test input.
        place: where the solver is called.
        seconds: for each test input, in another process; None: without a limit.
        folder: keeps what is done, so that the same call goes on after a kill.
        about: the solver, for the folder.
    """
    inputs = [(task, source) for task in tasks for source, _ in task.test]
    jobs = [Job(_solve, (task.train, source, attempts), seconds) for task, source in inputs]
    ends = dict(zip((task.task_id for task in tasks), accumulate(len(task.test) for task in tasks), strict=True))
    done: dict[int, _Guesses] = {}
    settings = {"the tasks": tasks.name, "the solver": about, "attempts": attempts, "seconds": seconds}
    for outcome in run(jobs, place, load, folder, settings):
        task, _ = inputs[outcome.job]
        done[outcome.job] = ([], outcome.fault) if outcome.fault is not None else outcome.value
        of_task = range(ends[task.task_id] - len(task.test), ends[task.task_id])
        if all(index in done for index in of_task):
            yield _solved(task, [done.pop(index) for index in of_task])


_Guesses: TypeAlias = tuple[list[list[list[int]]], str | None]  # attempts at a test input, as rows, and the error


def _solved(task: RawTask, guesses: list[_Guesses]) -> SolvedTask:
    errors = [f"test input {index}: {error}" for index, (_, error) in enumerate(guesses) if error is not None]
    attempts = [[np.array(grid, np.int8) for grid in grids] for grids, _ in guesses]
    return SolvedTask(task, attempts, errors[0] if errors else None)


def evaluation_of(done: Iterable[SolvedTask], name: str, attempts: int) -> Evaluation:
    """Score what a solver has done of the task set of this name, with as many attempts as were asked for."""
    solved = list(done)
    tasks = TaskSet(name, tuple(one.task for one in solved))
    guesses = {one.task.task_id: one.attempts for one in solved}
    errors = {one.task.task_id: one.error for one in solved if one.error is not None}
    score = score_submission(guesses, tasks) if tasks.has_answers else None
    submission = {
        task_id: [grids or [PLACEHOLDER] * attempts for grids in inputs] for task_id, inputs in guesses.items()
    }
    return Evaluation(submission, score, rows_of_submission(guesses, tasks, errors))


def _solve(
    solve: Solver, train: Sequence[tuple[np.ndarray, np.ndarray]], test_input: np.ndarray, attempts: int
) -> _Guesses:
    # Copies, so that a solver that edits its grids changes no task; int64, in which 10 * color does not overflow.
    shown = [(source.astype(np.int64), target.astype(np.int64)) for source, target in train]
    with Caught() as caught:
        grids = [grid.tolist() for grid in _grids_of(solve(shown, test_input.astype(np.int64)))[:attempts]]
        return grids + grids[:1] * (attempts - len(grids)), None
    assert caught.error is not None
    return [], _describe(caught.error)


def _grids_of(answer: Any) -> list[np.ndarray]:
    """Turn one grid or several, arrays or lists of rows, into checked grids."""
    depth = _depth(answer)
    if depth not in (2, 3):
        raise TaskFormatError(
            f"a solver returns a grid or a list of grids, got {type(answer).__name__} of depth {depth}; return "
            "[[0, 1], [2, 3]], an array, or a list of these"
        )
    grids = [answer] if depth == 2 else list(answer)
    return [check_grid(grid, f"attempt {number}") for number, grid in enumerate(grids, start=1)]


def _depth(value: Any) -> int:
    """How deep lists and arrays are nested along their first entries: a grid has depth 2, a list of grids 3."""
    if is_array(value):
        return to_numpy(value).ndim
    return 1 + _depth(value[0]) if isinstance(value, list | tuple) and value else 0


def _describe(error: Exception) -> str:
    """Write an error in one line, with the last place in the file of the solver that led to it."""
    message = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    frames = traceback.extract_tb(error.__traceback__)[1:]  # the first frame is the call here
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    if not own or isinstance(error, TaskFormatError):  # what was returned is wrong, not a line
        return message
    return f"{message} ({own[-1].filename}, line {own[-1].lineno})"
