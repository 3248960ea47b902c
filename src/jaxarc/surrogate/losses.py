"""Losses of surrogates, and their weighted mean gradient over a batch.

A batch is reduced example by example (:func:`mean_gradient`), by compiled loops or by loops of Python, so that the
compiled and the plain train step do the same arithmetic.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32

from jaxarc.nn.precision import LOSS_SCALES, products_in

UNLIKELY: Final = -1e9  # logit of padding: no probability, and a finite gradient


def kl_divergence_loss_jax(
    predicted: Float32[Array, "*B k"],
    target: Float32[Array, "*B k"],
    mask: Bool[Array, "*B k"] | None = None,
    weights: Float32[Array, "*B"] | None = None,
) -> Float32[Array, ""]:
    """Return the divergence KL(target || softmax(predicted)) in nats, the weighted mean over the examples.

    Candidates of probability 0 add nothing, and all gradients are finite.

    Args:
        predicted: logits or log-probabilities.
        target: the expert's probabilities.
        mask: false for padding, which gets no probability.
        weights: of each example, 0 or more; equal by default. Where all are 0 the loss is 0.

    Raises:
        ValueError: the shapes differ.
    """
    if predicted.shape != target.shape:
        raise ValueError(
            f"predicted has shape {predicted.shape}, target {target.shape}; both are of the same candidates"
        )
    log_predicted = jax.nn.log_softmax(predicted if mask is None else mask_padding(predicted, mask), axis=-1)
    counts = target > 0 if mask is None else (target > 0) & mask
    # The gradient of jnp.where flows through both branches, and 0 * inf is NaN: log(0) has to be avoided inside, by
    # the logarithm of 1 where the target is 0.
    log_target = jnp.log(jnp.where(counts, target, jnp.float32(1)))
    # The target (0.5, 0.5, 0) and equal logits: 2 * 0.5 * (log 1/2 - log 1/3) = log 1.5 = 0.41 nats.
    each = jnp.where(counts, target * (log_target - log_predicted), jnp.float32(0)).sum(axis=-1)
    return each.mean() if weights is None else weighted_mean(each, weights)


def mask_padding(logits: Float32[Array, "*B k"], mask: Bool[Array, "*B k"]) -> Float32[Array, "*B k"]:
    """Return logits in which padding has a value so low that its probability is 0."""
    return jnp.where(mask, logits, jnp.float32(UNLIKELY))


def weighted_mean(values: Float32[Array, "*B"], weights: Float32[Array, "*B"]) -> Float32[Array, ""]:
    """Return the weighted mean, and 0 where all weights are 0."""
    # Where the total is 0, so is the weighted sum: to divide by 1 gives 0 and not NaN.
    total = weights.sum()
    return (values * weights).sum() / jnp.where(total > 0, total, jnp.float32(1))


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
