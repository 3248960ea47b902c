"""A small disk of its own, which can be filled up, made read-only, or taken from a user."""

import ctypes
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from campaign.faults.victim import Teller, Work

_CAPABILITIES: Final = 0x20080522  # version 3 of their interface
_FILLER: Final = "filler"


class NoDiskError(RuntimeError):
    """This system does not let this user mount a disk."""


class FaultyDisk:
    """A disk in memory."""

    def __init__(self, path: Path):
        self.path = path

    @property
    def work(self) -> Path:
        """A folder on it."""
        return self.path / "work"

    def fill(self) -> None:
        """Leave no room."""
        with (self.path / _FILLER).open("wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                return

    def make_room(self) -> None:
        (self.path / _FILLER).unlink()

    def forbid_writing(self) -> None:
        _call("mount", "-o", "remount,ro", str(self.path))


@contextmanager
def faulty_disk(path: Path, kilobytes: int = 4096) -> Iterator[FaultyDisk]:
    """Mount a small disk, and take it away at the end.

    Raises:
        NoDiskError: that takes root, or more.
    """
    path.mkdir(parents=True)
    _call("mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(path))
    try:
        (path / "work").mkdir()
        yield FaultyDisk(path)
    finally:
        _call("umount", "--lazy", str(path))


@dataclass(frozen=True)
class WithoutPrivileges:
    """Work that is done by a user to whom the permissions of files apply, even if that is root."""

    work: Work

    @property
    def name(self) -> str:
        return self.work.name

    def run(self, folder: Path, tell: Teller) -> None:
        folder.chmod(0o555)
        _obey_permissions()
        self.work.run(folder, tell)

    def check(self, folder: Path, told: list[str]) -> None:
        self.work.check(folder, told)

    def result(self, folder: Path) -> dict[str, object]:
        return self.work.result(folder)


def _obey_permissions() -> None:
    """Give up the capabilities CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH, 1 and 2, for good."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES, 0)  # of this process
    sets = (ctypes.c_uint32 * 6)()  # twice effective, permitted, inheritable: bits 0 to 31, and 32 to 63
    if libc.capget(header, sets) == 0:
        for place in range(3):
            sets[place] &= ~0b110
        if libc.capset(header, sets) == 0:
            return
    raise OSError(ctypes.get_errno(), "capabilities cannot be given up")


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise NoDiskError(f"{' '.join(command)}: {done.stderr.strip()}")
