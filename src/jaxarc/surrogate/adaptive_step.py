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
    CompiledTrainStep,
    LossFunction,
    Metrics,
    Model,
    TrainStep,
    create_jax_surrogate_train_step,
    create_surrogate_train_step,
)

# What tracing and compiling raise. Wrong shapes and wrong batches are no reason to go on: they raise other errors, and
# what a program raises as it runs, such as too little memory, is not looked for.
COMPILATION_ERRORS: Final = (
    jax.errors.JAXTypeError,
    jax.errors.JAXIndexError,
    jax.errors.JaxRuntimeError,
    NotImplementedError,
)

logger = logging.getLogger(__name__)


class AdaptiveTrainStep:
    """Compiles at its first call; when that fails it says so once, and goes on without compilation.

    Inside other compiled code it is a part of that: there it compiles nothing itself, and errors are raised.

    Attributes:
        compiled: whether calls are compiled, as far as is known yet.
    """

    def __init__(self, compiled_step: CompiledTrainStep | None, plain_step: TrainStep, compile_from: int = 0):
        """Choose between two steps; see :func:`create_adaptive_train_step`.

        Args:
            compiled_step: None where nothing is to be compiled.
            plain_step: of the same numerics.
            compile_from: numbers in the data of the smallest batch that is compiled.
        """
        self.compiled = compiled_step is not None
        self._compiled_step, self._plain_step, self._compile_from = compiled_step, plain_step, compile_from
        self._is_proven = False

    def __call__(
        self, model: Model, opt_state: optax.OptState, batch: TrainingBatchJAX, candidates: CandidateSet | None = None
    ) -> tuple[Model, optax.OptState, Metrics]:
        """Do what :class:`TrainStep` says."""
        arguments = (model, opt_state, batch, candidates)
        if self._compiled_step is None or batch.observational_data.size < self._compile_from:
            return self._plain_step(*arguments)
        if not self._is_proven and not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(arguments)):
            jax.block_until_ready(arguments)  # what failed in their making is raised here, and is no failure to compile
            try:
                self._compiled_step.compile(*arguments)
            except COMPILATION_ERRORS as error:
                logger.warning("JAX compilation failed: %s, falling back to original", error)
                self.compiled, self._compiled_step = False, None
                return self._plain_step(*arguments)
            self._is_proven = True
        return self._compiled_step(*arguments)


def create_adaptive_train_step(
    use_jax_compilation: bool = True,
    *,
    model: Model,
    optimizer: optax.GradientTransformation,
    loss_fn: LossFunction = kl_divergence_loss_jax,
    config: SurrogateTrainingConfig | None = None,
    compile_from: int = 0,
) -> AdaptiveTrainStep:
    """Make a step that is compiled when possible, and plain otherwise or when asked for.

    Whether a model can be compiled shows when it is called first, not when the step is made. What falls back is a
    model that Python code asks for values, or one that the backend refuses; other errors, and those of a compiled
    program that runs, are raised.

    Args:
        use_jax_compilation: false for a plain step.
        model: as of :func:`create_jax_surrogate_train_step`, and so are those that follow.
        optimizer: of the model's floating-point arrays.
        loss_fn: of one example.
        config: of precision, accumulation and weights.
        compile_from: numbers in the data of a batch, B * N * d * 3; smaller batches take the plain step, which is
            done sooner when few steps are taken.
    """
    parts = (model, optimizer, loss_fn, config or SurrogateTrainingConfig())
    compiled_step = create_jax_surrogate_train_step(*parts) if use_jax_compilation else None
    return AdaptiveTrainStep(compiled_step, create_surrogate_train_step(*parts), compile_from)
