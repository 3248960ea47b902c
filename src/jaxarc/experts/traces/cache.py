"""A cache of traces on the disk, looked up by the content of the pair that they solve."""

import contextlib
import hashlib
import os
import re
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import platformdirs

from jaxarc.errors import JaxarcWarning
from jaxarc.experts.traces.trace import Trace
from jaxarc.files import write_whole

FORMAT: Final = b"jaxarc-trace-1"
MAX_BYTES: Final = 2**30
_ENTRY: Final = re.compile(r"[0-9a-f]{64}\.json")
_PARTIAL: Final = re.compile(r"\.[0-9a-f]{64}\.json\..*\.part")  # by a process that was killed while writing
_ABANDONED_S: Final = 3600.0  # age at which a partial file has no writer any more
_TRIM_DIVISOR: Final = 16  # a cache is trimmed after each 1/16 of its limit that was written


class DamagedTraceWarning(JaxarcWarning):
    """A cached trace cannot be read, and counts as missing."""


class CacheEntry(NamedTuple):
    """A file of the cache."""

    path: Path
    num_bytes: int
    used: float  # seconds since the epoch


class Removed(NamedTuple):
    """Files that a clean-up removed."""

    num_files: int
    num_bytes: int


class TraceCache:
    """One file for each unit, below ``<first two digits of its hash>/<hash>.json``, with a checksum.

    Files are written whole and renamed, so any number of processes may read and write at once, and a killed one leaves
    every trace that it had recorded. Beyond ``max_bytes`` the traces that were not used for the longest time go.

    Raises:
        ValueError: ``max_bytes`` is below 1.
    """

    def __init__(self, folder: str | Path | None = None, max_bytes: int = MAX_BYTES):
        if max_bytes < 1:
            raise ValueError(f"max_bytes must be at least 1, got {max_bytes}; give the size that the cache may have")
        self.folder = default_folder() if folder is None else Path(folder)
        self.max_bytes = max_bytes
        self._since_trim = 0  # bytes

    def path_of(self, unit_hash: str) -> Path:
        """Return the path of a unit's trace, whether or not it exists."""
        return self.folder / unit_hash[:2] / f"{unit_hash}.json"

    def get(self, unit_hash: str) -> Trace | None:
        """Return the trace of a unit, or ``None`` if it is not in the cache.

        Raises:
            OSError: its file cannot be read.

        Warns:
            DamagedTraceWarning: its file is damaged, or of another format.
        """
        trace = self._look(unit_hash)
        if trace is not None:
            _mark_used(self.path_of(unit_hash))
        return trace

    def put(self, trace: Trace) -> None:
        """Write a trace, in place of an earlier one of its unit.

        Raises:
            OSError: the folder cannot be written, or the disk is full.
        """
        # A file is a line with format and checksum, and a line with the trace: "jaxarc-trace-1 3b1f...\n{...}\n".
        text = trace.to_json().encode()
        content = b"%s %s\n%s\n" % (FORMAT, hashlib.sha256(text).hexdigest().encode(), text)
        write_whole(self.path_of(trace.unit_hash), content)
        # Listing all files takes long in a large cache, so it happens once for every sixteenth of the limit that was
        # written.
        self._since_trim += len(content)
        if self._since_trim > self.max_bytes // _TRIM_DIVISOR:
            self.trim()

    def traces(self) -> Iterator[Trace]:
        """Yield every trace that can be read, in the order of their hashes, without marking them as used."""
        for entry in sorted(self.entries()):
            if (trace := self._look(entry.path.stem)) is not None:
                yield trace

    def entries(self) -> list[CacheEntry]:
        """List the files of the cache."""
        return [found for path in self._files() if _ENTRY.fullmatch(path.name) and (found := _entry(path))]

    def trim(self, max_bytes: int | None = None) -> Removed:
        """Remove the traces that were not used for the longest time until the rest is small enough.

        Args:
            max_bytes: how much may stay, the cache's own limit by default.
        """
        # The oldest go first until the excess is gone: with files of 3, 2 and 4 bytes, oldest first, and a limit of 5,
        # the excess is 4, and the first two go.
        self._since_trim = 0
        limit = self.max_bytes if max_bytes is None else max_bytes
        entries = sorted(self.entries(), key=lambda entry: entry.used)
        excess = sum(entry.num_bytes for entry in entries) - limit
        removed = []
        for entry in entries:
            if excess <= 0:
                break
            excess -= entry.num_bytes
            removed.append(entry)
        return _remove(removed)

    def collect_garbage(self) -> Removed:
        """Remove damaged traces and partial files of killed processes, then :meth:`trim`."""
        now = time.time()
        # A file is written under a partial name and renamed when it is whole. A young partial file may have a living
        # writer.
        partial = [found for path in self._files() if _PARTIAL.fullmatch(path.name) and (found := _entry(path))]
        useless = [
            entry for entry in partial if abs(now - entry.used) > _ABANDONED_S
        ]  # clocks go wrong in both directions
        useless += [entry for entry in self.entries() if not _is_whole(entry.path)]
        garbage = _remove(useless)
        trimmed = self.trim()
        return Removed(garbage.num_files + trimmed.num_files, garbage.num_bytes + trimmed.num_bytes)

    def _look(self, unit_hash: str) -> Trace | None:
        path = self.path_of(unit_hash)
        try:
            content = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        try:
            trace = _read(content)
            # A file that was renamed by hand may be whole and yet of another unit.
            if trace.unit_hash != unit_hash:
                raise ValueError(f"it is of unit {trace.unit_hash}")
        except ValueError as error:
            warnings.warn(
                f"{path}: damaged ({error}); it counts as missing until it is recorded again",
                DamagedTraceWarning,
                stacklevel=3,
            )
            return None
        return trace

    def _files(self) -> Iterator[Path]:
        return self.folder.glob("[0-9a-f][0-9a-f]/*")


def default_folder() -> Path:
    """Return the default folder: ``traces`` in ``$JAXARC_CACHE``, else in the user's cache folder."""
    chosen = os.environ.get("JAXARC_CACHE")
    return (Path(chosen) if chosen else Path(platformdirs.user_cache_dir("jaxarc"))) / "traces"


def _read(content: bytes) -> Trace:
    # A newer format is not damage: the first line names it, and the checksum is looked at only in this one.
    head, newline, rest = content.partition(b"\n")
    text = rest.removesuffix(b"\n")
    name = head.partition(b" ")[0]
    if re.fullmatch(rb"jaxarc-trace-\d+", name) and name != FORMAT:
        raise ValueError(f"written in the format {name.decode()}, this version of jaxarc reads {FORMAT.decode()}")
    if not newline or head != b"%s %s" % (FORMAT, hashlib.sha256(text).hexdigest().encode()):
        raise ValueError("its contents do not have the checksum that was written with them")
    return Trace.from_json(text.decode())


def _is_whole(path: Path) -> bool:
    try:
        return _read(path.read_bytes()).unit_hash == path.stem
    except ValueError:
        return False
    except FileNotFoundError:  # another process removed it
        return True


def _mark_used(path: Path) -> None:
    # Another process may have removed it, or the cache is only to be read.
    with contextlib.suppress(FileNotFoundError, PermissionError):
        os.utime(path)


def _entry(path: Path) -> CacheEntry | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return CacheEntry(path, status.st_size, status.st_mtime)


def _remove(entries: list[CacheEntry]) -> Removed:
    for entry in entries:
        entry.path.unlink(missing_ok=True)
    return Removed(len(entries), sum(entry.num_bytes for entry in entries))
