"""Refuse a batch that does not fit in memory before it starts."""

import math
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import jax
from jax.sharding import Mesh
from jaxtyping import PyTree

from jaxarc.errors import JaxarcError

_UNITS: Final = ("bytes", "kB", "MB", "GB", "TB", "PB")
_MARGIN: Final = 0.9  # of the batch that would fit by proportion, since some memory does not grow with the batch
_NO_LIMIT: Final = 1 << 60  # what cgroup v1 reports without a limit is about 2**63


class _CgroupFiles(NamedTuple):
    """The names of the files in which a version of Linux control groups keeps its numbers."""

    mounts: tuple[str, ...]  # below /sys/fs/cgroup
    limit: str
    usage: str
    reclaimable: str  # key in memory.stat: the part of the usage that the kernel frees when it needs memory


_CGROUP_V1: Final = _CgroupFiles(("memory",), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_CGROUP_V2: Final = _CgroupFiles(("", "unified"), "memory.max", "memory.current", "inactive_file")


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


def host_memory(root: Path = Path("/")) -> int | None:
    """Return the bytes of main memory that this process can still take, None where the system does not report them.

    Args:
        root: the folder of ``proc`` and ``sys``.
    """
    # Whatever is tightest counts: a container may allow less than the machine has free.
    limits = list(_control_group_limits(root))
    meminfo = root / "proc" / "meminfo"
    if meminfo.is_file():
        fields = dict(line.split(":", 1) for line in meminfo.read_text().splitlines())
        limits.append(int(fields["MemAvailable"].split()[0]) * 1024)
    else:
        with suppress(AttributeError):  # Windows
            limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min(limits, default=None)


def _control_group_limits(root: Path) -> Iterator[int]:
    """Yield the bytes left below each limit on this process: that of its control group and of the groups above it.

    A line of ``/proc/self/cgroup`` is ``0::/a/b`` in version 2 and ``4:cpu,memory:/a/b`` in version 1. Its limits are
    ``/sys/fs/cgroup/a/b/memory.max`` and those above. A container may see its own group as the top, so every folder
    that has such a file counts.
    """
    table = root / "proc" / "self" / "cgroup"
    lines = table.read_text().splitlines() if table.is_file() else []
    for line in lines:
        # Version 2 names no controllers; of version 1 only the line of the memory controller says something here.
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        files = _CGROUP_V1 if controllers else _CGROUP_V2
        for mount in files.mounts:
            top = root / "sys" / "fs" / "cgroup" / mount
            own = top / path.strip("/")
            for folder in (own, *own.parents):
                if folder.is_relative_to(top) and (folder / files.limit).is_file():
                    yield from _left_in(folder, files)


def _left_in(folder: Path, files: _CgroupFiles) -> Iterator[int]:
    limit = (folder / files.limit).read_text().strip()
    if limit == "max" or int(limit) >= _NO_LIMIT:
        return
    statistics = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
    # File caches count as used, but the kernel gives them up when memory is needed.
    in_use = int((folder / files.usage).read_text()) - int(statistics[files.reclaimable])
    yield int(limit) - in_use


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
