"""A row for each task of an evaluation, because a mean hides that 3 of 400 tasks are solved."""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np
from jaxtyping import Int8

from jaxarc.evaluation.submission import Submission, check_submission, is_right, solved_outputs
from jaxarc.files import write_whole
from jaxarc.tasks import RawTask


@dataclass(frozen=True)
class EpisodeResult:
    """One episode as the table counts it."""

    is_right: bool  # its grid is the answer
    submitted: bool
    steps: int
    best_similarity: float  # 0 .. 1


@dataclass(frozen=True)
class TaskRow:
    """One task of an evaluation.

    What depends on an answer is None where the answers of the task are unknown; what counts steps is None where grids
    were submitted without an episode, by a solver or in a file.
    """

    task_id: str
    num_outputs: int  # test outputs of the task
    solved_outputs: int | None  # of these, with a right attempt in the submission
    attempts: int  # episodes played: every attempt, or every vote, at every test input; or grids submitted
    solves: int | None  # of these, whose grid is the answer
    submitted: int | None  # of these, ended by the agent; the others ran out of time
    first_solving_step: int | None  # fewest steps of an episode that solved; None, too, where none did
    best_similarity: float | None  # 0 .. 1, of any grid in any episode with the answer, or of any grid submitted
    mean_steps: float | None  # of an episode
    error: str | None = None  # of a solver: the first one, which left a test input without an attempt


def make_row(task_id: str, solved: Sequence[bool] | None, results: Sequence[Sequence[EpisodeResult]]) -> TaskRow:
    """Sum up the episodes of one task.

    Args:
        task_id: of the task.
        solved: of each test output, whether an attempt in the submission is right; None where answers are unknown.
        results: the episodes at each test input.
    """
    episodes = [episode for at_input in results for episode in at_input]
    is_known = solved is not None
    return TaskRow(
        task_id=task_id,
        num_outputs=len(results),
        solved_outputs=sum(solved) if solved is not None else None,
        attempts=len(episodes),
        solves=sum(episode.is_right for episode in episodes) if is_known else None,
        submitted=sum(episode.submitted for episode in episodes),
        first_solving_step=min((episode.steps for episode in episodes if episode.is_right), default=None),
        best_similarity=max(episode.best_similarity for episode in episodes) if is_known else None,
        mean_steps=fmean(episode.steps for episode in episodes),
    )


def rows_of_submission(
    submission: Submission, tasks: Iterable[RawTask], errors: Mapping[str, str] | None = None
) -> tuple[TaskRow, ...]:
    """Compare the grids of a submission with the answers, a row for each task.

    Args:
        submission: attempts for every test input of every task.
        tasks: those of the submission, with or without their answers.
        errors: by task id, of a solver.
    """
    submission = check_submission(submission)
    return tuple(_row_of_grids(task, submission[task.task_id], (errors or {}).get(task.task_id)) for task in tasks)


def best_first(rows: Iterable[TaskRow]) -> list[TaskRow]:
    """Sort by share of solved outputs, then of solving episodes, then by best similarity; equal ones by id."""
    key = lambda row: (
        -(row.solved_outputs or 0) / row.num_outputs,
        -(row.solves or 0) / max(row.attempts, 1),
        -(row.best_similarity or 0),
    )
    return sorted(rows, key=lambda row: (*key(row), row.task_id))


def write_task_rows(path: str | Path, rows: Iterable[TaskRow]) -> Path:
    """Write one line of JSON per task, whole.

    Returns:
        The path.
    """
    return write_whole(path, "".join(f"{json.dumps(dataclasses.asdict(row))}\n" for row in rows).encode())


def _row_of_grids(task: RawTask, inputs: Sequence[Sequence[np.ndarray]], error: str | None) -> TaskRow:
    compared = [(grid, answer) for grids, (_, answer) in zip(inputs, task.test, strict=True) for grid in grids]
    is_known = task.has_answers
    return TaskRow(
        task_id=task.task_id,
        num_outputs=len(task.test),
        solved_outputs=sum(solved_outputs(inputs, task)) if is_known else None,
        attempts=len(compared),
        solves=sum(is_right(*pair) for pair in compared) if is_known else None,
        submitted=None,
        first_solving_step=None,
        best_similarity=max((_similarity(*pair) for pair in compared), default=0.0) if is_known else None,
        mean_steps=None,
        error=error,
    )


def _similarity(grid: Int8[np.ndarray, "h w"], answer: Int8[np.ndarray, "h2 w2"]) -> float:
    """Equal cells over cells of the union, as :func:`jaxarc.envs.canvas.similarity` does in an episode."""
    # Of 2x3 and 3x2 the upper left 2x2 can be equal, and the union is counted as the box around both, 3x3.
    height, width = (min(sides) for sides in zip(grid.shape, answer.shape, strict=True))
    rows, columns = (max(sides) for sides in zip(grid.shape, answer.shape, strict=True))
    return int((grid[:height, :width] == answer[:height, :width]).sum()) / (rows * columns)
