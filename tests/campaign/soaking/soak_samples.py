"""What a process uses at a moment, read from Linux's /proc and from the files that it writes."""

import dataclasses
import json
import os
import time
from collections.abc import Iterable
from pathlib import Path

import numpy as np


@dataclasses.dataclass(frozen=True)
class Sample:
    """One look at one process."""

    process: str  # "training" or "rollout"
    seconds: float  # since the soak began
    rss: int  # bytes of memory in use
    peak_rss: int  # bytes, the most so far
    private: int  # bytes of private writable memory, which RLIMIT_DATA bounds
    num_threads: int
    num_files: int  # open file descriptors
    cpu_seconds: float  # of user and system, all threads
    steps: int  # of environments, played or learned from, so far
    num_compilations: int  # so far
    disk_bytes: int  # of all that it has written
    yardstick: float = 1.0  # processor seconds of a fixed piece of work at this moment: how fast the machine is


def take_sample(
    process: str, pid: int, seconds: float, steps: int, num_compilations: int, folder: Path, yardstick: float = 1.0
) -> Sample:
    """Look at a process.

    Raises:
        FileNotFoundError, ProcessLookupError: it is gone.
    """
    status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    if "VmRSS" not in status:  # it has ended, and waits to be asked for its exit code
        raise ProcessLookupError(f"process {pid} has ended")
    kib = lambda name: int(status[name].split()[0]) * 1024
    return Sample(
        process,
        seconds,
        rss=kib("VmRSS"),
        peak_rss=kib("VmHWM"),
        private=kib("VmData"),
        num_threads=int(status["Threads"]),
        num_files=len(os.listdir(f"/proc/{pid}/fd")),
        cpu_seconds=_cpu_seconds(pid),
        steps=steps,
        num_compilations=num_compilations,
        disk_bytes=disk_bytes(folder),
        yardstick=yardstick,
    )


def measure_yardstick() -> float:
    """Return the processor seconds that this process takes for a fixed piece of work, about 10 ms.

    Who shares caches and cores with us changes how far a second of processor time goes, and changes this alike.
    """
    numbers = np.arange(150_000, dtype=np.uint32) * np.uint32(2_654_435_761)
    begun = time.process_time()
    np.sort(numbers)
    return time.process_time() - begun


def disk_bytes(folder: Path) -> int:
    """Bytes of all files below a folder; what vanishes while it looks counts as nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except FileNotFoundError:
                continue
    return total


def append_samples(path: Path, samples: Iterable[Sample]) -> None:
    """Add lines of JSON to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(dataclasses.asdict(sample)) + "\n" for sample in samples)


def read_samples(path: Path) -> list[Sample]:
    """Read the samples of a soak, whole or cut short."""
    return [Sample(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def last_number(path: Path, field: str) -> int:
    """Return a field of the last whole line of JSON in a file; 0 where there is none yet."""
    if not path.exists():
        return 0
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 4096))
        whole = file.read().rpartition(b"\n")[0]
    line = whole.rpartition(b"\n")[2]
    return int(json.loads(line)[field]) if line else 0


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
