"""Shards of a batch and of a task buffer, and the sums and rows that devices exchange.

All functions that send messages run inside a ``jax.shard_map``. Their results do not depend on the number of processes,
bit for bit.
"""

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh
from jaxtyping import Array, Int8, Int32, Shaped

from jaxarc.envs.params import EnvParams
from jaxarc.parallel.mesh import DATA, REPLICATED, SPLIT, place
from jaxarc.tasks.buffer import LocalRows, RowLoader, TaskBuffer

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


@dataclass(frozen=True)
class ShardedRows(RowLoader):
    """Rows that are split over the devices along a mesh axis, in their order, with padding behind the last one.

    All devices load at the same time, each a row for each of its environments. For six rows on three devices (0 1, 2 3
    and 4 5), with one environment each, which want the rows 3, 0 and 3::

        all_gather      every device knows what is asked for, [3 0 3]
        take            device 0: [-, row 0, -]    device 1: [row 3, -, row 3]    device 2: [-, -, -]
        psum_scatter    the sum of the first column goes to device 0, of the second to device 1, ...

    Here ``-`` is a row of zeros. One device has the row, so the order of the sum does not matter.
    """

    axis: str  # of the mesh
    count: int  # of all rows, without the padding

    def num_rows(self, grids: Int8[Array, "... N HW"]) -> int:
        return self.count

    def load(self, grids: Int8[Array, "n HW"], row: Int32[Array, "*B"]) -> Int8[Array, "*B HW"]:
        asked = lax.all_gather(jnp.clip(row, 0, self.count - 1), self.axis)
        # A row's index on this device: with 2 rows a device, row 3 is index 1 of device 1, and -1 on device 2.
        index = asked - lax.axis_index(self.axis) * grids.shape[0]
        is_here = (index >= 0) & (index < grids.shape[0])
        held = jnp.where(is_here[..., None], jnp.take(grids, index, axis=0, mode="clip"), jnp.int8(0))
        return lax.psum_scatter(held, self.axis, scatter_dimension=0)


def shard_tasks(params: EnvParams, mesh: Mesh) -> EnvParams:
    """Split the grids of a task buffer over the devices of a mesh; rollouts stay bitwise identical.

    Use it instead of :func:`~jaxarc.parallel.replicate` when the buffer is too large for a device. Only rollouts on
    this mesh play such params. Each device holds ``1 / D`` of the grids, which costs time in every step: for each grid
    that the rules load, it sends the rows that its environments want to all others, and gets the grids from the devices
    that hold them. With B environments in all a load sends ``B * H * W`` bytes to and from each device and needs as
    much working memory there; a step has three loads, more where observations show inputs. So it saves memory only
    where the buffer has more pairs than there are environments. The executor is the dense one, in which all devices
    load at the same time. The whole buffer has to fit into the memory of the host: pack it under ``jax.default_device``
    of a CPU.

    Raises:
        ValueError: the mesh has no axis ``"data"``, the tasks are made by a generator, or they are split already.
    """
    if DATA not in mesh.shape:
        raise ValueError(f"the mesh must have an axis {DATA!r}, got the axes {mesh.axis_names}; see data_mesh")
    if not isinstance(params, EnvParams):
        raise TypeError(f"params must be the EnvParams that jaxarc.make returns, got {type(params).__name__}")
    tasks = params.tasks
    if not isinstance(tasks, TaskBuffer):
        kind = type(tasks).__name__
        raise ValueError(f"only the grids of a task buffer can be spread, got {kind}, which holds none; replicate it")
    if tasks.row_loader != LocalRows():
        raise ValueError("the tasks are spread already; start from the params that make returned")
    num_rows = tasks.inputs.shape[0]
    # Each device holds equally many rows; a row of padding is never asked for, since loads are clipped to the count.
    padding = ((0, -num_rows % mesh.shape[DATA]), (0, 0))
    inputs, outputs = (np.pad(np.asarray(grids), padding) for grids in _grids(params))
    tasks = dataclasses.replace(tasks, inputs=inputs, outputs=outputs, row_loader=ShardedRows(DATA, num_rows))
    spread = dataclasses.replace(params, tasks=tasks, config=params.config.with_fields(executor="dense"))
    return jax.tree.map(lambda leaf, spec: place(leaf, mesh, spec), spread, task_specs(spread))


def task_specs(params: EnvParams) -> Any:
    """Return how the arrays of params are split: params with a ``PartitionSpec`` in place of each array."""
    specs = jax.tree.map(lambda _: REPLICATED, params)
    if isinstance(params.tasks, TaskBuffer) and isinstance(params.tasks.row_loader, ShardedRows):
        return eqx.tree_at(_grids, specs, (SPLIT, SPLIT))
    return specs


def _grids(params: Any) -> tuple[Array, Array]:
    return params.tasks.inputs, params.tasks.outputs
