"""How much of the time of loading is hidden when what comes next is loaded while a step runs."""

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from jaxarc.surrogate import DataPrefetcher

Item = TypeVar("Item")


def time_feeding(load: Callable[[], Item], work: Callable[[Item], Any], num_steps: int) -> dict[str, float]:
    """Work on items that are loaded in turn, ahead, or were loaded before.

    The first item is loaded and worked on before the clock starts: nothing can hide that.

    Args:
        load: makes an item.
        work: on an item, done when it returns.
        num_steps: that are timed.

    Returns:
        Seconds of a step: ``in-turn``, ``prefetched``, and ``ready`` where nothing is loaded, and how much of the
        time of loading is ``hidden``, in percent.
    """
    ready = [load() for _ in range(num_steps + 1)]
    seconds = {"in-turn": _seconds_per_step(_loaded(load, num_steps + 1), work)}
    with DataPrefetcher(_loaded(load, num_steps + 1)) as items:
        seconds["prefetched"] = _seconds_per_step(items, work)
    seconds["ready"] = _seconds_per_step(ready, work)
    loading = seconds["in-turn"] - seconds["ready"]
    return seconds | {"hidden": 100 * (seconds["in-turn"] - seconds["prefetched"]) / loading}


def _loaded(load: Callable[[], Item], count: int) -> Iterator[Item]:
    return (load() for _ in range(count))


def _seconds_per_step(items: Iterable[Item], work: Callable[[Item], Any]) -> float:
    iterator = iter(items)
    work(next(iterator))
    start, count = time.perf_counter(), 0
    for item in iterator:
        work(item)
        count += 1
    return (time.perf_counter() - start) / count
