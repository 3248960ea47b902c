"""Measure rows interleaved, so that other work on the machine affects all of them alike."""

import difflib
import os
import platform
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import jax

from jaxarc.benchmarks.suite import Budget, Measure, Suite
from jaxarc.errors import UsageError
from jaxarc.runs.folder import DISTRIBUTION


class UnknownRowError(UsageError, KeyError):
    """No row has this id."""


@dataclass(frozen=True)
class Row:
    """One thing that is measured.

    The target is for one processor core; it is a floor, or a ceiling where less is better.
    """

    row_id: str
    what: str
    unit: str
    measure: Measure
    target: float | None = None
    less_is_better: bool = False
    is_exact: bool = False  # the same number each time, so one sample is enough
    fresh_part: str | None = None  # what a fresh process has to do for it

    def meets(self, value: float) -> bool | None:
        """Whether a value reaches the target; None without one."""
        if self.target is None:
            return None
        return value <= self.target if self.less_is_better else value >= self.target


def choose_rows(rows: Sequence[Row], ids: Iterable[str]) -> tuple[Row, ...]:
    """Keep the rows with these ids, in the order of ``rows``; all of them when no id is given.

    Raises:
        UnknownRowError: a ``KeyError`` that lists the known ids and the nearest ones.
    """
    wanted = list(ids)
    known = [row.row_id for row in rows]
    for row_id in wanted:
        if row_id not in known:
            near = difflib.get_close_matches(row_id, known, n=2)
            hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
            raise UnknownRowError(f"no row {row_id!r}; {hint}The rows are {', '.join(known)}")
    return tuple(row for row in rows if row.row_id in wanted) if wanted else tuple(rows)


OnSample = Callable[[int, int, str], None]
"""Called before a sample is taken, with how many are done, how many there are, and what comes next; once at the end."""


@dataclass(frozen=True)
class RowResult:
    """A row and its samples, in the row's unit."""

    row: Row
    samples: tuple[float, ...]
    has_target: bool  # whether the row's target applies to this machine

    @property
    def value(self) -> float:
        """The median of the samples."""
        return statistics.median(self.samples)

    @property
    def is_met(self) -> bool | None:
        """Whether the median reaches the target; None without one."""
        return self.row.meets(self.value) if self.has_target else None

    def as_json(self) -> dict[str, Any]:
        """Return plain types: id, what, unit, value, min, max, target, target_is, met, samples."""
        target = self.row.target if self.has_target else None
        return {
            "id": self.row.row_id,
            "what": self.row.what,
            "unit": self.row.unit,
            "value": self.value,
            "min": min(self.samples),
            "max": max(self.samples),
            "target": target,
            "target_is": None if target is None else ("at most" if self.row.less_is_better else "at least"),
            "met": self.is_met,
            "samples": list(self.samples),
        }


def measure_rows(
    rows: Sequence[Row],
    budget: Budget,
    on_sample: OnSample,
    has_targets: bool = True,
) -> list[RowResult]:
    """Take ``budget.repeats`` rounds, each with one sample of every row; rows of fixed size are measured once.

    Args:
        rows: what to measure.
        budget: how much.
        on_sample: called with the progress.
        has_targets: whether the targets apply here.

    Returns:
        One result per row, in the order of ``rows``.
    """
    suite = Suite(budget, frozenset(row.fresh_part for row in rows if row.fresh_part is not None))
    rounds = [[row for row in rows if turn == 0 or not row.is_exact] for turn in range(budget.repeats)]
    samples: dict[str, list[float]] = {row.row_id: [] for row in rows}
    # Round after round, and not row after row: a slow minute of the machine falls on one sample of each row.
    total = sum(map(len, rounds))
    done = 0
    for turn in rounds:
        suite.begin_round()
        for row in turn:
            on_sample(done, total, row.what)
            samples[row.row_id].append(row.measure(suite))
            done += 1
    on_sample(done, total, "done")
    return [RowResult(row, tuple(samples[row.row_id]), has_targets) for row in rows]


@contextmanager
def pinned_to_cores(num_cores: int) -> Iterator[int | None]:
    """Keep this process, and whatever it starts, on ``num_cores`` of the cores that it may use.

    Enter it before JAX runs anything: threads that exist already stay where they are. The last cores are taken, since
    an operating system serves its interrupts on the first. Afterwards the process may use all its cores again.

    Yields:
        The cores in use; None where the operating system has no such control (macOS, Windows).

    Raises:
        ValueError: ``num_cores`` is below 1 or more than the process may use.
    """
    try:
        allowed = os.sched_getaffinity(0)
    except AttributeError:  # macOS, Windows
        yield None
        return
    if not 1 <= num_cores <= len(allowed):
        raise ValueError(
            f"the number of cores must lie in 1..{len(allowed)}, which this process may use; got {num_cores}"
        )
    os.sched_setaffinity(0, sorted(allowed)[-num_cores:])
    try:
        yield num_cores
    finally:
        os.sched_setaffinity(0, allowed)


_CPU_FACTS: Final = Path("/proc/cpuinfo")
_PACKAGES: Final = ("jax", "jaxlib", "equinox", "numpy")


def describe_machine(num_cores: int | None) -> str:
    """Name the processor, the cores in use and, where there is one, the accelerator that JAX computes on.

    Args:
        num_cores: cores that the process was pinned to; None when it was not.
    """
    used = "all cores" if num_cores is None else f"{num_cores} core{'s' if num_cores > 1 else ''}"
    parts = [_processor(), used]
    device = jax.devices()[0]
    if device.platform != "cpu":
        parts.append(device.device_kind)
    return ", ".join(parts)


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide how fast a step is."""
    ours = {"python": platform.python_version(), "jaxarc": metadata.version(DISTRIBUTION)}
    return ours | {name: metadata.version(name) for name in _PACKAGES}


def _processor() -> str:
    if _CPU_FACTS.is_file():
        for line in _CPU_FACTS.read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine() or "unknown processor"
