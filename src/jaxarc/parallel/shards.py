"""A device's share of a batch that several work on, and how what they find is put together, always in one order."""

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
from jaxtyping import Array, Int32, Shaped

from jaxarc.envs.params import EnvParams
from jaxarc.parallel.mesh import DATA, REPLICATED, SPLIT, place
from jaxarc.tasks.buffer import RowSplit, TaskBuffer

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
            indices = [index for index, leaf in enumerate(leaves) if leaf.dtype == dtype]
            flat = self._sum_in_order(jnp.concatenate([leaves[index].ravel() for index in indices]))
            start = 0
            for index in indices:
                stop = start + leaves[index].size
                sums[index] = flat[start:stop].reshape(leaves[index].shape)
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


def shard_tasks(params: EnvParams, mesh: Mesh) -> EnvParams:
    """Spread the grids of a task buffer over the devices of a mesh; what a rollout plays stays the same, bit for bit.

    Take it instead of :func:`~jaxarc.parallel.replicate` when the buffer is too large for a device. Only rollouts on
    this mesh play such params. Each device holds ``1 / D`` of the grids, and pays for it in every step: wherever the
    rules load a grid, each device tells all others which row each of its environments wants, and gets it from the one
    that holds it. With B environments in all a load sends ``B * H * W`` bytes to and from each device and needs as much
    working memory there; a step has three loads, more where observations show inputs. So it saves memory only where the
    buffer has more pairs than there are environments. The executor is the dense one, in which all devices load at the
    same time. The whole buffer has to fit into the memory of the host: pack it under ``jax.default_device`` of a CPU.

    Raises:
        ValueError: the mesh has no axis ``"data"``, the tasks are made by a generator, or they are spread already.
    """
    if DATA not in mesh.shape:
        raise ValueError(f"the mesh must have an axis {DATA!r}, got the axes {mesh.axis_names}; see data_mesh")
    if not isinstance(params, EnvParams):
        raise TypeError(f"params must be the EnvParams that jaxarc.make returns, got {type(params).__name__}")
    tasks = params.tasks
    if not isinstance(tasks, TaskBuffer):
        kind = type(tasks).__name__
        raise ValueError(f"only the grids of a task buffer can be spread, got {kind}, which holds none; replicate it")
    if tasks.split is not None:
        raise ValueError("the tasks are spread already; start from the params that make returned")
    num_rows = tasks.inputs.shape[0]
    missing = ((0, -num_rows % mesh.shape[DATA]), (0, 0))
    inputs, outputs = (np.pad(np.asarray(grids), missing) for grids in _grids(params))
    tasks = dataclasses.replace(tasks, inputs=inputs, outputs=outputs, split=RowSplit(DATA, num_rows))
    spread = dataclasses.replace(params, tasks=tasks, config=params.config.with_fields(executor="dense"))
    return jax.tree.map(lambda leaf, spec: place(leaf, mesh, spec), spread, task_specs(spread))


def task_specs(params: EnvParams) -> Any:
    """Say how the arrays of params lie on the devices: of the same structure, a ``PartitionSpec`` for each array."""
    everywhere = jax.tree.map(lambda _: REPLICATED, params)
    if isinstance(params.tasks, TaskBuffer) and params.tasks.split is not None:
        return eqx.tree_at(_grids, everywhere, (SPLIT, SPLIT))
    return everywhere


def _grids(params: Any) -> tuple[Array, Array]:
    return params.tasks.inputs, params.tasks.outputs
