"""A fusion barrier: compute intermediate results once, instead of again for every cell that reads them."""

from typing import TypeVar

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, PyTree

Values = TypeVar("Values", bound=PyTree[Array])


def materialize(values: Values) -> Values:
    """Return ``values``, arrays of integers or booleans, computed for the whole batch before anything that uses them.

    XLA fuses a producer into each of its consumers. Where one number decides about many cells, a fused kernel computes
    it once per cell: ``rows = hash(key); grid[rows[cell]]`` hashes 900 times for a canvas of 30x30. On a CPU the values
    pass through a branch, which fusion does not cross. On other backends a branch costs more than it saves, so the
    values come back as they are.

    >>> bits = materialize(random_bits(key, 4))  # four words are computed, then 900 cells read them
    """
    return _through_branch(values) if jax.default_backend() == "cpu" else values


@custom_vmap
def _through_branch(values: PyTree[Array]) -> PyTree[Array]:
    # ``x | 1`` is never 0, so the first branch always runs; XLA does not know it, since x comes at run time.
    first = jax.tree.leaves(values)[0].reshape(-1)[0]
    is_true = (first | jnp.ones((), first.dtype)).astype(bool)

    def fill(values: PyTree[Array]) -> PyTree[Array]:
        # Never runs. The number comes from the predicate, so that under ``shard_map`` both branches give values that
        # vary over the same devices, which ``cond`` asks for.
        return jax.tree.map(lambda x: jnp.full(x.shape, is_true.astype(x.dtype)), values)

    return jax.lax.cond(is_true, lambda values: values, fill, values)


@_through_branch.def_vmap
def _through_one_branch(size: int, is_batched: list[PyTree[bool]], values: PyTree[Array]) -> tuple[PyTree, PyTree]:
    """Keep one branch for the whole batch: ``vmap`` of ``cond`` is a select, which fusion crosses."""
    stacked = jax.tree.map(lambda x, has: x if has else jnp.broadcast_to(x, (size, *x.shape)), values, is_batched[0])
    return _through_branch(stacked), jax.tree.map(lambda _: True, values)
