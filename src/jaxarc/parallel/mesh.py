"""Devices: the mesh, how arrays are placed on it, how a batch is split over its axis ``"data"``, and sums over it.

The methods of :class:`DataShard` that send messages run inside a ``jax.shard_map``. Their results do not depend on the
number of processes, bit for bit.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Int32, Shaped

from jaxarc.device_arrays import own_arrays
from jaxarc.jobs import host_cores

DATA: Final = "data"  # the mesh axis along which environments, and the examples of a batch, are split
MODEL: Final = "model"  # along which weights are split
STAGE: Final = "stage"  # along which the layers of a model are split
REPLICATED: Final = PartitionSpec()  # a copy on each device
SPLIT: Final = PartitionSpec(DATA)  # the first axis is split over the devices

Tree = TypeVar("Tree")


def data_mesh(num_devices: int | None = None) -> Mesh:
    """Return a mesh with one axis, ``"data"``, over the first devices.

    Args:
        num_devices: how many; all of them by default, and with several processes all devices of all of them.

    Raises:
        ValueError: there are fewer devices, or more in other processes.
    """
    # With several processes a mesh over some of the devices would leave some process without a part of it.
    devices = jax.devices()
    wanted = len(devices) if num_devices is None else num_devices
    if jax.process_count() > 1 and wanted != len(devices):
        raise ValueError(
            f"num_devices must be {len(devices)}, all devices of the {jax.process_count()} processes, got {wanted}; "
            "leave it out"
        )
    if not 1 <= wanted <= len(devices):
        raise ValueError(
            f"num_devices must be 1 .. {len(devices)}, the devices there are, got {wanted}; on a CPU, "
            f"use_host_cores({max(wanted, 1)}) before anything else of JAX makes more"
        )
    return jax.make_mesh((wanted,), (DATA,), axis_types=(AxisType.Auto,), devices=devices[:wanted])


def create_mesh(
    shape: Sequence[int],
    axis_names: Sequence[str] = (DATA, MODEL),
    devices: Sequence[Any] | None = None,
) -> Mesh:
    """Return a mesh with named axes: ``create_mesh((4, 2))`` has the axes ``"data"`` and ``"model"``.

    Neighbors on the last axis are close to each other in machines with a topology, so the axis with most messages comes
    last. The axes are of the type Auto: JAX chooses the sharding of arrays that have none.

    Args:
        shape: number of devices along each axis.
        axis_names: one for each axis.
        devices: exactly as many as the mesh holds; the first ones of all processes by default.

    Raises:
        ValueError: an axis has no device or no name, two have the same name, or the devices do not fit the shape.
    """
    shape = tuple(shape)
    axis_names = tuple(axis_names)
    if len(shape) != len(axis_names) or len(set(axis_names)) != len(axis_names):
        raise ValueError(f"each axis of a mesh needs a name of its own, got shape {shape} and names {axis_names}")
    if not shape or min(shape) < 1:
        raise ValueError(f"each axis of a mesh needs a device or more, got shape {shape}; leave an axis out instead")
    # (4, 2) takes 8 devices; where there are more, the first 8.
    needed = math.prod(shape)
    sizes = " x ".join(f"{name}={size}" for name, size in zip(axis_names, shape, strict=True))
    there = jax.devices() if devices is None else list(devices)
    if devices is not None and len(there) != needed:
        raise ValueError(f"a mesh of {sizes} takes {needed} devices, got {len(there)}; give exactly as many")
    if len(there) < needed:
        raise ValueError(
            f"a mesh of {sizes} takes {needed} devices, but there are {len(there)} ({there[0].platform}); choose sizes "
            f"whose product is at most {len(there)}, or, on a CPU, call use_host_cores({needed}) before anything else "
            "of JAX"
        )
    types = (AxisType.Auto,) * len(shape)
    return jax.make_mesh(shape, axis_names, axis_types=types, devices=there[:needed])


def use_host_cores(num: int | None = None) -> int:
    """Make one CPU device per core, so that a rollout uses all of them; call it before anything else of JAX.

    Without it a program of small steps runs on one core. Accelerators are not affected.

    Args:
        num: CPU devices to make. By default one per core that this process may run on, unless the config
            ``jax_num_cpu_devices`` already names a number.

    Returns:
        The number of CPU devices.

    Raises:
        ValueError: ``num`` is below 1.
        RuntimeError: JAX runs already, with another number of CPU devices.
    """
    if num is None:
        chosen = jax.config.values["jax_num_cpu_devices"]
        num = chosen if chosen > 0 else host_cores()
    if num < 1:
        raise ValueError(f"num must be 1 or more cores, got {num}")
    try:
        jax.config.update("jax_num_cpu_devices", num)
    except RuntimeError:
        devices = len(jax.local_devices(backend="cpu"))
        if devices != num:
            raise RuntimeError(
                f"use_host_cores({num}) comes too late: JAX already runs with {devices} CPU device(s); call it "
                "right after the imports, before arrays, keys or environments are made"
            ) from None
    return num


def replicate(tree: Tree, mesh: Mesh) -> Tree:
    """Copy the arrays of a tree to every device, so that a rollout does not do it on every call.

    Leaves that are not arrays, such as the functions of a network, stay as they are.
    """
    return place(tree, mesh, REPLICATED)


def place(tree: Tree, mesh: Mesh, spec: PartitionSpec) -> Tree:
    """Put the arrays of a tree on the devices of a mesh; arrays that are there already are not copied.

    Where the devices belong to several processes, each process holds the whole arrays and places its own part.
    """
    # An array that is placed so already is left alone, so placing twice costs nothing.
    sharding = NamedSharding(mesh, spec)

    def put(leaf: Any) -> Any:
        if not is_array(leaf) or (isinstance(leaf, jax.Array) and leaf.sharding == sharding):
            return leaf
        if sharding.is_fully_addressable:
            return jax.device_put(own_arrays(leaf), sharding)
        whole = np.asarray(own_arrays(leaf))  # device_put would compare the processes' copies, array by array
        return jax.make_array_from_callback(whole.shape, sharding, lambda part: whole[part])

    return jax.tree.map(put, tree)


def is_array(leaf: Any) -> bool:
    """Whether a leaf is an array of JAX or NumPy."""
    return isinstance(leaf, jax.Array | np.ndarray | np.generic)


def envs_per_device(num_envs: int, mesh: Mesh) -> int:
    """Return how many environments each device plays, B / D rounded up.

    Of 10 environments on 4 devices each device plays 3, B' = 12 rows in all, of which the last 2 are padding::

        device     0        1        2        3
        row        0 1 2    3 4 5    6 7 8    9 10 11
        plays      0 1 2    3 4 5    6 7 8    9  9  9     (rows 10 and 11 repeat environment 9 and do not count)

    Raises:
        ValueError: the mesh has no axis ``"data"``, or there is no environment.
    """
    if DATA not in mesh.shape:
        raise ValueError(f"the mesh must have an axis {DATA!r}, got the axes {mesh.axis_names}; see data_mesh")
    if num_envs < 1:
        raise ValueError(f"num_envs must be 1 or more, got num_envs={num_envs}; nothing can be played without one")
    return -(-num_envs // mesh.shape[DATA])


def padded_size(num_envs: int, mesh: Mesh) -> int:
    """Return B', the number of rows on all devices, padding included."""
    return mesh.shape[DATA] * envs_per_device(num_envs, mesh)


def local_rows(num_envs: int, mesh: Mesh) -> tuple[Int32[Array, " B"], Bool[Array, " B"]]:
    """Return the numbers of this device's environments in the whole batch, and which rows count; under ``shard_map``.

    A row of padding plays the last environment once more, because its states have to be valid ones. In the example of
    :func:`envs_per_device` device 3 gets ``[9 9 9]`` and ``[true false false]``.
    """
    # Rows are numbered over all devices: device 3 with 3 rows each has the rows 9, 10, 11.
    count = envs_per_device(num_envs, mesh)
    row = jax.lax.axis_index(DATA) * count + jnp.arange(count, dtype=jnp.int32)
    return jnp.minimum(row, num_envs - 1), row < num_envs


def pad_rows(tree: Tree, num_envs: int, mesh: Mesh) -> Tree:
    """Repeat the last row of each array up to B' rows; arrays with B' rows stay as they are."""
    # 10 environments on 4 devices have 12 rows: row 9 is repeated twice.
    missing = padded_size(num_envs, mesh) - num_envs

    def pad(leaf: Any) -> Any:
        if leaf.shape[0] != num_envs or missing == 0:
            return leaf
        numbers = np if isinstance(leaf, np.ndarray) else jnp
        return numbers.concatenate([leaf, numbers.repeat(leaf[-1:], missing, axis=0)])

    return jax.tree.map(pad, tree)


def drop_padding(tree: Tree, num_envs: int, mesh: Mesh, axis: int = 0) -> Tree:
    """Drop the rows of padding. Arrays without padding stay where they are; others are copied to every device."""
    keep = _keep_rows(num_envs, mesh, axis)

    def drop(leaf: Any) -> Any:
        if leaf.shape[axis] == num_envs:
            return leaf
        # With axis 1 the index is [:, :num_envs], as trajectories [S, B'] need it.
        return leaf[(slice(None),) * axis + (slice(num_envs),)] if isinstance(leaf, np.ndarray) else keep(leaf)

    return jax.tree.map(drop, tree)


def to_host(tree: Tree) -> Tree:
    """Copy arrays to NumPy, also those that are split over several processes; each process gets the whole."""

    def fetch(leaf: Any) -> Any:
        # A copy on each device can be read from this process's own; only a part of an array has to be fetched.
        spread = isinstance(leaf, jax.Array) and not (leaf.is_fully_addressable or leaf.is_fully_replicated)
        return multihost_utils.process_allgather(leaf, tiled=True) if spread else np.asarray(leaf)

    return jax.tree.map(lambda leaf: fetch(leaf) if is_array(leaf) else leaf, tree)


@functools.lru_cache(maxsize=64)
def _keep_rows(num_envs: int, mesh: Mesh, axis: int) -> Any:
    def keep(part: Array) -> Array:
        whole = jax.lax.all_gather(part, DATA, axis=axis, tiled=True)
        return jax.lax.slice_in_dim(whole, 0, num_envs, axis=axis)

    split = PartitionSpec(*(None,) * axis, DATA)
    return jax.jit(jax.shard_map(keep, mesh=mesh, in_specs=split, out_specs=REPLICATED, check_vma=False))


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
