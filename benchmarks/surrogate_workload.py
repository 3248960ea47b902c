"""Models, batches and timed steps of surrogates."""

import functools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.config import StructuralModelConfig, SurrogateNetworkConfig, SurrogateTrainingConfig
from jaxarc.surrogate import (
    CandidateScorer,
    CandidateSet,
    DataPrefetcher,
    TrainingBatchJAX,
    candidates_of,
    create_jax_surrogate_train_step,
    create_surrogate_train_step,
    draw_parent_sets,
    init_optimizer,
    kl_divergence_loss_jax,
    make_surrogate_optimizer,
)
from jaxarc.types import PRNGKey


@dataclass(frozen=True)
class Workload:
    """A model, and B examples of parent sets of variables."""

    network: SurrogateNetworkConfig
    num_examples: int  # B, a multiple of the number of variables
    training: SurrogateTrainingConfig = field(default_factory=SurrogateTrainingConfig)
    structure: StructuralModelConfig = field(default_factory=StructuralModelConfig)

    def batch(self) -> tuple[TrainingBatchJAX, CandidateSet]:
        """Draw the examples, the same each time."""
        batch = draw_parent_sets(
            np.random.default_rng(0), self.num_examples // self.structure.num_variables, self.structure
        )
        return batch, candidates_of(batch)


class Learner:
    """Takes steps on the same batch, one after the other."""

    def __init__(self, workload: Workload, create: Callable[..., Any], loss_fn: Callable[..., Any]):
        """Make a fresh model and a step for it.

        Args:
            workload: the work.
            create: makes the step, such as :func:`create_jax_surrogate_train_step`.
            loss_fn: of one example.
        """
        self.batch, self.candidates = workload.batch()
        self.model, self.state = jax.tree.map(jnp.copy, _start(workload))  # a compiled step takes them away
        self.step = create(self.model, make_surrogate_optimizer(workload.training), loss_fn, workload.training)
        self.metrics: dict[str, Any] = {}

    def learn(self) -> None:
        """Take a step."""
        self.model, self.state, self.metrics = self.step(self.model, self.state, self.batch, self.candidates)

    def wait(self) -> None:
        """Wait until all steps are done."""
        jax.block_until_ready((self.model, self.state, self.metrics))


@functools.lru_cache(maxsize=32)
def _start(workload: Workload) -> tuple[CandidateScorer, Any]:
    num_features = workload.batch()[1].features.shape[-1]

    @jax.jit
    def make(key: PRNGKey) -> tuple[CandidateScorer, Any]:
        model = CandidateScorer(key, workload.network, num_features)
        return model, init_optimizer(make_surrogate_optimizer(workload.training), model)

    return make(jax.random.key(0))


_AGREE: Final = 1e-3  # relative, of two losses


def time_steps(workload: Workload, min_seconds: float) -> dict[str, float]:
    """Time steps of the same numerics in turn, each from a fresh model.

    Args:
        workload: the work.
        min_seconds: how long compiled steps are taken; with 0 what is not compiled is not run before it is timed.

    Returns:
        Seconds of the ``first`` call of a compiled step and of the ``second``, of a ``compiled`` step after that, of
        a ``plain`` step, and of one ``by-operation``: the program of the compiled step, one operation at a time.

    Raises:
        ArithmeticError: the steps do not learn the same.
    """
    compiled, plain = _compiled_learner(workload), _plain_learner(workload)
    seconds, losses = {"first": _time(compiled)}, [compiled.metrics["total_loss"]]
    seconds["second"] = _time(compiled)
    seconds["compiled"] = _sustained(compiled, min_seconds)
    seconds["plain"] = _warm_time(plain, min_seconds, losses)
    with jax.disable_jit():
        seconds["by-operation"] = _warm_time(_compiled_learner(workload), min_seconds, losses)
    if not np.allclose(losses, losses[0], rtol=_AGREE):
        raise ArithmeticError(f"compiled and plain steps must have the same loss, got {[float(x) for x in losses]}")
    return seconds


def _compiled_learner(workload: Workload) -> Learner:
    return Learner(workload, create_jax_surrogate_train_step, kl_divergence_loss_jax)


def _plain_learner(workload: Workload) -> Learner:
    return Learner(workload, create_surrogate_train_step, kl_divergence_loss_jax)


def _time(learner: Learner) -> float:
    return _seconds(learner.learn, learner.wait)


def _warm_time(learner: Learner, min_seconds: float, losses: list[Any]) -> float:
    """Time the second step, or the first where time is short; the loss of the first is noted."""
    first = _time(learner)
    losses.append(learner.metrics["total_loss"])
    return _time(learner) if min_seconds else first


def _sustained(learner: Learner, min_seconds: float) -> float:
    """Seconds of a step in a loop that waits at its end only, as training does."""
    learner.learn()
    learner.wait()
    once = _time(learner)
    count = max(1, round(min_seconds / once))
    return _seconds(lambda: [learner.learn() for _ in range(count)], learner.wait) / count


def _seconds(work: Callable[[], Any], wait: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    wait()
    return time.perf_counter() - start


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
