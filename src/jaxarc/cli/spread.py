"""How a number of several seeds is written: the mean, and how far they lie apart."""

import statistics
from collections.abc import Iterable


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
