"""How many CPU cores this process may use."""

import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path


def host_cores(root: Path = Path("/")) -> int:
    """Count the CPU cores that this process may use: its affinity, and the quotas of its control groups (Linux).

    Two and a half cores are three. In a job of SLURM they are those that it gave. From Python 3.13 on,
    ``PYTHON_CPU_COUNT`` and ``-X cpu_count`` are heeded.

    Args:
        root: where ``proc`` and ``sys`` are.
    """
    given = int(os.environ.get("SLURM_CPUS_ON_NODE", _allowed()))
    return max(min([_allowed(), given, *map(math.ceil, _quotas(root))]), 1)


def _allowed() -> int:
    if sys.version_info >= (3, 13):
        return os.process_cpu_count() or 1
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS, Windows
        return os.cpu_count() or 1


def _quotas(root: Path) -> Iterator[float]:
    """Yield the cores of each group that this process is in, and of the groups around it, where they are limited."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        # 0::/kubepods/pod7 is version 2, whose file says "250000 100000", microseconds of a period, or "max 100000";
        # 4:cpu,cpuacct:/docker/3f is version 1, with a file for each number, and -1 where there is no limit.
        _, controllers, name = [*line.split(":", 2), "", ""][:3]
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = root / "sys/fs/cgroup" / controllers
        group = top / name.lstrip("/")
        while True:
            if controllers:
                words = [_text(group / f"cpu.cfs_{part}_us").strip() for part in ("quota", "period")]
            else:
                words = _text(group / "cpu.max").split()
            if len(words) == 2 and all(word.isdecimal() and int(word) for word in words):
                yield int(words[0]) / int(words[1])
            if group in (top, group.parent):
                break
            group = group.parent


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):  # another system, or a group that cannot be seen from inside a container
        return ""
