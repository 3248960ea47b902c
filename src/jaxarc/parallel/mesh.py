"""Which devices a batch of environments is spread over."""

import os
import sys
from typing import Any, Final, TypeVar

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

DATA: Final = "data"  # the mesh axis along which environments are split
REPLICATED: Final = PartitionSpec()
SPLIT: Final = PartitionSpec(DATA)

Tree = TypeVar("Tree")


def data_mesh(num_devices: int | None = None) -> Mesh:
    """Return a mesh with one axis, ``"data"``, over the first devices of this process.

    Args:
        num_devices: how many, all of them when left out.

    Raises:
        ValueError: there are fewer devices.
    """
    devices = jax.local_devices()
    wanted = len(devices) if num_devices is None else num_devices
    if not 1 <= wanted <= len(devices):
        raise ValueError(
            f"num_devices must be 1 .. {len(devices)}, the devices of this process, got {wanted}; on a CPU, "
            f"use_host_cores({max(wanted, 1)}) before anything else of JAX makes more"
        )
    return jax.make_mesh((wanted,), (DATA,), axis_types=(AxisType.Auto,), devices=devices[:wanted])


def host_cores() -> int:
    """Count the CPU cores that this process may run on."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def use_host_cores(num: int | None = None) -> int:
    """Make one CPU device per core, so that a rollout uses all of them; to be called before anything else of JAX.

    On its own a program of small steps runs on one core, whatever the machine has. Accelerators are not affected.

    Args:
        num: CPU devices to make. When left out, one per core that this process may run on, unless the config
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


def require_even_split(num_envs: int, mesh: Mesh) -> int:
    """Return the number of environments per device of the mesh.

    Raises:
        ValueError: the mesh has no axis ``"data"``, or its size does not divide ``num_envs``.
    """
    if DATA not in mesh.shape:
        raise ValueError(f"the mesh must have an axis {DATA!r}, got the axes {mesh.axis_names}; see data_mesh")
    devices = mesh.shape[DATA]
    if num_envs < 1 or num_envs % devices:
        below = num_envs - num_envs % devices
        nearest = max(devices, below if num_envs - below <= devices // 2 else below + devices)
        raise ValueError(
            f"num_envs={num_envs} cannot be split evenly over {devices} device(s); the nearest number that can is "
            f"{nearest}"
        )
    return num_envs // devices


def replicate(tree: Tree, mesh: Mesh) -> Tree:
    """Copy the arrays of a tree to every device, so that a rollout does not do it on every call.

    Leaves that are not arrays, such as the functions of a network, stay as they are.
    """
    return place(tree, mesh, REPLICATED)


def place(tree: Tree, mesh: Mesh, spec: PartitionSpec) -> Tree:
    """Put the arrays of a tree on the devices of a mesh; nothing is copied that lies there already."""
    sharding = NamedSharding(mesh, spec)

    def put(leaf: Any) -> Any:
        placed = not is_array(leaf) or (isinstance(leaf, jax.Array) and leaf.sharding == sharding)
        return leaf if placed else jax.device_put(leaf, sharding)

    return jax.tree.map(put, tree)


def is_array(leaf: Any) -> bool:
    """Whether a leaf is an array of JAX or NumPy."""
    return isinstance(leaf, jax.Array | np.ndarray | np.generic)
