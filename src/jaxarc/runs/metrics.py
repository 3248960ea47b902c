"""Metrics: the reports of a run, one line of JSON for each seed and moment; and tables, a line of JSON for each row."""

import dataclasses
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

from jaxarc.files import names_file, write_whole
from jaxarc.runs.folder import RunFolderError


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
class MetricsFile:
    """Reports as lines of JSON; those of one moment are handed to the system in one piece."""

    path: Path
    kind: type[RunReport]

    def append(self, reports: Sequence[Any]) -> None:
        lines = [json.dumps(dataclasses.asdict(report)) + "\n" for report in reports]
        # All seeds of one moment go out in one write, so that a run that is killed rarely leaves a part of them.
        with names_file(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write("".join(lines))

    def flush(self) -> None:
        """Wait until all lines are on the disk."""
        with names_file(self.path), self.path.open("ab") as file:
            os.fsync(file.fileno())

    def cut(self, num_lines: int) -> list[Any]:
        """Drop what follows the first lines, and return their reports.

        Raises:
            RunFolderError: there are fewer lines, or one of them is not a report; the file is left as it is.
        """
        # The lines are read before the file is replaced: what cannot be read is not cut.
        reports = self.head(num_lines)
        write_whole(self.path, b"".join(self._lines()[:num_lines]))
        return reports

    def head(self, num_lines: int) -> list[Any]:
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


def write_table(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows, whole or not at all; each row has in ``of`` the number of rows, so that a reader misses none.

    Raises:
        OSError: the file cannot be written.
    """
    rows = list(rows)
    write_whole(path, "".join(json.dumps({**row, "of": len(rows)}) + "\n" for row in rows).encode())


def read_table(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the rows, and how many are unreadable or missing; a missing file has no rows.

    Raises:
        OSError: the file is there and cannot be read.
    """
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return [], 0
    # A file that was cut between two lines has only good ones, but they say how many there
    # should be: 3 good rows "of" 5 are 2 missing.
    rows = [row for line in lines if (row := read_row(line)) is not None]
    wanted = [row["of"] for row in rows if type(row.get("of")) is int]
    return rows, max([len(lines), *wanted]) - len(rows)


def read_row(line: bytes) -> dict[str, Any] | None:
    """Read a line of JSON; None if it is not an object."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
