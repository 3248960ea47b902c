"""Measure what compiling, prefetching, accumulation, recomputing and bfloat16 bring to a surrogate's steps."""

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import jax
import numpy as np
from surrogate_workload import CompiledSteps, Learner, Workload, time_feeding, time_steps

from jaxarc.benchmarks.measure import Row, SharedSamples
from jaxarc.benchmarks.suite import Budget, Measure, Suite
from jaxarc.config import StructuralModelConfig, SurrogateNetworkConfig, SurrogateTrainingConfig
from jaxarc.surrogate import (
    TrainingBatchJAX,
    candidates_of,
    create_jax_surrogate_train_step,
    draw_parent_sets,
    kl_divergence_loss_jax,
)


def _sets(latent_size: int, num_layers: int, num_examples: int, remat_every: int = 0, parts: int = 1) -> Workload:
    network = SurrogateNetworkConfig(latent_size, num_layers, remat_every=remat_every)
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
_TIMES_LESS_MEMORY: Final = 5.0  # with recomputing
_TIMES_AS_FAST_ROUNDED: Final = 2.0  # bfloat16 on an accelerator

_LOAD_SECONDS: Final = 0.10
_WORK_SECONDS: Final = 0.15
_STEPS_FED: Final = 12
_LONG: Final = 0.1  # seconds of a sample from which on loading and work last as long as they should
_LITTLE: Final = 0.1  # share of them otherwise
_PARTS: Final = 8
_ACCUMULATED: Final = _sets(64, 3, 160)
_DEPTHS: Final = {3: None, 12: _TIMES_LESS_MEMORY, 32: _TIMES_LESS_MEMORY}  # layers; few of them keep little
_ROUNDED: Final = _sets(128, 3, 20)
_ROUNDED_ON_ACCELERATORS: Final = _sets(1024, 4, 250)

_compiled_steps = functools.lru_cache(maxsize=16)(CompiledSteps)


def surrogate_rows(workloads: Mapping[str, Workload] = MappingProxyType({**WORKLOADS, **_MORE_EXAMPLES})) -> list[Row]:
    """List the rows.

    Args:
        workloads: what compiled and plain steps are compared on, by name.
    """
    return [
        *(row for name, workload in workloads.items() for row in _step_rows(name, workload)),
        *_feeding_rows(),
        *_part_rows(),
        *_recomputing_rows(),
        *_precision_rows(),
    ]


def _step_rows(name: str, workload: Workload) -> list[Row]:
    measure = _shared(lambda budget: _steps_and_ratios(workload, budget.seconds))
    return [
        Row(f"compiled-{name}", f"{_describe(workload)}: a compiled step", "s", measure("compiled")),
        Row(f"plain-{name}", "the plain step: one example and operation at a time", "s", measure("plain")),
        Row(
            f"speedup-{name}", "how many times as fast the compiled one is", "times", measure("speedup"), _TIMES_AS_FAST
        ),
        Row(
            f"operations-{name}",
            "the same against all examples at once, one operation at a time",
            "times",
            measure("operations"),
        ),
        Row(f"first-{name}", "first call of the compiled step, which compiles", "s", measure("first")),
        Row(f"second-{name}", "second call", "s", measure("second")),
        Row(f"amortization-{name}", "first call over second: what compiling costs", "times", measure("amortization")),
    ]


def _steps_and_ratios(workload: Workload, min_seconds: float) -> dict[str, float]:
    seconds = time_steps(workload, min_seconds)
    return seconds | {
        "speedup": seconds["plain"] / seconds["compiled"],
        "operations": seconds["by-operation"] / seconds["compiled"],
        "amortization": seconds["first"] / seconds["second"],
    }


def _feeding_rows() -> list[Row]:
    waiting, drawing = _shared(_feed_waiting), _shared(_feed_drawing)
    return [
        Row(
            "feeding-in-turn",
            f"{_LOAD_SECONDS:.2f} s of loading, then {_WORK_SECONDS:.2f} s of work",
            "s",
            waiting("in-turn"),
        ),
        Row("feeding-prefetched", "the same, loaded ahead by DataPrefetcher", "s", waiting("prefetched")),
        Row("feeding-hidden", "share of loading that is hidden", "%", waiting("hidden"), _HIDDEN),
        Row("drawing-in-turn", "drawing parent sets, then a compiled step on them", "s", drawing("in-turn")),
        Row("drawing-prefetched", "the same, drawn ahead", "s", drawing("prefetched")),
        Row("drawing-hidden", "share of drawing that is hidden; where it takes no core", "%", drawing("hidden")),
    ]


def _feed_waiting(budget: Budget) -> dict[str, float]:
    share = 1.0 if budget.seconds >= _LONG else _LITTLE
    load, work = (lambda: time.sleep(share * _LOAD_SECONDS)), (lambda _: time.sleep(share * _WORK_SECONDS))
    return time_feeding(load, work, _STEPS_FED)


def _feed_drawing(_: Budget) -> dict[str, float]:
    workload, generator = _ACCUMULATED, np.random.default_rng(1)
    learner = Learner(workload, create_jax_surrogate_train_step, kl_divergence_loss_jax)
    num_models = workload.num_examples // workload.structure.num_variables

    def work(batch: TrainingBatchJAX) -> None:
        learner.batch, learner.candidates = batch, candidates_of(batch)
        learner.learn()
        learner.wait()

    work(learner.batch)  # compiles
    return time_feeding(lambda: draw_parent_sets(generator, num_models, workload.structure), work, _STEPS_FED)


def _part_rows() -> list[Row]:
    whole = _ACCUMULATED
    parts = _sets(64, 3, 160, parts=_PARTS)
    return [
        Row("parts-1-bytes", f"{_describe(whole)}: working memory", "bytes", _bytes(whole), is_exact=True),
        Row(f"parts-{_PARTS}-bytes", f"the same in {_PARTS} parts", "bytes", _bytes(parts), is_exact=True),
        Row("parts-memory", "how many times less memory", "times", _less_memory(whole, parts), is_exact=True),
        Row("parts-time", f"time in {_PARTS} parts over time in one", "times", _time_ratio(parts, whole)),
    ]


def _recomputing_rows() -> list[Row]:
    rows = []
    for depth, target in _DEPTHS.items():
        kept, recomputed = _sets(32, depth, 40), _sets(32, depth, 40, remat_every=1)
        rows += [
            Row(f"kept-{depth}-bytes", f"{_describe(kept)}: working memory", "bytes", _bytes(kept), is_exact=True),
            Row(
                f"remat-{depth}-bytes",
                "the same where each layer is recomputed",
                "bytes",
                _bytes(recomputed),
                is_exact=True,
            ),
            Row(
                f"remat-{depth}-memory",
                "how many times less memory",
                "times",
                _less_memory(kept, recomputed),
                target,
                is_exact=True,
            ),
            Row(
                f"remat-{depth}-time", "time with recomputing over time without", "times", _time_ratio(recomputed, kept)
            ),
        ]
    return rows


def _precision_rows() -> list[Row]:
    what = f"{_describe(_ROUNDED)} (on an accelerator {_describe(_ROUNDED_ON_ACCELERATORS)})"
    return [
        Row(
            "bfloat16-speed",
            f"{what}: how many times as fast a step in bfloat16 is",
            "times",
            lambda suite: _time_ratio(*_precisions())(suite),
            _TIMES_AS_FAST_ROUNDED,
            on_accelerators=True,
        ),
        Row(
            "bfloat16-memory",
            "how many times less working memory",
            "times",
            lambda suite: _less_memory(*_precisions())(suite),
            is_exact=True,
        ),
    ]


def _precisions() -> tuple[Workload, Workload]:
    """Float32 and bfloat16, of a size that suits the device; only a row that is measured may ask for that."""
    exact = _ROUNDED if jax.default_backend() == "cpu" else _ROUNDED_ON_ACCELERATORS
    return exact, replace(exact, training=SurrogateTrainingConfig(precision="bfloat16"))


def _shared(measure: Callable[[Budget], Mapping[str, float]]) -> Callable[[str], Measure]:
    """One measurement for several rows: from the name of a number to what measures it."""
    samples = SharedSamples(measure)
    return lambda name: functools.partial(samples.sample, name=name)


def _bytes(workload: Workload) -> Measure:
    return lambda _: _compiled_steps(workload).temp_bytes


def _less_memory(more: Workload, less: Workload) -> Measure:
    return lambda _: _compiled_steps(more).temp_bytes / _compiled_steps(less).temp_bytes


def _time_ratio(over: Workload, under: Workload) -> Measure:
    """Seconds of a step of one workload over those of another, measured one after the other."""

    def measure(suite: Suite) -> float:
        seconds = suite.budget.seconds
        return _compiled_steps(over).seconds(seconds) / _compiled_steps(under).seconds(seconds)

    return measure


def _describe(workload: Workload) -> str:
    network = workload.network
    structure = workload.structure
    what = f"parent sets of {structure.num_variables} variables, {structure.num_samples} samples"
    parts = workload.training.accumulation_steps
    in_parts = f" in {parts} parts" if parts > 1 else ""
    return f"{what}, {workload.num_examples} examples{in_parts}, {network.num_layers} layers of {network.latent_size}"
