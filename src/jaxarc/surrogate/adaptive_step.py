"""A train step that is compiled where that is possible, and plain where it is not."""

import logging
from typing import Final

import jax
import optax
from jax.core import Tracer

from jaxarc.config.surrogate import SurrogateTrainingConfig
from jaxarc.surrogate.batch import TrainingBatchJAX
from jaxarc.surrogate.candidates import CandidateSet
from jaxarc.surrogate.losses import kl_divergence_loss_jax
from jaxarc.surrogate.train_step import (
    LossFunction,
    Metrics,
    Model,
    TrainStep,
    create_jax_surrogate_train_step,
    create_surrogate_train_step,
)

# What tracing and compiling raise. Wrong shapes and wrong batches are no reason to go on: they raise other errors.
COMPILATION_ERRORS: Final = (
    jax.errors.JAXTypeError,
    jax.errors.JAXIndexError,
    jax.errors.JaxRuntimeError,
    NotImplementedError,
)

logger = logging.getLogger(__name__)


class AdaptiveTrainStep:
    """Compiles at its first call; when that fails it says so once, and goes on without compilation.

    Attributes:
        compiled: whether calls are compiled, as far as is known yet.
    """

    def __init__(self, compiled_step: TrainStep | None, plain_step: TrainStep):
        self.compiled = compiled_step is not None
        self._step = compiled_step or plain_step
        self._plain = plain_step
        self._is_proven = compiled_step is None

    def __call__(
        self, model: Model, opt_state: optax.OptState, batch: TrainingBatchJAX, candidates: CandidateSet | None = None
    ) -> tuple[Model, optax.OptState, Metrics]:
        """Do what :class:`TrainStep` says."""
        if self._is_proven:
            return self._step(model, opt_state, batch, candidates)
        try:
            result = self._step(model, opt_state, batch, candidates)
        except COMPILATION_ERRORS as error:
            if _is_donated(model, opt_state):  # it compiled and failed as it ran: nothing is left to go on with
                raise
            logger.warning("JAX compilation failed: %s, falling back to original", error)
            self.compiled, self._step = False, self._plain
            result = self._plain(model, opt_state, batch, candidates)
        self._is_proven = True
        return result


def create_adaptive_train_step(
    use_jax_compilation: bool = True,
    *,
    model: Model,
    optimizer: optax.GradientTransformation,
    loss_fn: LossFunction = kl_divergence_loss_jax,
    config: SurrogateTrainingConfig | None = None,
) -> AdaptiveTrainStep:
    """Make a step that is compiled when possible, and plain otherwise or when asked for.

    Whether a model can be compiled shows when it is called first, not when the step is made. What falls back is a
    model that Python code asks for values, or one that the backend refuses; other errors are raised. Arguments are
    those of :func:`create_jax_surrogate_train_step`.
    """
    parts = (model, optimizer, loss_fn, config or SurrogateTrainingConfig())
    compiled_step = create_jax_surrogate_train_step(*parts) if use_jax_compilation else None
    return AdaptiveTrainStep(compiled_step, create_surrogate_train_step(*parts))


def _is_donated(model: Model, opt_state: optax.OptState) -> bool:
    leaves = [leaf for leaf in jax.tree.leaves((model, opt_state)) if isinstance(leaf, jax.Array)]
    return any(leaf.is_deleted() for leaf in leaves if not isinstance(leaf, Tracer))
