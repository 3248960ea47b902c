"""Memory in use on the devices, and memory that a compiled program will need."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
from jax.stages import Compiled

from jaxarc.files import write_whole


class DeviceMemory(NamedTuple):
    """Memory of one device, in bytes; None where the backend gives no number."""

    device: str
    bytes_in_use: int
    peak_bytes: int | None  # most in use since the process started
    limit_bytes: int | None  # that JAX may use of the device


class CompiledMemory(NamedTuple):
    """Memory of one compiled program on one device, in bytes; None where the backend gives no number."""

    argument_bytes: int | None
    output_bytes: int | None
    temp_bytes: int | None  # between the first and the last operation
    alias_bytes: int | None  # outputs in the memory of donated arguments
    generated_code_bytes: int | None


class TrainingMemory(NamedTuple):
    """What a train step holds on one device, in bytes; None where the backend gives no number."""

    parameters: int
    optimizer: int  # its state, such as the two means of Adam
    gradients: int  # as many as parameters
    activations: int | None  # all other temporaries: what the forward pass keeps for the backward pass
    batch: int | None  # the other arguments


def device_memory() -> list[DeviceMemory]:
    """Return the memory of every local device.

    If the backend does not count (the CPU), ``bytes_in_use`` is the size of all live arrays; arrays that share a
    buffer are counted twice.
    """
    return [_memory_of(device) for device in jax.local_devices()]


def compiled_memory(compiled: Compiled) -> CompiledMemory:
    """Return the memory that a program needs, before it runs: ``compiled_memory(jax.jit(f).lower(x).compile())``."""
    if not isinstance(compiled, Compiled):
        raise TypeError(
            f"a compiled program was expected, got {type(compiled).__name__}; see jax.jit(f).lower(x).compile()"
        )
    sizes = compiled.memory_analysis()
    if sizes is None:
        return CompiledMemory(None, None, None, None, None)
    return CompiledMemory(
        argument_bytes=sizes.argument_size_in_bytes,
        output_bytes=sizes.output_size_in_bytes,
        temp_bytes=sizes.temp_size_in_bytes,
        alias_bytes=sizes.alias_size_in_bytes,
        generated_code_bytes=sizes.generated_code_size_in_bytes,
    )


def training_memory(compiled: Compiled, params: Any, opt_state: Any) -> TrainingMemory:
    """Return what the memory of a compiled train step is for, before it runs.

    Gradients are as large as their parameters, and the compiler counts them among its temporaries. A program that
    never holds all of them at once may have fewer temporaries than that; then ``activations`` is 0.

    Args:
        compiled: such as ``train_step.compile(model, opt_state, batch)`` of a surrogate.
        params: a pytree; its arrays of floating-point numbers are the parameters.
        opt_state: the state of the optimizer.
    """
    sizes = compiled_memory(compiled)
    parameters, optimizer = _size_of(params, eqx.is_inexact_array), _size_of(opt_state, eqx.is_array)
    return TrainingMemory(
        parameters,
        optimizer,
        gradients=parameters,
        activations=None if sizes.temp_bytes is None else max(0, sizes.temp_bytes - parameters),
        batch=None if sizes.argument_bytes is None else max(0, sizes.argument_bytes - parameters - optimizer),
    )


def _size_of(tree: Any, is_counted: Callable[[Any], bool]) -> int:
    return sum(leaf.nbytes for leaf in jax.tree.leaves(eqx.filter(tree, is_counted)))


def save_memory_profile(path: str | Path) -> Path:
    """Write the live arrays by the line of code that allocated them, as a gzipped pprof profile.

    The file is written whole, to a temporary name and then renamed. Open it with ``pprof --web PATH``.

    Returns:
        The path.

    Raises:
        OSError: the folder cannot be written, or the disk is full; an older file is then untouched.
    """
    return write_whole(path, jax.profiler.device_memory_profile())


def _memory_of(device: Any) -> DeviceMemory:
    stats = device.memory_stats()
    if stats is None:
        return DeviceMemory(str(device), _live_bytes(device), None, None)
    return DeviceMemory(str(device), stats["bytes_in_use"], stats.get("peak_bytes_in_use"), stats.get("bytes_limit"))


def _live_bytes(device: Any) -> int:
    # Of an array that is split over devices each holds one shard, of a copied one the whole.
    on_device = [x for x in jax.live_arrays() if device in x.sharding.addressable_devices]
    return sum(math.prod(x.sharding.shard_shape(x.shape)) * x.dtype.itemsize for x in on_device)
