"""How long a step of a surrogate takes: compiled, plain, and without compilation but for all examples at once."""

import time
from collections.abc import Callable
from typing import Any, Final

import jax
import numpy as np

from jaxarc.benchmarks.surrogate_workload import Learner, Workload
from jaxarc.profiling import compiled_memory
from jaxarc.surrogate import create_jax_surrogate_train_step, create_surrogate_train_step, kl_divergence_loss_jax

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


class CompiledSteps:
    """Compiled steps of one workload, which go on learning from sample to sample."""

    def __init__(self, workload: Workload):
        self._learner = _compiled_learner(workload)
        learner = self._learner
        program = learner.step.compile(learner.model, learner.state, learner.batch, learner.candidates)
        self.temp_bytes = compiled_memory(program).temp_bytes or 0
        """What is alive between the first operation and the last, besides arguments and results."""

    def seconds(self, min_seconds: float) -> float:
        """Seconds of a step; at least ``min_seconds`` are spent."""
        return _sustained(self._learner, min_seconds)


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
