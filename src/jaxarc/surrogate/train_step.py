"""One update of a surrogate toward its expert: compiled as one program, or plain, operation by operation."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.stages import Compiled
from jaxtyping import Array, Float32

from jaxarc.config.surrogate import SurrogateTrainingConfig
from jaxarc.surrogate.batch import TrainingBatchJAX
from jaxarc.surrogate.candidates import CandidateSet, candidates_of, check_padding, check_shapes
from jaxarc.surrogate.gradient import COMPILED, PYTHON, Loops, mean_gradient
from jaxarc.surrogate.losses import mask_padding
from jaxarc.surrogate.precision import DTYPES, cast_floats

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
