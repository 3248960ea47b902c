"""Submissions of the ARC Prize: which grids are submitted, the file that holds them, and their score.

The file is ``{task_id: [{"attempt_1": grid, "attempt_2": grid}, ...], ...}``, one object per test input, in order.
An attempt is right if it equals the answer in size and in every cell.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from jaxarc.datasets import TaskSet
from jaxarc.datasets.json_format import read_json_text
from jaxarc.files import write_whole
from jaxarc.host_arrays import is_array
from jaxarc.tasks.raw_task import RawTask, TaskFormatError, check_grid, describe_value, require_answer

Submission: TypeAlias = Mapping[str, Sequence[Sequence[Any]]]
"""By task id: for each test input, in their order, the attempts: arrays ``[h, w]`` of any library, or lists of rows."""

_ATTEMPT: Final = "attempt_"
_SUMMARY: Final = "summary.json"  # beside a submission; holds its SHA-256 under the name below
SUBMISSION_DIGEST: Final = "submission_sha256"


class SubmissionError(TaskFormatError):
    """A submission breaks a rule of the format, or belongs to another task set."""


def write_submission(path: str | Path, submission: Submission, num_attempts: int = 2) -> Path:
    """Write a submission that :func:`read_submission` takes as one file of JSON, whole; attempts are numbered from 1.

    Args:
        path: the file.
        submission: by task id, for each test input, the attempts: arrays of any library, or lists of rows.
        num_attempts: attempts for each test input, no more and no fewer; the ARC Prize takes 2.

    Returns:
        The path.

    Raises:
        SubmissionError: an id is no string, an attempt is missing or one too many, or no grid of ARC; names the place,
            and nothing is written.
    """
    # One line a task, so that two submissions can be compared line by line.
    tasks = []
    for task_id, inputs in check_submission(submission, num_attempts).items():
        entries = [{f"{_ATTEMPT}{i}": grid.tolist() for i, grid in enumerate(grids, start=1)} for grids in inputs]
        tasks.append(f"{json.dumps(task_id)}: {json.dumps(entries)}")
    return write_whole(path, ("{" + ",\n".join(tasks) + "}\n").encode())


def check_submission(
    submission: Mapping[str, Iterable[Iterable[Any]]], num_attempts: int | None = None, source: str = "the submission"
) -> dict[str, list[list[np.ndarray]]]:
    """Return the attempts of a submission as ``int8[h, w]``.

    Args:
        submission: by task id, for each test input, the attempts: arrays of any library, or lists of rows.
        num_attempts: attempts for each test input; None takes any number.
        source: begins each message.
    """
    if not isinstance(submission, Mapping):
        raise SubmissionError(
            f"{source}: a submission is an object from task id to attempts, got {describe_value(submission)}"
        )
    checked = {}
    for task_id, inputs in submission.items():
        where = f"{source}: task {task_id!r}"
        if not isinstance(task_id, str) or not task_id:
            raise SubmissionError(f"{where}: a task id is a string of a letter or more; name the task")
        checked[task_id] = [
            _check_attempts(attempts, f"{where}, test input {index}", num_attempts)
            for index, attempts in enumerate(_entries(inputs, where, "a list of test inputs"))
        ]
    return checked


def _check_attempts(attempts: Any, where: str, num_attempts: int | None) -> list[np.ndarray]:
    listed = _entries(attempts, where, "a list of attempts")
    found = {f"{_ATTEMPT}{number}": grid for number, grid in enumerate(listed, start=1)}
    if num_attempts is not None:
        _require_attempts(found, where, num_attempts)
    try:
        return [check_grid(grid, f"{where}, {name}") for name, grid in found.items()]
    except TaskFormatError as error:
        raise SubmissionError(str(error)) from error


def _require_attempts(names: Iterable[str], where: str, num_attempts: int) -> list[str]:
    """Return the names of as many attempts as are counted, which are these."""
    wanted = [f"{_ATTEMPT}{number}" for number in range(1, num_attempts + 1)]
    missing = [name for name in wanted if name not in names]
    extra = sorted(set(names) - set(wanted))
    if missing or extra:
        problem = f"{missing[0]!r} is missing" if missing else f"{extra[0][:40]!r} is one too many"
        raise SubmissionError(
            f"{where}: {problem}; {num_attempts} attempt(s) are counted: give each, twice the same grid if need be, or "
            "count another number"
        )
    return wanted


def _entries(value: Any, where: str, what: str) -> list[Any]:
    if not isinstance(value, list | tuple) and not is_array(value):
        raise SubmissionError(f"{where}: {what} is expected, got {describe_value(value)}; give one entry for each")
    return list(value)


def read_submission(path: str | Path, num_attempts: int = 2) -> dict[str, list[list[np.ndarray]]]:
    """Read a submission and check everything that can be checked without its task set.

    Args:
        path: the file.
        num_attempts: attempts for each test input, no more and no fewer; the ARC Prize takes 2.

    Raises:
        SubmissionError: the file is missing, too large, not as its evaluation wrote it, not UTF-8, not JSON, has a key
            twice, or is no submission; the message names file, task, test input and attempt.
        OSError: the file cannot be read.
    """
    file = Path(path)
    try:
        data = read_json_text(file)
    except TaskFormatError as error:
        raise SubmissionError(str(error)) from error
    _require_as_written(file)
    if not isinstance(data, dict):
        raise SubmissionError(f"{file}: a submission is an object from task id to attempts, got {describe_value(data)}")
    listed = {
        task_id: [
            _attempts_of(entry, f"{file}: task {task_id!r}, test input {index}", num_attempts)
            for index, entry in enumerate(_entries(inputs, f"{file}: task {task_id!r}", "a list of test inputs"))
        ]
        for task_id, inputs in data.items()
    }
    return check_submission(listed, num_attempts, str(file))


def _attempts_of(entry: Any, where: str, num_attempts: int) -> list[Any]:
    if not isinstance(entry, dict):
        raise SubmissionError(
            f"{where}: an object is expected, got {describe_value(entry)}; "
            'write {"attempt_1": grid, "attempt_2": grid}'
        )
    return [entry[name] for name in _require_attempts(entry, where, num_attempts)]


def _require_as_written(file: Path) -> None:
    """Compare a submission with the checksum in the summary of its evaluation, if there is one beside it."""
    try:
        summary = json.loads(file.with_name(_SUMMARY).read_bytes())
    except (FileNotFoundError, ValueError, RecursionError):
        return
    # A submission without a summary beside it comes from elsewhere, and is scored as it is.
    digest = summary.get(SUBMISSION_DIGEST) if isinstance(summary, dict) else None
    if digest is not None and digest != hashlib.sha256(file.read_bytes()).hexdigest():
        raise SubmissionError(
            f"{file}: its SHA-256 is not the one in {_SUMMARY} beside it; evaluate again, or move it to another folder "
            "to score it as it is"
        )


@dataclass(frozen=True)
class Score:
    """The solved test outputs, and the three scores in use."""

    solved: Mapping[str, tuple[bool, ...]]  # by task id: whether an attempt at each test output is right

    def __repr__(self) -> str:
        return (
            f"Score({self.solved_outputs} of {self.num_outputs} outputs, {self.solved_tasks} of {self.num_tasks} tasks)"
        )

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
        SubmissionError: an id is missing or unknown, a task has another number of test inputs, or one is no grid.
        UnknownAnswerError: the answer of a test input is unknown.
    """
    submission = check_submission(submission)
    _require_same_ids(submission, tasks)
    solved = {}
    for task in tasks:
        inputs = submission[task.task_id]
        if len(inputs) != len(task.test):
            raise SubmissionError(
                f"task {task.task_id!r}: {len(inputs)} test input(s) in the submission, but the task has "
                f"{len(task.test)}; give one entry per test input, in their order"
            )
        for index, pair in enumerate(task.test):
            require_answer(pair, f"task {task.task_id!r}, test input {index}")
        solved[task.task_id] = solved_outputs(inputs, task)
    return Score(solved)


def solved_outputs(inputs: Sequence[Sequence[np.ndarray]], task: RawTask) -> tuple[bool, ...]:
    """Whether any attempt at each test output of a task is right; an unknown answer is equal to no attempt."""
    return tuple(
        any(is_right(attempt, answer) for attempt in attempts)
        for attempts, (_, answer) in zip(inputs, task.test, strict=True)
    )


def is_right(attempt: np.ndarray, answer: np.ndarray) -> bool:
    """Whether a grid is the answer, cell by cell and in size."""
    return np.array_equal(attempt, answer)


def _require_same_ids(submission: Submission, tasks: TaskSet) -> None:
    # Both directions are checked: a missing task would count as unsolved in silence, an unknown one not at all.
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


def majority_vote(grids: Sequence[np.ndarray], count: int) -> list[np.ndarray]:
    """Return the most frequent distinct grids, the more frequent first, and of equally frequent ones the first seen.

    Where there are fewer distinct grids than asked for, the first one fills the rest. The votes ``A B C B C B`` elect
    ``B C`` for two attempts, ``B C A`` for three, and ``B C A B`` for four.

    Args:
        grids: votes of any sizes, at least one; arrays of any library, or lists of rows.
        count: how many to return.
    """
    grids = [check_grid(grid, f"vote {number}") for number, grid in enumerate(grids, start=1)]
    # Read backwards, so that of equal grids the first one stays. ``most_common`` keeps the order
    # of first occurrence among equal counts.
    by_content = {(grid.shape, grid.tobytes()): grid for grid in reversed(grids)}  # the first of equal grids
    votes = Counter((grid.shape, grid.tobytes()) for grid in grids)
    ranked = [by_content[content] for content, _ in votes.most_common(count)]  # keeps the order of equal counts
    return ranked + ranked[:1] * (count - len(ranked))
