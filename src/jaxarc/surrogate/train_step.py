"""Train steps of a surrogate: compiled as one program, plain operation by operation, or one that chooses.

A step makes arrays of the batch (:class:`_Intake`), takes the weighted mean gradient over its examples, and applies the
optimizer. The compiled and the plain step share :func:`_update`, so they have the same numerics.
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
from jaxtyping import Array, Bool, Float32

from jaxarc.config import SurrogateTrainingConfig
from jaxarc.device_arrays import own_arrays
from jaxarc.nn.layers import DTYPES, cast_floats
from jaxarc.nn.update import COMPILED, PYTHON, Loops, Metrics, update
from jaxarc.surrogate.batch import GraphBatch, TrainingBatchJAX, require_batch
from jaxarc.surrogate.candidate_features import CandidateSet, candidates_of, check_padding, check_shapes
from jaxarc.surrogate.losses import kl_divergence_loss_jax, mask_padding

Model: TypeAlias = Any
"""A pytree, such as an Equinox module, to be called with the data [N, d, 3] and the candidates of one example, if any.

Parameters and candidates are cast to the precision of the computation before the call. The data stay float32: the
model casts them, after it has taken means over samples for example.
"""
LossFunction: TypeAlias = Callable[[Float32[Array, "..."], Array], Float32[Array, ""]]
"""From the logits of one example, very low for padding, and the expert's probabilities, or the graph, to a loss."""
Batch: TypeAlias = TrainingBatchJAX | GraphBatch


class TrainStep(Protocol):
    """The signature of a train step."""

    def __call__(
        self, model: Model, opt_state: optax.OptState, batch: Batch, candidates: CandidateSet | None = None
    ) -> tuple[Model, optax.OptState, Metrics]:
        """Update the model once.

        Args:
            model: has the structure of the model that the step was made for.
            opt_state: from :func:`init_optimizer` or the step before.
            batch: of B examples.
            candidates: of the examples of a :class:`TrainingBatchJAX`; by default the parent sets that it names.

        Returns:
            The new model and state, and ``total_loss``, ``gradient_norm`` and, of candidates, ``top1_agreement``
            (share, weighted as the loss is, of examples whose first choice is one that the expert likes best), arrays;
            :func:`convert_metrics` makes numbers of them.

        Raises:
            TypeError: the batch is no :class:`TrainingBatchJAX` or :class:`GraphBatch`.
            ValueError: the candidates do not fit the batch, the batch cannot be cut into ``accumulation_steps``, or the
                expert gives weight to padding, which is checked at the first call only.
        """
        ...


class Examples(NamedTuple):
    """The arrays of a batch of B examples, as the loss needs them."""

    data: Float32[Array, "B N d 3"]
    target: Float32[Array, "B k"] | Bool[Array, "B d d"]  # the expert's probabilities, or the graph
    candidates: CandidateSet | None  # None where a model scores edges


class CompiledTrainStep:
    """A step that is compiled as one program for each shape of its arguments; see :class:`TrainStep`."""

    def __init__(
        self,
        model: Model,
        optimizer: optax.GradientTransformation,
        loss_fn: LossFunction,
        config: SurrogateTrainingConfig,
    ):
        self._static = _split(model)[2]
        self._intake = _Intake(config)

        # Leaves that are no arrays cannot be arguments of compiled code; they come from outside, the same at each call.
        def surrogate_update(
            params: Model, opt_state: optax.OptState, fixed: Model, examples: Examples, weights: Array | None
        ) -> tuple:
            rest = eqx.combine(fixed, self._static)
            return _update(params, rest, opt_state, examples, weights, optimizer, loss_fn, config, COMPILED)

        self._update = jax.jit(surrogate_update, donate_argnums=(0, 1))

    def __call__(
        self, model: Model, opt_state: optax.OptState, batch: Batch, candidates: CandidateSet | None = None
    ) -> tuple[Model, optax.OptState, Metrics]:
        """Do what :class:`TrainStep` says."""
        params, fixed, _ = _split(model)
        params, opt_state, metrics = self._update(params, opt_state, fixed, *self._intake(batch, candidates))
        return eqx.combine(params, fixed, self._static), opt_state, metrics

    def compile(
        self, model: Model, opt_state: optax.OptState, batch: Batch, candidates: CandidateSet | None = None
    ) -> Compiled:
        """Compile for the shapes of these arguments and run nothing; calls with such arguments are then compiled.

        Returns:
            The program, for example for :func:`jaxarc.profiling.compiled_memory`.
        """
        params, fixed, _ = _split(model)
        return self._update.lower(params, opt_state, fixed, *self._intake(batch, candidates)).compile()


def create_jax_surrogate_train_step(
    model: Model, optimizer: optax.GradientTransformation, loss_fn: LossFunction, config: SurrogateTrainingConfig
) -> CompiledTrainStep:
    """Make a step that is compiled as one program: forward, backward and the optimizer's update.

    It is compiled at its first call, and again only for other shapes: names of candidates become arrays before, so
    they never retrace. The model's floating-point arrays and the state that go in are donated, so they must not be
    used again.

    Args:
        model: gives the structure and the leaves that are no arrays; the values of its arrays are not kept.
        optimizer: of the model's floating-point arrays.
        loss_fn: of one example, such as :func:`kl_divergence_loss_jax`.
        config: of precision, accumulation and weights.
    """
    return CompiledTrainStep(model, optimizer, loss_fn, config)


def create_surrogate_train_step(
    model: Model, optimizer: optax.GradientTransformation, loss_fn: LossFunction, config: SurrogateTrainingConfig
) -> TrainStep:
    """Make a step of the same numerics that compiles nothing: it runs example by example, operation by operation.

    The model may branch on values, and an error points at its line. ``float`` and NumPy cannot take values that
    depend on parameters, since their gradient would be lost. Nothing is donated. The arguments are those of
    :func:`create_jax_surrogate_train_step`.
    """
    static = _split(model)[2]
    intake = _Intake(config)

    def step(
        model: Model, opt_state: optax.OptState, batch: Batch, candidates: CandidateSet | None = None
    ) -> tuple[Model, optax.OptState, Metrics]:
        params, fixed, _ = _split(model)
        rest = eqx.combine(fixed, static)
        examples, weights = intake(batch, candidates)
        with jax.disable_jit():
            params, opt_state, metrics = _update(
                params, rest, opt_state, examples, weights, optimizer, loss_fn, config, PYTHON
            )
        return eqx.combine(params, rest), opt_state, metrics

    return step


class _Intake:
    """Makes the arrays of a batch. It checks shapes at every call, and values once, since they must reach the host."""

    def __init__(self, config: SurrogateTrainingConfig):
        self._by_accuracy = config.weight_by_accuracy
        self._has_seen_values = False

    def __call__(self, batch: Batch, candidates: CandidateSet | None) -> tuple[Examples, Float32[Array, " B"] | None]:
        require_batch(batch)
        if isinstance(batch, GraphBatch):
            return own_arrays(Examples(batch.data, batch.adjacency, None)), None
        candidates = candidates_of(batch) if candidates is None else candidates
        check_shapes(batch, candidates)
        # To see values the host waits for the device. So only the first batch pays for it.
        if not self._has_seen_values:
            self._has_seen_values = check_padding(batch, candidates)
        # With equal weights the loss is the plain mean; otherwise an expert of accuracy
        # 0.9 counts thrice as much as one of 0.3.
        weights = batch.expert_accuracies if self._by_accuracy else None
        return own_arrays((Examples(batch.observational_data, batch.expert_probs, candidates), weights))


def _split(model: Model) -> tuple[Model, Model, Model]:
    """Split a model into its parameters, its other arrays, and the leaves that are no arrays."""
    params, rest = eqx.partition(model, eqx.is_inexact_array)
    return params, *eqx.partition(rest, eqx.is_array)


def _update(
    params: Model,
    rest: Model,
    opt_state: optax.OptState,
    examples: Examples,
    weights: Float32[Array, " B"] | None,
    optimizer: optax.GradientTransformation,
    loss_fn: LossFunction,
    config: SurrogateTrainingConfig,
    loops: Loops,
) -> tuple[Model, optax.OptState, Metrics]:
    """Do the one update that all steps share."""

    def example_loss(params: Model, example: Examples) -> tuple[Array, Metrics]:
        model = eqx.combine(params, rest)
        if example.candidates is None:
            return loss_fn(model(example.data).astype(jnp.float32), example.target), {}
        candidates = cast_floats(example.candidates, DTYPES[config.precision])
        logits = mask_padding(model(example.data, candidates).astype(jnp.float32), candidates.is_real)
        # Several candidates may share the highest probability.
        agrees = example.target[jnp.argmax(logits)] == example.target.max()
        return loss_fn(logits, example.target), {"top1_agreement": agrees.astype(jnp.float32)}

    return update(
        params,
        opt_state,
        example_loss,
        examples,
        optimizer,
        weights=weights,
        precision=config.precision,
        accumulation_steps=config.accumulation_steps,
        loops=loops,
    )


# The errors of tracing and compiling, which make the adaptive step fall back. Wrong shapes and wrong batches raise
# other errors, and errors of a program as it runs, such as too little memory, are raised outside of the ``try``.
COMPILATION_ERRORS: Final = (
    jax.errors.JAXTypeError,
    jax.errors.JAXIndexError,
    jax.errors.JaxRuntimeError,
    NotImplementedError,
)

logger = logging.getLogger(__name__)


class AdaptiveTrainStep:
    """Compiles at its first call; when that fails it logs one warning and takes the plain step from then on.

    Inside other compiled code (``jax.vmap`` over seeds) it compiles nothing itself, and errors are raised.

    Attributes:
        compiled: whether calls are compiled; false after a failure.
    """

    def __init__(
        self,
        compiled_step: CompiledTrainStep | None,
        plain_step: TrainStep,
        compile_from: int = 0,
        falls_back: bool = True,
    ):
        """Choose between two steps; see :func:`create_adaptive_train_step`.

        Args:
            compiled_step: None to compile nothing.
            plain_step: of the same numerics.
            compile_from: size of the data of the smallest batch that is compiled.
            falls_back: false to raise the errors of compiling.
        """
        self.compiled = compiled_step is not None
        self._compiled_step = compiled_step
        self._plain_step = plain_step
        self._compile_from = compile_from
        self._may_fail = falls_back  # until it has compiled

    def __call__(
        self, model: Model, opt_state: optax.OptState, batch: Batch, candidates: CandidateSet | None = None
    ) -> tuple[Model, optax.OptState, Metrics]:
        """Do what :class:`TrainStep` says."""
        require_batch(batch)
        arguments = (model, opt_state, batch, candidates)
        data = batch.data if isinstance(batch, GraphBatch) else batch.observational_data
        if self._compiled_step is None or data.size < self._compile_from:
            return self._plain_step(*arguments)
        # Only compiling is tried, not running: so nothing is donated yet when it fails, and the plain
        # step can still use all arguments. With a tracer among them the caller compiles, and this
        # step is a part of the caller's program.
        if self._may_fail and not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(arguments)):
            jax.block_until_ready(arguments)  # an error in making them is raised here, and is no failure to compile
            try:
                self._compiled_step.compile(*arguments)
            except COMPILATION_ERRORS as error:
                logger.warning("JAX compilation failed: %s, falling back to original", error)
                self.compiled = False
                self._compiled_step = None
                return self._plain_step(*arguments)
            self._may_fail = False
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
    """Make the step that ``config.train_step`` names, as ``jaxarc train surrogate=...`` does.

    ``adaptive`` compiles when possible and is plain otherwise: a model is traced at its first call, so only then it
    shows whether it can be compiled. The step falls back for a model whose Python code needs values, or that the
    backend refuses; other errors, and those of a running program, are raised. ``compiled`` raises all errors, and
    ``plain`` compiles nothing.

    Args:
        use_jax_compilation: false for a plain step, whatever the config names.
        model: see :func:`create_jax_surrogate_train_step`.
        optimizer: of the model's floating-point arrays.
        loss_fn: of one example.
        config: of the kind of step, precision, accumulation and weights.
        compile_from: size of the data of a batch, B * N * d * 3; smaller batches take the plain step, which is
            faster for a few steps, because it does not wait for the compiler.
    """
    config = config or SurrogateTrainingConfig()
    parts = (model, optimizer, loss_fn, config)
    compiles = use_jax_compilation and config.train_step != "plain"
    compiled_step = create_jax_surrogate_train_step(*parts) if compiles else None
    falls_back = config.train_step == "adaptive"
    return AdaptiveTrainStep(compiled_step, create_surrogate_train_step(*parts), compile_from, falls_back)


def convert_metrics(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the metrics of a step into plain Python values; waits until the step is done.

    Arrays of one element become numbers, larger ones nested lists, and other values stay. Call it outside of compiled
    code.
    """
    if not isinstance(metrics, Mapping):
        raise TypeError(f"metrics are a mapping from name to value, got {type(metrics).__name__}; pass a step's")
    return {name: _plain(value) for name, value in metrics.items()}


def _plain(value: Any) -> Any:
    if not isinstance(value, jax.Array | np.ndarray | np.generic):
        return value
    array = np.asarray(value)
    return array.item() if array.size == 1 else array.tolist()
