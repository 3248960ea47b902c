"""A device's share of a batch that several work on, and how what they find is put together, always in one order."""

import functools
from dataclasses import dataclass
from typing import Final, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int32, Shaped

Tree = TypeVar("Tree")

_SHORT: Final = 4096  # numbers up to which one message with all of them is cheaper than two with a part each


@dataclass(frozen=True)
class DataShard:
    """One of ``count`` equal parts of a batch, inside a ``jax.shard_map`` over the mesh axis ``axis``.

    Sums add the devices' numbers in the order of the devices, whoever carries the messages: a ``jax.lax.psum`` leaves
    the order to the backend, which on a CPU depends on how many processes the devices belong to. Each device receives
    about twice the bytes of what is summed, as in the all-reduce of a ring.
    """

    axis: str | None  # None: there is only one part, and nothing to put together
    count: int

    def local_slice(self, whole: Shaped[Array, "..."], axis: int = 0) -> Shaped[Array, "..."]:
        """Cut this device's part out of what was made for the whole batch; ``count`` divides that axis."""
        if self.axis is None:
            return whole
        size = whole.shape[axis] // self.count
        return lax.dynamic_slice_in_dim(whole, lax.axis_index(self.axis) * size, size, axis)

    def bounds(self, total: int) -> tuple[Int32[Array, ""], Int32[Array, ""]]:
        """Return where this device's part of so many things begins and ends; the last parts may be smaller or empty."""
        size = -(-total // self.count)
        begin = jnp.int32(0) if self.axis is None else lax.axis_index(self.axis) * size
        return jnp.minimum(begin, total), jnp.minimum(begin + size, total)

    def sum(self, tree: Tree) -> Tree:
        """Add up what each device holds; all get the same bits.

        Args:
            tree: arrays, of the same shapes on every device. All of one dtype travel together.
        """
        if self.axis is None:
            return tree
        leaves, structure = jax.tree.flatten(tree)
        sums = list(leaves)
        for dtype in dict.fromkeys(leaf.dtype for leaf in leaves):
            places = [place for place, leaf in enumerate(leaves) if leaf.dtype == dtype]
            flat = self._sum_in_order(jnp.concatenate([leaves[place].ravel() for place in places]))
            start = 0
            for place in places:
                stop = start + leaves[place].size
                sums[place] = flat[start:stop].reshape(leaves[place].shape)
                start = stop
        return jax.tree.unflatten(structure, sums)

    def mean(self, tree: Tree) -> Tree:
        """Average what each device holds, floating-point arrays; all get the same bits."""
        if self.axis is None:
            return tree
        return jax.tree.map(lambda total: total / self.count, self.sum(tree))

    def _sum_in_order(self, numbers: Shaped[Array, " n"]) -> Shaped[Array, " n"]:
        assert self.axis is not None
        add_rows = lambda rows: functools.reduce(jnp.add, [rows[device] for device in range(self.count)])
        if numbers.size <= _SHORT:
            return add_rows(lax.all_gather(numbers, self.axis))
        # Each device adds up one part of the numbers, and tells the others.
        rows = jnp.pad(numbers, (0, -numbers.size % self.count)).reshape(self.count, -1)
        mine = add_rows(lax.all_to_all(rows, self.axis, 0, 0))
        return lax.all_gather(mine, self.axis, tiled=True)[: numbers.size]


UNSHARDED: Final = DataShard(None, 1)
"""All of a batch, on one device."""
