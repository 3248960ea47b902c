"""One thing that a benchmark measures, and how rows are chosen."""

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jaxarc.benchmarks.workbench import Measure


class UnknownRowError(KeyError):
    """No row has this id."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


@dataclass(frozen=True)
class Row:
    """One thing that is measured.

    The target is for one processor core, or for accelerators; it is a floor, or a ceiling where less is better.
    """

    row_id: str
    what: str
    unit: str
    measure: Measure
    target: float | None = None
    less_is_better: bool = False
    is_exact: bool = False  # the same number each time, so one sample is enough
    fresh_part: str | None = None  # what a fresh process has to do for it
    on_accelerators: bool = False  # the target is for them, and not for a processor core

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
    wanted, known = list(ids), [row.row_id for row in rows]
    for row_id in wanted:
        if row_id not in known:
            near = difflib.get_close_matches(row_id, known, n=2)
            hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
            raise UnknownRowError(f"no row {row_id!r}; {hint}The rows are {', '.join(known)}")
    return tuple(row for row in rows if row.row_id in wanted) if wanted else tuple(rows)
