"""Which devices a batch, and the weights of a model, are spread over."""

import math
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

DATA: Final = "data"  # the mesh axis along which environments, and the examples of a batch, are split
MODEL: Final = "model"  # along which weights are split
STAGE: Final = "stage"  # along which the layers of a model are split
REPLICATED: Final = PartitionSpec()
SPLIT: Final = PartitionSpec(DATA)

Tree = TypeVar("Tree")


def data_mesh(num_devices: int | None = None) -> Mesh:
    """Return a mesh with one axis, ``"data"``, over the first devices.

    Args:
        num_devices: how many, all of them when left out; where there are several processes, all devices of all of them.

    Raises:
        ValueError: there are fewer devices, or more in other processes.
    """
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

    Neighbors on the last axis are close in the machine where it has a topology, so the axis that talks most comes
    last. The axes are of the type Auto: arrays need not say how they lie before they are used.

    Args:
        shape: how many devices along each axis.
        axis_names: one for each axis.
        devices: exactly as many as the mesh holds; the first ones of all processes when left out.

    Raises:
        ValueError: an axis has no device or no name, two have the same name, or the devices do not fit the shape.
    """
    shape, axis_names = tuple(shape), tuple(axis_names)
    if len(shape) != len(axis_names) or len(set(axis_names)) != len(axis_names):
        raise ValueError(f"each axis of a mesh needs a name of its own, got shape {shape} and names {axis_names}")
    if not shape or min(shape) < 1:
        raise ValueError(f"each axis of a mesh needs a device or more, got shape {shape}; leave an axis out instead")
    needed, sizes = math.prod(shape), " x ".join(f"{name}={size}" for name, size in zip(axis_names, shape, strict=True))
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


def replicate(tree: Tree, mesh: Mesh) -> Tree:
    """Copy the arrays of a tree to every device, so that a rollout does not do it on every call.

    Leaves that are not arrays, such as the functions of a network, stay as they are.
    """
    return place(tree, mesh, REPLICATED)


def place(tree: Tree, mesh: Mesh, spec: PartitionSpec) -> Tree:
    """Put the arrays of a tree on the devices of a mesh; nothing is copied that lies there already.

    Where the devices belong to several processes each of them holds the whole arrays, and places its own part.
    """
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
