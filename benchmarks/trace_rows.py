"""Measure how long recording takes by each strategy."""

import functools
from collections.abc import Callable
from typing import Final

from trace_recording import record_in_fresh_process

from jaxarc.benchmarks.measure import Row, SharedSamples
from jaxarc.benchmarks.suite import Budget

Record = Callable[[int, float], dict[str, float]]
"""Seconds by name of recordings on so many devices, with so much labor."""

_STRATEGIES: Final = {"sequential": 1, "workers": 1, "vmap": 1, "pmap-2": 2, "pmap-8": 8}  # devices of each
_LONG: Final = 0.1  # seconds of a sample from which on experts do all their labor
_LITTLE_LABOR: Final = 0.01

_RECORDINGS: Final = {
    "held-16": "16 units in a graph of 21 nodes; the expert holds the interpreter",
    "released-16": "the same; the expert releases the interpreter",
    "idle-16": "the same; the expert has nothing to do",
    "compile-16": "what the first call takes longer",
    "repeated-16": "the same pair 16 times, recorded once; the expert holds the interpreter",
    "kept-16": "16 units, held, written to a cache",
    "cached-16": "16 units found in the cache",
    "held-4": "4 units in a graph of 6 nodes, held",
    "held-8": "8 units in a graph of 11 nodes, held",
    "held-100": "100 units in a graph of 126 nodes, held",
    "released-100": "the same, released",
    "painter-100": "100 units, the painter",
}


def trace_rows(record: Record = record_in_fresh_process) -> list[Row]:
    """List rows of every recording by every strategy.

    Args:
        record: how recordings are measured; in a process of its own for each number of devices.
    """
    by_devices = {
        num_devices: SharedSamples(functools.partial(_record, record, num_devices))
        for num_devices in _STRATEGIES.values()
    }
    return [
        Row(
            f"{name}-{strategy}",
            f"{strategy}: {what}",
            "s",
            functools.partial(by_devices[num_devices].sample, name=f"{name}-{strategy}"),
            less_is_better=True,
        )
        for name, what in _RECORDINGS.items()
        for strategy, num_devices in _STRATEGIES.items()
        if strategy not in ("sequential", "workers") or not name.startswith("compile")
    ]


def _record(record: Record, num_devices: int, budget: Budget) -> dict[str, float]:
    return record(num_devices, 1.0 if budget.seconds >= _LONG else _LITTLE_LABOR)
