"""How much main memory this process may still take."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_NO_LIMIT: Final = 1 << 60  # what cgroup v1 reports without a limit is about 2**63


class _CgroupFiles(NamedTuple):
    """The names of the files in which a version of Linux control groups keeps its numbers."""

    mounts: tuple[str, ...]  # below /sys/fs/cgroup
    limit: str
    usage: str
    reclaimable: str  # key in memory.stat: the part of the usage that the kernel frees when it needs memory


_CGROUP_V1: Final = _CgroupFiles(("memory",), "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
_CGROUP_V2: Final = _CgroupFiles(("", "unified"), "memory.max", "memory.current", "inactive_file")


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
