"""Loss and gradient over a batch, worked through in parts, by compiled loops or by loops of Python."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32

Tree: TypeAlias = Any
ExampleLoss: TypeAlias = Callable[[Tree, Tree], tuple[Array, dict[str, Array]]]
"""From parameters and one example to its loss and other numbers about it."""


class Sums(NamedTuple):
    """Weighted means over a batch."""

    loss: Float32[Array, ""]
    numbers: dict[str, Array]  # each the mean of what the examples gave
    gradient: Tree


class Loops(NamedTuple):
    """Two ways to do the same to each of many."""

    over_examples: Callable[[Callable[[Tree], Tree], Tree], Tree]  # results get a leading axis
    over_parts: Callable[[Callable[[Tree, Tree], tuple[Tree, None]], Tree, Tree], Tree]  # carries a sum along


def mean_gradient(
    example_loss: ExampleLoss,
    params: Tree,
    examples: Tree,
    weights: Float32[Array, " B"],
    accumulation_steps: int,
    loops: Loops,
) -> Sums:
    """Return the weighted mean of loss, numbers and gradient over a batch.

    The weights are divided by their sum over the whole batch before it is cut into parts, so the sum over parts is
    the mean over the batch, whatever the weights in a part.

    Args:
        example_loss: of one example.
        params: float32 arrays.
        examples: arrays with a leading axis B.
        weights: of the examples, 0 or more; where all are 0 so is the gradient.
        accumulation_steps: number of parts; divides B.
        loops: compiled or of Python.

    Raises:
        ValueError: ``accumulation_steps`` does not divide B.
    """
    total = weights.sum()
    shares = weights / jnp.where(total > 0, total, jnp.float32(1))

    def part_loss(params: Tree, part: tuple[Tree, Array]) -> tuple[Array, dict[str, Array]]:
        examples, shares = part
        losses, numbers = loops.over_examples(lambda example: example_loss(params, example), examples)
        return (losses * shares).sum(), jax.tree.map(lambda x: (x * shares).sum(), numbers)

    def of_part(part: tuple[Tree, Array]) -> Sums:
        (loss, numbers), gradient = jax.value_and_grad(part_loss, has_aux=True)(params, part)
        return Sums(loss, numbers, gradient)

    if accumulation_steps == 1:
        return of_part((examples, shares))
    parts = _cut((examples, shares), accumulation_steps)
    first, others = jax.tree.map(lambda x: x[0], parts), jax.tree.map(lambda x: x[1:], parts)

    def add_part(sums: Sums, part: tuple[Tree, Array]) -> tuple[Sums, None]:
        return jax.tree.map(jnp.add, sums, of_part(part)), None

    return loops.over_parts(add_part, of_part(first), others)


def _cut(examples: Tree, count: int) -> Tree:
    num_examples = jax.tree.leaves(examples)[0].shape[0]
    if num_examples % count:
        raise ValueError(
            f"accumulation_steps must divide the number of examples in a batch, got {count} and {num_examples}; "
            "change one of them"
        )
    # Part i takes every count-th example from i on: where a device holds neighbors, it has some of each part.
    return jax.tree.map(lambda x: x.reshape(-1, count, *x.shape[1:]).swapaxes(0, 1), examples)


def _each_in_python(function: Callable[[Tree], Tree], examples: Tree) -> Tree:
    count = jax.tree.leaves(examples)[0].shape[0]
    results = [function(jax.tree.map(lambda x, place=place: x[place], examples)) for place in range(count)]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *results)


def _sum_in_python(function: Callable[[Tree, Tree], tuple[Tree, None]], sums: Tree, parts: Tree) -> Tree:
    for place in range(jax.tree.leaves(parts)[0].shape[0]):
        sums, _ = function(sums, jax.tree.map(lambda x, place=place: x[place], parts))
    return sums


COMPILED: Final = Loops(
    over_examples=lambda function, examples: jax.vmap(function)(examples),
    over_parts=lambda function, sums, parts: jax.lax.scan(function, sums, parts)[0],
)
PYTHON: Final = Loops(_each_in_python, _sum_in_python)
"""The model may branch on values, which compiled code cannot tell."""
