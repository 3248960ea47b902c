"""A process that works and is killed with SIGKILL, at a moment of time or right before one of its file operations."""

import json
import os
import signal
import sys
import threading
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from forked import start_forked

PRELOADED: Final = ["campaign.faults.killed_work"]  # imported once, by the process that all victims are forked from
WAITS = 300.0  # seconds, before a process that does not end counts as hanging
_CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate", "os.utime", "shutil.rmtree"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Work(Protocol):
    """What a process does that is killed: the same again in the same folder goes on, and ends with the same files."""

    @property
    def name(self) -> str: ...

    def run(self, folder: Path, tell: "Teller") -> None:
        """Do it, or go on with it; tell of everything that now is saved for good."""
        ...

    def check(self, folder: Path, told: list[str]) -> None:
        """Read what a killed process left.

        Raises:
            AssertionError, or whatever a reader raises: something that was told of is missing, or half is read.
        """
        ...

    def result(self, folder: Path) -> dict[str, object]:
        """Return what there is at the end, by name, without clocks."""
        ...


class Teller(Protocol):
    """Notes a line that outlives its process."""

    def __call__(self, line: str) -> None: ...


class KillTime(NamedTuple):
    """When to kill: so many seconds after the work began, or before the file operation of this number."""

    seconds: float | None = None
    operation: int | None = None

    def __str__(self) -> str:
        return f"after {self.seconds:.3f} s" if self.seconds is not None else f"before file operation {self.operation}"


class Ending(NamedTuple):
    """How a process went."""

    code: int | None  # None: it did not end by itself within the time that there is
    seconds: float  # since the work began
    operations: int  # on files below its folder
    told: list[str]
    output: str


def live(work: Work, folder: Path, notes: Path, moment: KillTime | None = None) -> Ending:
    """Let a process work until it ends, or is killed.

    Args:
        work: what it does.
        folder: where.
        notes: a folder outside, for what the process tells and prints.
        moment: when it is killed; not at all by default.
    """
    notes.mkdir(parents=True, exist_ok=True)
    for name in ("told", "output", "operations", "begun"):
        (notes / name).unlink(missing_ok=True)
    process = start_forked(PRELOADED, _live, work, folder, notes, moment.operation if moment else None)
    begun = _wait_for(process, notes / "begun")
    if moment is not None and moment.seconds is not None:
        process.join(moment.seconds)
        process.kill()
    process.join(WAITS)
    seconds, code = time.monotonic() - begun, process.exitcode
    process.kill()
    process.join()
    operations, told, output = (_read(notes / name) for name in ("operations", "told", "output"))
    return Ending(code, seconds, len(operations), told.splitlines(), output)


def inspect(work: Work, folder: Path, notes: Path, told: list[str], *, is_whole: bool = False) -> dict[str, object]:
    """Let a process look at what another one left.

    Args:
        work: what was done.
        folder: where.
        notes: a folder outside.
        told: what was told to be saved.
        is_whole: whether it ended by itself.

    Returns:
        The result of work that is whole, else nothing.

    Raises:
        AssertionError: something is lost, or half is read.
    """
    notes.mkdir(parents=True, exist_ok=True)
    process = start_forked(PRELOADED, _inspect, work, folder, notes, told, is_whole)
    process.join(WAITS)
    process.kill()
    assert process.exitcode == 0, _read(notes / "inspection").strip().rpartition("\n")[2]
    return json.loads(_read(notes / "result"))


def _inspect(work: Work, folder: Path, notes: Path, told: list[str], is_whole: bool) -> None:
    log = os.open(notes / "inspection", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(log, 1)
    os.dup2(log, 2)
    work.check(folder, told)
    (notes / "result").write_text(json.dumps(work.result(folder) if is_whole else {}))


def _live(work: Work, folder: Path, notes: Path, deadly: int | None) -> None:
    """Run in the process: redirect its output, count its file operations, and let the deadly one be its last."""
    told = os.open(notes / "told", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    output = os.open(notes / "output", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    counted = os.open(notes / "operations", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    lock, count = threading.Lock(), 0

    def operate() -> None:
        nonlocal count
        with lock:
            if count == deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            os.write(counted, b".")
            count += 1

    def watch(event: str, arguments: tuple) -> None:
        if (event in _CHANGES or (event == "open" and arguments[2] & _WRITING)) and _is_below(arguments[0], folder):
            operate()

    sync = os.fsync

    def watched_sync(descriptor: int) -> None:
        operate()
        sync(descriptor)

    os.fsync = watched_sync
    sys.addaudithook(watch)
    (notes / "begun").write_text("")
    work.run(folder, lambda line: os.write(told, f"{line}\n".encode()))


def _is_below(path: object, folder: Path) -> bool:
    """Tell whether a path is inside; what is removed as part of a tree has only a name."""
    if not isinstance(path, str | Path):
        return False
    return not os.path.isabs(path) or Path(path).is_relative_to(folder)


def _wait_for(process: BaseProcess, file: Path) -> float:
    """Return when the work began."""
    deadline = time.monotonic() + WAITS
    while not file.exists():
        assert process.exitcode is None, f"a process ended before it began, with {process.exitcode}"
        assert time.monotonic() < deadline, "a process did not begin"
        time.sleep(0.001)
    return time.monotonic()


def _read(file: Path) -> str:
    return file.read_text(errors="replace") if file.exists() else ""
