"""Numbers that are measured together, for rows that each show one of them."""

from collections.abc import Callable, Mapping

from jaxarc.benchmarks.workbench import Effort, Workbench


class SharedSamples:
    """Hands out each number of a measurement once, and measures again when one is asked for again."""

    def __init__(self, measure: Callable[[Effort], Mapping[str, float]]):
        """Keep what measures.

        Args:
            measure: all numbers by name.
        """
        self._measure = measure
        self._left: dict[str, float] = {}

    def sample(self, bench: Workbench, name: str) -> float:
        """Return a number that was not returned before."""
        if name not in self._left:
            self._left = dict(self._measure(bench.effort))
        return self._left.pop(name)
