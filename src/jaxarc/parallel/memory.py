"""Refuse a batch that does not fit in memory before it starts."""

import math
from typing import Any, Final

import jax
from jax.sharding import Mesh
from jaxtyping import PyTree

from jaxarc.errors import JaxarcError
from jaxarc.jobs import host_memory

_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB", "PB")
_MARGIN: Final = 0.9  # of the batch that would fit by proportion, since some memory does not grow with the batch


class NotEnoughMemoryError(JaxarcError, MemoryError):
    """A batch needs more memory than there is; nothing has been started.

    Attributes:
        num_envs: environments of the batch.
        needed_bytes: memory of the batch besides what is in use already, over all devices of this process.
        available_bytes: free memory, over the same devices.
        fitting_envs: a batch that would fit, 0 when none does.
    """

    def __init__(self, num_envs: int, needed_bytes: int, available_bytes: int, fitting_envs: int):
        self.num_envs = num_envs
        self.fitting_envs = fitting_envs
        self.needed_bytes = needed_bytes
        self.available_bytes = available_bytes
        advice = f"num_envs={fitting_envs} would fit" if fitting_envs else "not even one environment per device fits"
        super().__init__(
            f"num_envs={num_envs} needs {_in_words(needed_bytes)} of memory, but {_in_words(available_bytes)} are "
            f"available; {advice}"
        )

    def __reduce__(self) -> tuple:
        return type(self), (self.num_envs, self.needed_bytes, self.available_bytes, self.fitting_envs)


def require_memory(
    num_envs: int, needed_bytes: int | None, available_bytes: int | None, *, num_devices: int = 1, growth: float = 1.0
) -> None:
    """Raise when a batch needs more memory than is available.

    Example: 1,000 environments need at least 1,000 bytes, in the end three times as many, and 100 are free. By
    proportion 33 environments would fit; nine tenths of that, 30, are proposed.

    Args:
        num_envs: environments of the batch.
        needed_bytes: what it needs at least, over all devices of this process; None where that is not known, which
            raises nothing.
        available_bytes: free memory, over the same devices; None where it is not known, which raises nothing.
        num_devices: the batch that is proposed instead is a multiple of it.
        growth: memory in the end, as a multiple of ``needed_bytes``; for the proposal only.

    Raises:
        NotEnoughMemoryError: with a batch that would fit.
    """
    if needed_bytes is None or available_bytes is None or needed_bytes <= available_bytes:
        return
    # By proportion, with a margin, rounded down to a multiple of the devices.
    fitting = int(_MARGIN * num_envs * max(available_bytes, 0) / (growth * needed_bytes))
    raise NotEnoughMemoryError(num_envs, needed_bytes, available_bytes, fitting - fitting % num_devices)


def size_of(shapes: PyTree[Any]) -> int:
    """Return the bytes of all arrays of a tree; their shapes, as of ``jax.eval_shape``, are enough."""
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))


def program_memory(program: Any) -> int | None:
    """Return the bytes that a compiled program takes on a device besides its arguments; None where XLA does not say."""
    sizes = program.memory_analysis()
    if sizes is None:
        return None
    # Donated arguments share their memory with results.
    return sizes.temp_size_in_bytes + sizes.output_size_in_bytes - sizes.alias_size_in_bytes


def available_memory(mesh: Mesh | None = None) -> int | None:
    """Return the free bytes on this process's devices of a mesh, None where the backend does not report them.

    Without a mesh that is the free memory of the first device. CPU devices share the memory of the machine, or less in
    a container with a limit. A batch is split evenly, so of accelerators the fullest one counts: with 900 and 600 bytes
    free on two of them, 1,200 are available.
    """
    devices = jax.local_devices()[:1] if mesh is None else mesh.local_devices
    if devices[0].platform == "cpu":
        return host_memory()
    free: list[int] = []
    for device in devices:
        stats = device.memory_stats()
        if stats is None or "bytes_limit" not in stats or "bytes_in_use" not in stats:
            return None
        free.append(stats["bytes_limit"] - stats["bytes_in_use"])
    return min(free) * len(free)


def _in_words(num_bytes: int) -> str:
    """Write bytes for people: ``2.5 GB (2,500,000,000 bytes)``."""
    value = float(num_bytes)
    unit = 0
    while abs(value) >= 1000 and unit < len(_UNITS) - 1:
        # 2,500,000,000 takes three turns: 2.5 GB.
        value /= 1000
        unit += 1
    exact = f"{num_bytes:,} bytes"
    return exact if unit == 0 else f"{value:.1f} {_UNITS[unit]} ({exact})"
