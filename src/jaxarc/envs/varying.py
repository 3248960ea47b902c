"""Constants inside ``jax.shard_map``: JAX tracks over which devices a value varies, and loops may not change it."""

from typing import TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, PyTree, UInt32

Tree = TypeVar("Tree", bound=PyTree[Array])


def vary_like(tree: Tree, words: UInt32[Array, " words"]) -> Tree:
    """Return the same values, as varying over the devices as ``words`` are.

    A fresh state holds constants, which vary over no device; the state after a step does vary. Without this a
    ``lax.scan`` over steps inside ``shard_map`` would refuse the carry. The compiler removes the addition of zero.
    """
    zero = words[0] & jnp.uint32(0)

    def mark(leaf: Array) -> Array:
        return leaf | zero.astype(jnp.bool_) if leaf.dtype == jnp.bool_ else leaf + zero.astype(leaf.dtype)

    return jax.tree.map(mark, tree)
