"""How an evaluation went task by task: means hide that 3 of 400 tasks are solved."""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TypeAlias

from jaxarc.files import write_whole

ActionCounts: TypeAlias = Mapping[tuple[str, int], int]
"""By task id and index of the test input: how many actions an expert took."""


@dataclass(frozen=True)
class EpisodeResult:
    """One episode as the table counts it."""

    is_right: bool  # its grid is the answer
    submitted: bool
    steps: int
    best_similarity: float  # 0 .. 1


@dataclass(frozen=True)
class TaskRow:
    """One task of an evaluation."""

    task_id: str
    num_outputs: int  # test outputs of the task
    solved_outputs: int  # of which an attempt that was handed in is right
    attempts: int  # episodes played: every attempt, or every vote, at every test input
    solves: int  # of these, whose grid is the answer
    submitted: int  # of these, ended by the agent; the others ran out of time
    first_solving_step: int | None  # fewest steps of an episode that solved; None: none did
    best_similarity: float  # 0 .. 1, of any grid in any episode with the answer
    mean_steps: float  # of an episode
    efficiency: float | None  # expert's actions over fewest steps, mean of the solved outputs whose count is known


def make_row(
    task_id: str, solved: Sequence[bool], played: Sequence[Sequence[EpisodeResult]], counts: ActionCounts
) -> TaskRow:
    """Sum up the episodes of one task.

    Args:
        task_id: names it.
        solved: of each test output, whether an attempt that was handed in is right.
        played: the episodes at each test input.
        counts: what an expert needed, where that is known.
    """
    episodes = [episode for at_input in played for episode in at_input]
    fewest = [min((e.steps for e in at_input if e.is_right), default=None) for at_input in played]
    ratios = [
        counts[task_id, i] / steps for i, steps in enumerate(fewest) if steps is not None and (task_id, i) in counts
    ]
    return TaskRow(
        task_id=task_id,
        num_outputs=len(solved),
        solved_outputs=sum(solved),
        attempts=len(episodes),
        solves=sum(episode.is_right for episode in episodes),
        submitted=sum(episode.submitted for episode in episodes),
        first_solving_step=min((steps for steps in fewest if steps is not None), default=None),
        best_similarity=max(episode.best_similarity for episode in episodes),
        mean_steps=fmean(episode.steps for episode in episodes),
        efficiency=fmean(ratios) if ratios else None,
    )


def best_first(rows: Iterable[TaskRow]) -> list[TaskRow]:
    """Sort by share of solved outputs, then of solving episodes, then by best similarity; equal ones by id."""
    key = lambda row: (-row.solved_outputs / row.num_outputs, -row.solves / row.attempts, -row.best_similarity)
    return sorted(rows, key=lambda row: (*key(row), row.task_id))


def write_task_rows(path: str | Path, rows: Iterable[TaskRow]) -> Path:
    """Write one line of JSON per task, whole.

    Returns:
        The path.
    """
    return write_whole(path, "".join(f"{json.dumps(dataclasses.asdict(row))}\n" for row in rows).encode())
