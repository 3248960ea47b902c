"""Metrics: the reports of a run, one line of JSON for each seed and moment."""

import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from jaxarc.files import names_file, write_whole
from jaxarc.training.run_folder import RunFolderError


class RunReport(Protocol):
    """The fields that reports of all kinds of runs have."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def update(self) -> int:
        """Updates so far."""
        ...

    @property
    def seconds(self) -> float:
        """Since learning began, without compilation and saving."""
        ...

    @property
    def seed(self) -> int: ...

    @property
    def samples(self) -> int:
        """The samples so far: environment steps, or examples."""
        ...

    @property
    def score(self) -> float | None:
        """By which one checkpoint is better than another, the higher the better; None where nothing was measured."""
        ...


Kind = TypeVar("Kind", bound=RunReport)


@dataclass(frozen=True)
class Report:
    """The metrics of an agent at one moment; rates are 0 .. 1, and None stands for what was not measured."""

    update: int  # updates so far
    environment_steps: int  # so far, over all environments of this seed
    seconds: float  # since learning began, without compilation and saving
    seed: int = 0  # of the agent
    steps_per_second: float | None = None  # of this seed's environments, with learning
    episodes: int = 0  # training episodes that ended
    mean_return: float | None = None  # of those episodes, undiscounted
    mean_length: float | None = None  # their steps
    episode_solve_rate: float | None = None  # of those episodes: sampled edits, some starts partly solved
    train_solve_rate: float | None = None  # of the training pairs, each played once by the greedy policy
    evaluation_solve_rate: float | None = None  # of the unseen pairs, each played once by the greedy policy
    policy_loss: float | None = None
    value_loss: float | None = None
    entropy: float | None = None
    approx_kl: float | None = None
    clip_fraction: float | None = None
    gradient_norm: float | None = None  # before it is clipped
    answer_loss: float | None = None  # of the predictor of answers, in nats a cell
    tasks_played: int | None = None  # tasks on which an episode ended, since learning began
    effective_tasks: float | None = None  # equally likely tasks that would be as hard to guess as the next one drawn

    @property
    def samples(self) -> int:
        return self.environment_steps

    @property
    def score(self) -> float | None:
        return self.evaluation_solve_rate


@dataclass(frozen=True)
class MetricsFile(Generic[Kind]):
    """Reports as lines of JSON; those of one moment are handed to the system in one piece."""

    path: Path
    kind: type[Kind]

    def append(self, reports: Sequence[Kind]) -> None:
        lines = [json.dumps(dataclasses.asdict(report)) + "\n" for report in reports]
        # All seeds of one moment go out in one write, so that a run that is killed rarely leaves a part of them.
        with names_file(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write("".join(lines))

    def flush(self) -> None:
        """Wait until all lines are on the disk."""
        with names_file(self.path), self.path.open("ab") as file:
            os.fsync(file.fileno())

    def cut(self, num_lines: int) -> list[Kind]:
        """Drop what follows the first lines, and return their reports.

        Raises:
            RunFolderError: there are fewer lines, or one of them is not a report; the file is left as it is.
        """
        # The lines are read before the file is replaced: what cannot be read is not cut.
        reports = self.head(num_lines)
        write_whole(self.path, b"".join(self._lines()[:num_lines]))
        return reports

    def head(self, num_lines: int) -> list[Kind]:
        """Return the reports of the first lines.

        Raises:
            RunFolderError: there are fewer lines, or one of them is not a report.
        """
        lines = self._lines()
        if len(lines) < num_lines:
            raise RunFolderError(
                f"{self.path} has {len(lines)} lines, but its run's checkpoint was saved after {num_lines}; "
                "bring the file back, or train again"
            )
        try:
            return _read_lines(self.path, lines[:num_lines], self.kind)
        except ValueError as error:
            raise RunFolderError(f"{error}; bring the file back, or train again") from error

    def _lines(self) -> list[bytes]:
        return self.path.read_bytes().splitlines(keepends=True) if self.path.exists() else []


def read_metrics(path: Path) -> list[Report]:
    """Read the reports of a metrics file, in order.

    Raises:
        ValueError: a line is not a report.
    """
    return read_reports(path, Report)


def read_reports(path: Path, kind: type[Kind]) -> list[Kind]:
    """Read the reports of a kind, in order.

    Raises:
        ValueError: a line is not a report of this kind.
    """
    return _read_lines(path, path.read_bytes().splitlines(), kind)


def _read_lines(path: Path, lines: Sequence[bytes], kind: type[Kind]) -> list[Kind]:
    reports = []
    for number, line in enumerate(lines, start=1):
        try:
            reports.append(_report(line, kind))
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"{path}, line {number} is not a report of a training run: {error}") from error
    return reports


def _report(line: bytes, kind: type[Kind]) -> Kind:
    row = json.loads(line)
    known = [field.name for field in dataclasses.fields(kind)]
    if not isinstance(row, dict):
        raise ValueError("it is no JSON object")
    for name, value in row.items():
        if name not in known:
            raise ValueError(f"there is no number {name!r:.60}")
        # ``type`` and not ``isinstance``, which takes true for 1. A huge integer has no float, so it cannot be drawn.
        is_number = type(value) is float or (type(value) is int and abs(value) <= sys.float_info.max)
        if value is not None and not is_number:
            raise ValueError(f"{name} is a number or null, got {value!r:.60}")
    return kind(**row)
