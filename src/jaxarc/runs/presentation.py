"""What a run says to people, as plain data: sentences, numbers of its reports, tables, panels of its learning curves.

``cli/presenter.py`` shows them. Sentences are plain text, in which ``**these words**`` stand out.
"""

import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


class Part(NamedTuple):
    """A number of the newest reports, one report for each seed, within a text; no text where none of them has it.

    ``Part("return {:.2f}", "mean_return", statistics.fmean)`` says ``return 0.50`` of the returns 0 and 1.
    """

    text: str
    field: str  # of a report
    over_seeds: Callable[[Sequence[Any]], Any] = statistics.fmean  # from the numbers to what the text shows


class Table(NamedTuple):
    """Rows below headers; the first columns hold words, the others numbers."""

    headers: Sequence[str]
    rows: Sequence[Sequence[str]]
    num_words: int = 1  # columns of words
    keeps_names: bool = False  # the first column takes one line, where the terminal is too narrow for all


class Plot(NamedTuple):
    """A panel of the learning curves; a line whose numbers were never measured is left out."""

    label: str
    lines: Mapping[str, str]  # name in the legend -> field of a report
    is_share: bool = False


class CalibrationPlot(NamedTuple):
    """A picture of how well probabilities are calibrated."""

    bins: Sequence[tuple[int, float, float]]  # the number of probabilities, their mean, and the mean that is expected
    title: str
    expected: str  # label of the expected mean


@dataclass(frozen=True)
class Presentation:
    """What a run says before, while and after it learns."""

    announcement: Sequence[str]  # what is learned from, and what is measured
    unit: str  # that is counted: "update"
    num_updates: int  # of the whole run
    live: Sequence[Part]
    measured: Sequence[Part]  # of the newest evaluation; they stay on the live line until the next one
    title: str  # of the learning curves
    plots: Sequence[Plot]
    x: str  # field of a report, along which the curves go
    x_label: str
    learned: str  # "learning from {:,} examples"
    advice: Sequence[str]  # what to look at next
    score: Sequence[Part]  # of the last reports, in the table of a sweep
    before_measured: str = ""  # on the live line


def said(parts: Iterable[Part], reports: Sequence[Any]) -> Iterator[str]:
    """Yield the text of each part of which a report has a number."""
    for text, field, over_seeds in parts:
        known = [number for report in reports if (number := getattr(report, field)) is not None]
        if known:
            yield text.format(over_seeds(known))


def last_reports(reports: Sequence[Any]) -> list[Any]:
    """Return the newest report of each seed."""
    return list({report.seed: report for report in reports}.values())


def percent(share: float, digits: int = 1) -> str:
    """Write a share of 0 .. 1: ``0.951`` is ``95.1 %``."""
    return f"{100 * share:.{digits}f} %"


def mean_share(rates: Iterable[float | None]) -> str:
    """Write shares of 0 .. 1 as percent: ``95.1 %``, or ``95.1 ± 0.4 %`` with the standard deviation over seeds."""
    return _mean([rate if rate is None else 100 * rate for rate in rates], 1, " %")


def mean_number(values: Iterable[float | None]) -> str:
    """Write numbers as their mean with three decimals, and the standard deviation over seeds."""
    return _mean(values, 3, "")


def range_share(rates: Iterable[float | None]) -> str:
    """Write shares of 0 .. 1 briefly: ``95 %``, or ``95 % (90-98)`` with the lowest and the highest."""
    known = [100 * rate for rate in rates if rate is not None]
    if not known:
        return "-"
    text = f"{statistics.fmean(known):.0f} %"
    return text if len(known) == 1 else f"{text} ({min(known):.0f}-{max(known):.0f})"


def _mean(values: Iterable[float | None], digits: int, unit: str) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return "-"
    text = f"{statistics.fmean(known):.{digits}f}"
    return f"{text}{unit}" if len(known) == 1 else f"{text} ± {statistics.stdev(known):.{digits}f}{unit}"
