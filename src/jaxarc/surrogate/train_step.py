"""One update of a surrogate toward its expert: compiled as one program, or plain, operation by operation.

A train step that is compiled where that is possible, and plain where it is not.

Numbers that a train step reports.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.core import Tracer
from jax.stages import Compiled
from jaxtyping import Array, Float32

from jaxarc.config import SurrogateTrainingConfig
from jaxarc.surrogate.batch import TrainingBatchJAX
from jaxarc.surrogate.candidates import CandidateSet, candidates_of, check_padding, check_shapes
from jaxarc.surrogate.losses import (
    COMPILED,
    DTYPES,
    PYTHON,
    Loops,
    cast_floats,
    kl_divergence_loss_jax,
    mask_padding,
    mean_gradient,
)

Model: TypeAlias = Any
"""A pytree, such as an Equinox module, to be called with the data [N, d, 3] and the candidates of one example.

Its parameters and the candidates come in the precision of the computation. The data stay float32: what a model sums
before it rounds, and where it casts, it knows itself.
"""
LossFunction: TypeAlias = Callable[[Float32[Array, " k"], Float32[Array, " k"]], Float32[Array, ""]]
"""From the logits of one example, those of padding very low, and the expert's probabilities."""
Metrics: TypeAlias = dict[str, Array]


class TrainStep(Protocol):
    """One update of a model."""

    def __call__(
        self, model: Model, opt_state: optax.OptState, batch: TrainingBatchJAX, candidates: CandidateSet | None = None
    ) -> tuple[Model, optax.OptState, Metrics]:
        """Learn from a batch.

        Args:
            model: of the structure of the one that the step was made for.
            opt_state: by :func:`init_optimizer`, or the step before.
            batch: of B examples.
            candidates: of the examples; where none are given, the parent sets that the batch names.

        Returns:
            The new model and state, and ``total_loss``, ``top1_agreement`` (share, weighted as the loss is, of examples
            whose first choice is one that the expert likes best) and ``gradient_norm``, arrays;
            :func:`convert_metrics` makes numbers of them.

        Raises:
            ValueError: the candidates do not fit the batch, the batch cannot be cut into ``accumulation_steps``, or the
                expert gives weight to padding, which is looked for once.
        """
        ...


class Examples(NamedTuple):
    """The arrays of a batch, B examples."""

    data: Float32[Array, "B N d 3"]
    probs: Float32[Array, "B k"]
    weights: Float32[Array, " B"]
    candidates: CandidateSet


class CompiledTrainStep:
    """A step that is compiled as one program for each shape of its arguments; see :class:`TrainStep`."""

    def __init__(
        self,
        model: Model,
        optimizer: optax.GradientTransformation,
        loss_fn: LossFunction,
        config: SurrogateTrainingConfig,
    ):
        self._static, self._intake = _parts(model)[2], _Intake(config)

        def surrogate_update(params: Model, opt_state: optax.OptState, fixed: Model, examples: Examples) -> tuple:
            rest = eqx.combine(fixed, self._static)
            return _update(params, rest, opt_state, examples, optimizer, loss_fn, config, COMPILED)

        self._update = jax.jit(surrogate_update, donate_argnums=(0, 1))

    def __call__(
        self, model: Model, opt_state: optax.OptState, batch: TrainingBatchJAX, candidates: CandidateSet | None = None
    ) -> tuple[Model, optax.OptState, Metrics]:
        """Do what :class:`TrainStep` says."""
        params, fixed, _ = _parts(model)
        params, opt_state, metrics = self._update(params, opt_state, fixed, self._intake(batch, candidates))
        return eqx.combine(params, fixed, self._static), opt_state, metrics

    def compile(
        self, model: Model, opt_state: optax.OptState, batch: TrainingBatchJAX, candidates: CandidateSet | None = None
    ) -> Compiled:
        """Compile for the shapes of these arguments and run nothing; calls with such arguments are then compiled.

        Returns:
            The program, for a look at its memory: :func:`jaxarc.profiling.compiled_memory`.
        """
        params, fixed, _ = _parts(model)
        return self._update.lower(params, opt_state, fixed, self._intake(batch, candidates)).compile()


def create_jax_surrogate_train_step(
    model: Model, optimizer: optax.GradientTransformation, loss_fn: LossFunction, config: SurrogateTrainingConfig
) -> CompiledTrainStep:
    """Make a step that is compiled as one program: forward, backward and the optimizer's update.

    It is compiled at its first call, and again only for other shapes: names are turned into arrays before. The
    model's floating-point arrays and the state that go in are donated, so they must not be used again.

    Args:
        model: gives the structure and what is no array; the values of its arrays are not kept.
        optimizer: of the model's floating-point arrays.
        loss_fn: of one example, such as :func:`kl_divergence_loss_jax`.
        config: of precision, accumulation and weights.
    """
    return CompiledTrainStep(model, optimizer, loss_fn, config)


def create_surrogate_train_step(
    model: Model, optimizer: optax.GradientTransformation, loss_fn: LossFunction, config: SurrogateTrainingConfig
) -> TrainStep:
    """Make a step of the same numerics that compiles nothing: it takes one example and one operation after the other.

    The model may branch on values, and an error points at its line. Only ``float`` or NumPy cannot take what depends
    on parameters: the gradient would be lost. Nothing is donated. The arguments are those of
    :func:`create_jax_surrogate_train_step`.
    """
    static, intake = _parts(model)[2], _Intake(config)

    def step(
        model: Model, opt_state: optax.OptState, batch: TrainingBatchJAX, candidates: CandidateSet | None = None
    ) -> tuple[Model, optax.OptState, Metrics]:
        params, fixed, _ = _parts(model)
        rest = eqx.combine(fixed, static)
        examples = intake(batch, candidates)
        with jax.disable_jit():
            params, opt_state, metrics = _update(params, rest, opt_state, examples, optimizer, loss_fn, config, PYTHON)
        return eqx.combine(params, rest), opt_state, metrics

    return step


class _Intake:
    """What goes into a step: shapes are checked at every call, and values once, as they have to come to the host."""

    def __init__(self, config: SurrogateTrainingConfig):
        self._by_accuracy, self._has_seen_values = config.weight_by_accuracy, False

    def __call__(self, batch: TrainingBatchJAX, candidates: CandidateSet | None) -> Examples:
        candidates = candidates_of(batch) if candidates is None else candidates
        check_shapes(batch, candidates)
        if not self._has_seen_values:
            self._has_seen_values = check_padding(batch, candidates)
        accuracies = batch.expert_accuracies
        weights = accuracies if self._by_accuracy else jnp.ones_like(accuracies)
        return Examples(batch.observational_data, batch.expert_probs, weights, candidates)


def _parts(model: Model) -> tuple[Model, Model, Model]:
    """Split a model into what it learns, its other arrays, and what is no array."""
    params, rest = eqx.partition(model, eqx.is_inexact_array)
    return params, *eqx.partition(rest, eqx.is_array)


def _update(
    params: Model,
    rest: Model,
    opt_state: optax.OptState,
    examples: Examples,
    optimizer: optax.GradientTransformation,
    loss_fn: LossFunction,
    config: SurrogateTrainingConfig,
    loops: Loops,
) -> tuple[Model, optax.OptState, Metrics]:
    dtype = DTYPES[config.precision]

    def example_loss(params: Model, example: Examples) -> tuple[Array, Metrics]:
        model = eqx.combine(cast_floats(params, dtype), rest)
        logits = model(example.data, cast_floats(example.candidates, dtype)).astype(jnp.float32)
        logits = mask_padding(logits, example.candidates.is_real)
        agrees = example.probs[jnp.argmax(logits)] == example.probs.max()  # the expert may like several best
        return loss_fn(logits, example.probs), {"top1_agreement": agrees.astype(jnp.float32)}

    sums = mean_gradient(example_loss, params, examples, examples.weights, config.accumulation_steps, loops)
    updates, opt_state = optimizer.update(sums.gradient, opt_state, params)
    metrics = {"total_loss": sums.loss, **sums.numbers, "gradient_norm": optax.tree.norm(sums.gradient)}
    return optax.apply_updates(params, updates), opt_state, metrics


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


def convert_metrics(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Turn what a step returns into plain Python values; waits until the step is done.

    Arrays of one element become numbers, larger ones nested lists, and all else stays. Not for compiled code, where
    a value is not known.
    """
    if not isinstance(metrics, Mapping):
        raise TypeError(f"metrics are a mapping from name to value, got {type(metrics).__name__}; pass a step's")
    return {name: _plain(value) for name, value in metrics.items()}


def _plain(value: Any) -> Any:
    if not isinstance(value, jax.Array | np.ndarray | np.generic):
        return value
    array = np.asarray(value)
    return array.item() if array.size == 1 else array.tolist()
