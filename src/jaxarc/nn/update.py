"""One step of an optimizer on the mean loss of a batch: what every train step of a surrogate does; and the optimizers.

A batch is reduced example by example (:func:`mean_gradient`), by compiled loops or by loops of Python, so that a
compiled and a plain step do the same arithmetic. :func:`update` then applies the optimizer.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Float32

from jaxarc.config import ScheduleConfig, SurrogateTrainingConfig
from jaxarc.device_arrays import with_own_arrays
from jaxarc.nn.layers import DTYPES, LOSS_SCALES, cast_floats, products_in, require_precision

Tree: TypeAlias = Any
Metrics: TypeAlias = dict[str, Float32[Array, ""]]
ExampleLoss: TypeAlias = Callable[[Tree, Tree], tuple[Float32[Array, ""], Metrics]]
"""From parameters and one example to its loss and its metrics."""


class BatchMeans(NamedTuple):
    """Weighted means over a batch."""

    loss: Float32[Array, ""]
    metrics: Metrics
    gradient: Tree


class Loops(NamedTuple):
    """The loops over the examples of a part and over the parts of a batch: :data:`COMPILED` or :data:`PYTHON`."""

    over_examples: Callable[[Callable[[Tree], Tree], Tree], Tree]  # stacks the results along a leading axis
    over_parts: Callable[[Callable[[Tree, Tree], tuple[Tree, None]], Tree, Tree], Tree]  # carries a sum along


def mean_gradient(
    example_loss: ExampleLoss,
    params: Tree,
    examples: Tree,
    weights: Float32[Array, " B"],
    accumulation_steps: int,
    loops: Loops,
    precision: str = "float32",
) -> BatchMeans:
    """Return the weighted mean of loss, metrics and gradient over a batch.

    The weights are divided by their sum over the whole batch before it is cut into parts, so the sum over parts is the
    mean over the batch. With weights (1, 1, 2, 0) and two parts the shares are (1/4, 2/4) and (1/4, 0); means of the
    parts by themselves could not be combined without their weights.

    Args:
        example_loss: of one example.
        params: float32 arrays.
        examples: arrays with a leading axis B.
        weights: of the examples, 0 or more; where all are 0 so is the gradient.
        accumulation_steps: number of parts; divides B.
        loops: :data:`COMPILED` or :data:`PYTHON`.
        precision: of the products; in float16 the loss is scaled while its gradient is taken.

    Raises:
        ValueError: ``accumulation_steps`` does not divide B.
    """
    loss_scale = LOSS_SCALES[precision]
    total = weights.sum()
    shares = weights / jnp.where(total > 0, total, jnp.float32(1))

    # The loss of a part is a sum of shares, not a mean: so losses, metrics and gradients of the parts only need adding.
    def part_loss(params: Tree, part: tuple[Tree, Float32[Array, " b"]]) -> tuple[Float32[Array, ""], Metrics]:
        examples, shares = part
        losses, metrics = loops.over_examples(lambda example: example_loss(params, example), examples)
        return (losses * shares).sum() * loss_scale, jax.tree.map(lambda x: (x * shares).sum(), metrics)

    def of_part(part: tuple[Tree, Float32[Array, " b"]]) -> BatchMeans:
        with products_in(precision):
            (loss, metrics), gradient = jax.value_and_grad(part_loss, has_aux=True)(params, part)
        return BatchMeans(loss / loss_scale, metrics, jax.tree.map(lambda x: x / loss_scale, gradient))

    if accumulation_steps == 1:
        return of_part((examples, shares))
    # The sum starts from the first part instead of zeros, so it has the shapes and dtypes of a real gradient.
    parts = _cut((examples, shares), accumulation_steps)
    first = jax.tree.map(lambda x: x[0], parts)
    others = jax.tree.map(lambda x: x[1:], parts)

    def add_part(sums: BatchMeans, part: tuple[Tree, Float32[Array, " b"]]) -> tuple[BatchMeans, None]:
        return jax.tree.map(jnp.add, sums, of_part(part)), None

    return loops.over_parts(add_part, of_part(first), others)


def update(
    params: Tree,
    opt_state: optax.OptState,
    example_loss: ExampleLoss,
    examples: Tree,
    optimizer: optax.GradientTransformation,
    *,
    weights: Float32[Array, " B"] | None = None,
    precision: str = "float32",
    accumulation_steps: int = 1,
    loops: Loops | None = None,
) -> tuple[Tree, optax.OptState, Metrics]:
    """Take the mean gradient over the examples, and apply the optimizer.

    Args:
        params: float32; the loss gets them in ``precision``. The cast is inside of what is differentiated, so the
            gradient arrives as float32 too.
        opt_state: of the optimizer.
        example_loss: of one example.
        examples: arrays with a leading axis B.
        optimizer: of the parameters.
        weights: of the examples, 0 or more; equal by default.
        precision: one of :data:`~jaxarc.nn.layers.DTYPES`.
        accumulation_steps: number of parts that are computed one after the other; divides B.
        loops: :data:`COMPILED` by default, or :data:`PYTHON`.

    Returns:
        The new parameters and state, and ``total_loss``, the metrics of the loss, and ``gradient_norm``, that of the
        mean gradient before the optimizer clips it.
    """
    dtype = DTYPES[precision]
    if weights is None:
        weights = jnp.ones(len(jax.tree.leaves(examples)[0]), jnp.float32)

    def cast_loss(params: Tree, example: Tree) -> tuple[Float32[Array, ""], Metrics]:
        return example_loss(cast_floats(params, dtype), example)

    means = mean_gradient(cast_loss, params, examples, weights, accumulation_steps, loops or COMPILED, precision)
    updates, opt_state = optimizer.update(means.gradient, opt_state, params)
    metrics = {"total_loss": means.loss, **means.metrics, "gradient_norm": optax.tree.norm(means.gradient)}
    return optax.apply_updates(params, updates), opt_state, metrics


@with_own_arrays
@jax.jit(static_argnames=("model", "optimizer", "precision"), donate_argnums=(0, 1))
def optimized_train_step(
    params: Tree,
    opt_state: optax.OptState,
    batch: dict[str, Array],
    *,
    model: Callable[[Tree, Array], Array],
    optimizer: optax.GradientTransformation,
    precision: str = "bfloat16",
) -> tuple[Tree, optax.OptState, Float32[Array, ""]]:
    """Fit a model to a batch by one :func:`update` on the mean squared error; one compiled program.

    A model saves memory by ``jax.checkpoint`` on the body of the scan over its layers: around the whole loss it would
    save nothing, since the backward pass begins by computing all of it again.

    Args:
        params: float32; they and ``opt_state`` are donated, so use only what is returned.
        opt_state: of ``optimizer.init(params)``, or of the step before.
        batch: ``x [B, ...]`` and ``y [B, ...]``.
        model: of the parameters and the ``x`` of one example; a function that is defined once, since a new one is
            compiled anew.
        optimizer: of the parameters.
        precision: one of :data:`~jaxarc.nn.layers.DTYPES`; that of parameters and ``x`` in the model.

    Returns:
        The parameters, the state of the optimizer, and the loss before the step.
    """
    dtype = require_precision(precision, "optimized_train_step")

    def squared_error(params: Tree, example: dict[str, Array]) -> tuple[Float32[Array, ""], Metrics]:
        predicted = model(params, example["x"].astype(dtype)).astype(jnp.float32)
        return jnp.mean((predicted - example["y"]) ** 2), {}

    params, opt_state, metrics = update(params, opt_state, squared_error, batch, optimizer, precision=precision)
    return params, opt_state, metrics["total_loss"]


@with_own_arrays
@jax.jit(static_argnames=("model", "precision"))
def optimized_inference(
    params: Tree,
    x_batch: Float[Array, "B *n"],
    *,
    model: Callable[[Tree, Array], Array],
    precision: str = "bfloat16",
) -> Float32[Array, "B *m"]:
    """Return what a model predicts for each example (:func:`predict`), parameters and inputs cast to ``precision``.

    Args:
        params: of the model.
        x_batch: inputs of B examples.
        model: see :func:`optimized_train_step`.
        precision: one of :data:`~jaxarc.nn.layers.DTYPES`.
    """
    dtype = require_precision(precision, "optimized_inference")
    cast = cast_floats(params, dtype)
    with products_in(precision):
        return predict(lambda x: model(cast, x), x_batch.astype(dtype))


@with_own_arrays
@eqx.filter_jit
def predict(model: Callable[..., Array], *inputs: Tree) -> Float32[Array, "B *m"]:
    """Return a model's float32 outputs for a batch, in the precision of its weights; the inputs have a leading axis."""
    return jax.vmap(model)(*inputs).astype(jnp.float32)


def _cut(examples: Tree, count: int) -> Tree:
    """Cut examples into parts along a new leading axis: of 8 examples and 4 parts, the first part is (0, 4).

    Where each device of a mesh holds neighbors, 0 .. 3 and 4 .. 7, each device so has an equal share of every part.
    """
    num_examples = jax.tree.leaves(examples)[0].shape[0]
    if num_examples % count:
        raise ValueError(
            f"accumulation_steps must divide the number of examples in a batch, got {count} and {num_examples}; "
            "change one of them"
        )
    # [8, ...] -> [2, 4, ...] -> [4, 2, ...]: the rows 0 1 2 3 and 4 5 6 7, read by columns.
    return jax.tree.map(lambda x: x.reshape(-1, count, *x.shape[1:]).swapaxes(0, 1), examples)


def _each_in_python(function: Callable[[Tree], Tree], examples: Tree) -> Tree:
    count = jax.tree.leaves(examples)[0].shape[0]
    results = [function(jax.tree.map(lambda x, index=index: x[index], examples)) for index in range(count)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *results)


def _sum_in_python(function: Callable[[Tree, Tree], tuple[Tree, None]], sums: Tree, parts: Tree) -> Tree:
    for index in range(jax.tree.leaves(parts)[0].shape[0]):
        sums, _ = function(sums, jax.tree.map(lambda x, index=index: x[index], parts))
    return sums


COMPILED: Final = Loops(  # the model must be traceable
    over_examples=lambda function, examples: jax.vmap(function)(examples),
    over_parts=lambda function, sums, parts: jax.lax.scan(function, sums, parts)[0],
)
PYTHON: Final = Loops(_each_in_python, _sum_in_python)  # the model may branch on values


def make_surrogate_optimizer(config: SurrogateTrainingConfig) -> optax.GradientTransformation:
    """Return AdamW on clipped gradients, with the learning rate of the config."""
    return optax.chain(
        optax.clip_by_global_norm(config.max_grad_norm),
        optax.adamw(surrogate_learning_rate(config), weight_decay=config.weight_decay),
    )


def init_optimizer(optimizer: optax.GradientTransformation, model: eqx.Module) -> optax.OptState:
    """Make the first state of an optimizer for the parameters of a model, which are its floating-point arrays."""
    return optimizer.init(eqx.filter(model, eqx.is_inexact_array))


def surrogate_learning_rate(config: SurrogateTrainingConfig) -> optax.Schedule:
    """Return the learning rate of each of ``config.num_steps`` steps."""
    return warmup_then_decay(
        config.learning_rate, config.final_learning_rate, config.decay, config.warmup_steps, config.num_steps
    )


def learning_rate_schedule(config: ScheduleConfig, num_steps: int) -> optax.Schedule:
    """Return the learning rate of each of ``num_steps`` steps of an agent's optimizer."""
    warmup_steps = round(config.warmup_share * num_steps)
    return warmup_then_decay(config.learning_rate, config.final_learning_rate, config.decay, warmup_steps, num_steps)


def entropy_weight_schedule(config: ScheduleConfig, num_updates: int) -> optax.Schedule:
    """Return the weight of the entropy in each of ``num_updates`` updates, which changes in a straight line."""
    return optax.linear_schedule(config.entropy_weight, config.final_entropy_weight, max(num_updates, 1))


def warmup_then_decay(peak: float, final: float, decay: str, warmup_steps: int, num_steps: int) -> optax.Schedule:
    """Return a schedule that rises from 0 to ``peak`` in a straight line and then falls to ``final``.

    With ``peak=1, final=0, decay="linear", warmup_steps=2, num_steps=6`` the steps 0 .. 6 get
    0, 0.5, 1, 0.75, 0.5, 0.25, 0.

    Args:
        peak: after the warmup.
        final: after ``num_steps``, unless ``decay`` is "constant".
        decay: one of :data:`jaxarc.config.agent_training.Decay`.
        warmup_steps: of the rise; 0 starts at ``peak``.
        num_steps: rise and fall together.
    """
    # The second schedule counts its steps from the end of the warmup on, so it has what is left of the steps.
    decay_steps = max(num_steps - warmup_steps, 1)
    match decay:
        case "linear":
            fall = optax.linear_schedule(peak, final, decay_steps)
        case "cosine":
            fall = optax.cosine_decay_schedule(peak, decay_steps, alpha=final / peak if peak else 0.0)
        case _:
            fall = optax.constant_schedule(peak)
    if not warmup_steps:
        return fall
    return optax.join_schedules([optax.linear_schedule(0.0, peak, warmup_steps), fall], [warmup_steps])
