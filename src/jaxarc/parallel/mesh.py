"""Devices: the mesh, how arrays are placed on it, and how a batch is split over its axis ``"data"``."""

import functools
import math
import os
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Bool, Int32

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


def host_cores() -> int:
    """Count the CPU cores that this process may run on."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


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
            return jax.device_put(leaf, sharding)
        whole = np.asarray(leaf)  # device_put would compare the processes' copies, array by array
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
