"""Measure rows in turn, so that what else the machine does hits all of them alike."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from jaxarc.benchmarks.row import Row
from jaxarc.benchmarks.workbench import Effort, Workbench

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
    effort: Effort,
    on_sample: OnSample,
    has_targets: bool = True,
    on_accelerator: bool = False,
) -> list[RowResult]:
    """Take ``effort.repeats`` rounds, each with one sample of every row; rows of fixed size are measured once.

    Args:
        rows: what to measure.
        effort: how much.
        on_sample: told about the progress.
        has_targets: whether the targets that are for one processor core apply here.
        on_accelerator: whether those for accelerators do.

    Returns:
        One result per row, in the order of ``rows``.
    """
    bench = Workbench(effort, frozenset(row.fresh_part for row in rows if row.fresh_part is not None))
    rounds = [[row for row in rows if turn == 0 or not row.is_exact] for turn in range(effort.repeats)]
    samples: dict[str, list[float]] = {row.row_id: [] for row in rows}
    total, done = sum(map(len, rounds)), 0
    for turn in rounds:
        bench.begin_round()
        for row in turn:
            on_sample(done, total, row.what)
            samples[row.row_id].append(row.measure(bench))
            done += 1
    on_sample(done, total, "done")
    return [
        RowResult(row, tuple(samples[row.row_id]), on_accelerator if row.on_accelerators else has_targets)
        for row in rows
    ]
