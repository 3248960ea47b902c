"""Shards of a batch, and the sums that devices exchange.

All functions that send messages run inside a ``jax.shard_map``. Their results do not depend on the number of processes,
bit for bit.
"""

import functools
from dataclasses import dataclass
from typing import Final, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int32, Shaped

Tree = TypeVar("Tree")

_SMALL: Final = 4096  # numbers up to which one message with all of them is faster than two with a part each


@dataclass(frozen=True)
class DataShard:
    """One of ``count`` equal parts of a batch, inside a ``jax.shard_map`` over the mesh axis ``axis``.

    Sums add the numbers of the devices in the order of the devices. Floating-point addition needs that to give the same
    bits: ``(0.1 + 0.2) + 0.3`` is 0.6000000000000001 and ``0.1 + (0.2 + 0.3)`` is 0.6. A ``jax.lax.psum`` leaves the
    order to the backend, which on a CPU depends on how many processes the devices belong to. Each device receives about
    twice the bytes of what is summed, as in the all-reduce of a ring.
    """

    axis: str | None  # None: the batch is in one part, on one device
    count: int

    def local_slice(self, whole: Shaped[Array, "..."], axis: int = 0) -> Shaped[Array, "..."]:
        """Cut this device's part out of an array for the whole batch; ``count`` divides that axis."""
        if self.axis is None:
            return whole
        # Device 2 of 4 takes rows 4 and 5 of 8.
        size = whole.shape[axis] // self.count
        return lax.dynamic_slice_in_dim(whole, lax.axis_index(self.axis) * size, size, axis)

    def bounds(self, total: int) -> tuple[Int32[Array, ""], Int32[Array, ""]]:
        """Return where this device's part of ``total`` things begins and ends.

        The last parts may be smaller or empty: of 5 things four devices get 0 .. 2, 2 .. 4, 4 .. 5 and 5 .. 5.
        """
        size = -(-total // self.count)
        begin = jnp.int32(0) if self.axis is None else lax.axis_index(self.axis) * size
        return jnp.minimum(begin, total), jnp.minimum(begin + size, total)

    def sum(self, tree: Tree) -> Tree:
        """Add up the arrays of all devices; all devices get bitwise identical sums.

        Args:
            tree: arrays, of the same shapes on every device. All of one dtype travel in one message.
        """
        if self.axis is None:
            return tree
        leaves, structure = jax.tree.flatten(tree)
        sums = list(leaves)
        # One message for all leaves of a dtype: shapes (3,) and (2, 2) travel as one
        # vector of 7, which is then cut at 3.
        for dtype in dict.fromkeys(leaf.dtype for leaf in leaves):
            indices = [index for index, leaf in enumerate(leaves) if leaf.dtype == dtype]
            flat = self._sum_in_order(jnp.concatenate([leaves[index].ravel() for index in indices]))
            start = 0
            for index in indices:
                stop = start + leaves[index].size
                sums[index] = flat[start:stop].reshape(leaves[index].shape)
                start = stop
        return jax.tree.unflatten(structure, sums)

    def mean(self, tree: Tree) -> Tree:
        """Average the floating-point arrays of all devices; all devices get bitwise identical means."""
        if self.axis is None:
            return tree
        return jax.tree.map(lambda total: total / self.count, self.sum(tree))

    def _sum_in_order(self, numbers: Shaped[Array, " n"]) -> Shaped[Array, " n"]:
        """Add the vectors of all devices, device 0 first.

        A short vector goes to all devices, and each adds all of them. Of a long one each device adds one part and sends
        the sums to the others. With two devices that hold ``a`` and ``b``, five numbers each::

            cut            device 0: [[a0 a1 a2] [a3 a4 0]]    device 1: [[b0 b1 b2] [b3 b4 0]]
            all_to_all     device 0: [[a0 a1 a2] [b0 b1 b2]]   device 1: [[a3 a4 0] [b3 b4 0]]
            add rows       device 0: a + b of 0 .. 2           device 1: a + b of 3 .. 4
            all_gather     both: a + b of 0 .. 4, and the padding, which is cut off
        """
        assert self.axis is not None
        add_rows = lambda rows: functools.reduce(jnp.add, [rows[device] for device in range(self.count)])
        if numbers.size <= _SMALL:
            return add_rows(lax.all_gather(numbers, self.axis))
        # ``-n % count`` is what is missing to the next multiple: 5 numbers on 2 devices get one zero.
        rows = jnp.pad(numbers, (0, -numbers.size % self.count)).reshape(self.count, -1)
        mine = add_rows(lax.all_to_all(rows, self.axis, 0, 0))
        return lax.all_gather(mine, self.axis, tiled=True)[: numbers.size]


UNSHARDED: Final = DataShard(None, 1)
"""The whole batch, on one device."""
