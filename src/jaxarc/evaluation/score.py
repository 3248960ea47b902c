"""What a submission is worth by the rules of ARC: exact match, size included, of any attempt."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jaxarc.datasets import TaskSet
from jaxarc.evaluation.submission import Submission, SubmissionError


@dataclass(frozen=True)
class Score:
    """Which test outputs are solved, and the three numbers that are made of it."""

    solved: Mapping[str, tuple[bool, ...]]  # by task id: whether an attempt at each test output is right

    @property
    def num_tasks(self) -> int:
        return len(self.solved)

    @property
    def num_outputs(self) -> int:
        return sum(len(outputs) for outputs in self.solved.values())

    @property
    def solved_tasks(self) -> int:
        """Tasks of which every test output is solved."""
        return sum(all(outputs) for outputs in self.solved.values())

    @property
    def solved_outputs(self) -> int:
        return sum(sum(outputs) for outputs in self.solved.values())

    @property
    def output_score(self) -> float:
        """Solved test outputs over all test outputs, 0 .. 1: as Kaggle counts for the ARC Prize."""
        return self.solved_outputs / self.num_outputs

    @property
    def task_score(self) -> float:
        """Tasks solved entirely over all tasks, 0 .. 1: as the authors of ARC count."""
        return self.solved_tasks / self.num_tasks

    @property
    def mean_task_share(self) -> float:
        """Mean over tasks of the share of their test outputs, 0 .. 1: as the ARC Prize's benchmarking tool counts."""
        return sum(sum(outputs) / len(outputs) for outputs in self.solved.values()) / self.num_tasks

    def as_dict(self) -> dict[str, int | float]:
        """Return the numbers, for JSON."""
        return {
            "output_score": self.output_score,
            "task_score": self.task_score,
            "mean_task_share": self.mean_task_share,
            "solved_outputs": self.solved_outputs,
            "num_outputs": self.num_outputs,
            "solved_tasks": self.solved_tasks,
            "num_tasks": self.num_tasks,
        }


def score_submission(submission: Submission, tasks: TaskSet) -> Score:
    """Compare every attempt with the answer.

    Args:
        submission: attempts for every test input of every task, in any order of tasks.
        tasks: holds the answers.

    Raises:
        SubmissionError: an id is missing or unknown, or a task has another number of test inputs.
    """
    _require_same_ids(submission, tasks)
    solved = {}
    for task in tasks:
        inputs = submission[task.task_id]
        if len(inputs) != len(task.test):
            raise SubmissionError(
                f"task {task.task_id!r}: {len(inputs)} test input(s) in the submission, but the task has "
                f"{len(task.test)}; give one entry per test input, in their order"
            )
        solved[task.task_id] = tuple(
            any(is_right(attempt, answer) for attempt in attempts)
            for attempts, (_, answer) in zip(inputs, task.test, strict=True)
        )
    return Score(solved)


def is_right(attempt: np.ndarray, answer: np.ndarray) -> bool:
    """Whether a grid is the answer, cell by cell and in size."""
    return np.array_equal(attempt, answer)


def _require_same_ids(submission: Submission, tasks: TaskSet) -> None:
    unknown = [task_id for task_id in submission if task_id not in tasks]
    missing = [task_id for task_id in tasks.task_ids if task_id not in submission]
    complaints = []
    if unknown:
        complaints.append(f"has {len(unknown)} task(s) that the set does not have ({_some(unknown)})")
    if missing:
        complaints.append(f"lacks {len(missing)} of its {len(tasks)} tasks ({_some(missing)})")
    if complaints:
        raise SubmissionError(
            f"the submission is not one for {tasks.name!r}: it {' and '.join(complaints)}; "
            "score it against the task set that it was made for"
        )


def _some(ids: Sequence[str]) -> str:
    shown = ", ".join(repr(task_id[:40]) for task_id in ids[:3])
    return f"{shown}, ..." if len(ids) > 3 else shown
