"""Measure what compiling and prefetching bring to a surrogate's steps."""

import functools
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from surrogate_workload import Workload, time_feeding, time_steps

from jaxarc.benchmarks.measure import Row
from jaxarc.benchmarks.suite import Budget, Suite
from jaxarc.config import StructuralModelConfig, SurrogateNetworkConfig, SurrogateTrainingConfig


def _sets(latent_size: int, num_layers: int, num_examples: int, parts: int = 1) -> Workload:
    network = SurrogateNetworkConfig(latent_size, num_layers)
    training = SurrogateTrainingConfig(accumulation_steps=parts)
    return Workload(network, num_examples, training, StructuralModelConfig(num_samples=100))


WORKLOADS: Final[Mapping[str, Workload]] = {
    "sets-32": _sets(32, 2, 10),
    "sets-64": _sets(64, 3, 10),
    "sets-128": _sets(128, 4, 10),
}
"""What compiled and plain steps are compared on, and the bounds of an accelerator are computed for."""

_MORE_EXAMPLES: Final = {"sets-64-of-40": _sets(64, 3, 40), "sets-128-of-40": _sets(128, 4, 40, parts=4)}

_TIMES_AS_FAST: Final = 250.0  # a compiled step, of parent sets
_HIDDEN: Final = 95.0  # percent of the time of loading

_LOAD_SECONDS: Final = 0.10
_WORK_SECONDS: Final = 0.15
_STEPS_FED: Final = 12
_LONG: Final = 0.1  # seconds of a sample from which on loading and work last as long as they should
_LITTLE: Final = 0.1  # share of them otherwise


def surrogate_rows(workloads: Mapping[str, Workload] = MappingProxyType({**WORKLOADS, **_MORE_EXAMPLES})) -> list[Row]:
    """List the rows.

    Args:
        workloads: what compiled and plain steps are compared on, by name.
    """
    return [row for name, workload in workloads.items() for row in _step_rows(name, workload)] + _feeding_rows()


def _step_rows(name: str, workload: Workload) -> list[Row]:
    rows = {
        "compiled": (f"{_describe(workload)}: a compiled step", "s", None),
        "plain": ("the plain step: one example and operation at a time", "s", None),
        "speedup": ("how many times as fast the compiled one is", "times", _TIMES_AS_FAST),
        "operations": ("the same against all examples at once, one operation at a time", "times", None),
        "first": ("first call of the compiled step, which compiles", "s", None),
        "second": ("second call", "s", None),
        "amortization": ("first call over second: what compiling costs", "times", None),
    }
    samples = SharedSamples(lambda budget: _steps_and_ratios(workload, budget.seconds))
    return [
        Row(f"{number}-{name}", what, unit, functools.partial(samples.sample, name=number), target)
        for number, (what, unit, target) in rows.items()
    ]


def _steps_and_ratios(workload: Workload, min_seconds: float) -> dict[str, float]:
    seconds = time_steps(workload, min_seconds)
    return seconds | {
        "speedup": seconds["plain"] / seconds["compiled"],
        "operations": seconds["by-operation"] / seconds["compiled"],
        "amortization": seconds["first"] / seconds["second"],
    }


def _feeding_rows() -> list[Row]:
    rows = {
        "in-turn": (f"{_LOAD_SECONDS:.2f} s of loading, then {_WORK_SECONDS:.2f} s of work", "s", None),
        "prefetched": ("the same, loaded ahead by DataPrefetcher", "s", None),
        "hidden": ("share of loading that is hidden", "%", _HIDDEN),
    }
    samples = SharedSamples(_feed_waiting)
    return [
        Row(f"feeding-{number}", what, unit, functools.partial(samples.sample, name=number), target)
        for number, (what, unit, target) in rows.items()
    ]


def _feed_waiting(budget: Budget) -> dict[str, float]:
    share = 1.0 if budget.seconds >= _LONG else _LITTLE
    load, work = (lambda: time.sleep(share * _LOAD_SECONDS)), (lambda _: time.sleep(share * _WORK_SECONDS))
    return time_feeding(load, work, _STEPS_FED)


class SharedSamples:
    """Hands out each number of a measurement once, and measures again when one is asked for again."""

    def __init__(self, measure: Callable[[Budget], Mapping[str, float]]):
        self._measure = measure  # all numbers by name
        self._left: dict[str, float] = {}

    def sample(self, suite: Suite, name: str) -> float:
        """Return a number that was not returned before."""
        if name not in self._left:
            self._left = dict(self._measure(suite.budget))
        return self._left.pop(name)


def _describe(workload: Workload) -> str:
    network = workload.network
    structure = workload.structure
    what = f"parent sets of {structure.num_variables} variables, {structure.num_samples} samples"
    parts = workload.training.accumulation_steps
    in_parts = f" in {parts} parts" if parts > 1 else ""
    return f"{what}, {workload.num_examples} examples{in_parts}, {network.num_layers} layers of {network.latent_size}"
