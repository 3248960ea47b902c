"""Memory in use on the devices, and memory that a compiled program will need."""

import math
from pathlib import Path
from typing import Any, NamedTuple

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
