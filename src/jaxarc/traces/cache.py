"""A cache of traces on the disk: one table of one SQLite file, looked up by the content of the pair that they solve."""

import contextlib
import errno
import hashlib
import os
import sqlite3
import threading
import warnings
import weakref
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import platformdirs

from jaxarc.errors import JaxarcError, JaxarcWarning
from jaxarc.files import at_home, user_path
from jaxarc.traces.units import Trace

_PATIENCE_S: Final = 60.0  # how long to wait for another process that writes


class DamagedTraceWarning(JaxarcWarning):
    """A cached trace cannot be read, and counts as missing."""


class DamagedCacheError(JaxarcError, ValueError):
    """The file of a cache is not one, or not whole."""


class TraceCache:
    """The traces of any number of recordings, in the file ``traces.sqlite`` of a folder.

    Any number of threads and processes may read and write at once, and a killed process leaves every trace that it had
    put. A crash of the machine may damage the file, which is noticed when it is read.
    """

    def __init__(self, folder: str | Path | None = None):
        self.path = (default_folder() if folder is None else Path(folder)).absolute() / "traces.sqlite"
        self._connection: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    def get(self, unit_hash: str) -> Trace | None:
        """Return the trace of a unit, or ``None`` if it is not in the cache.

        Raises:
            OSError: the file cannot be read.
            DamagedCacheError: it is not the file of a cache, or not whole.

        Warns:
            DamagedTraceWarning: the trace is damaged.
        """
        rows = self._rows("SELECT * FROM traces WHERE unit = ?", unit_hash)
        return _read(self.path, *rows[0]) if rows else None

    def put(self, trace: Trace) -> None:
        """Write a trace, in place of an earlier one of its unit.

        Raises:
            OSError: the file cannot be written, or the disk is full.
            DamagedCacheError: it is not the file of a cache, or not whole.
        """
        text = trace.to_json()
        with self._connected(writes=True) as connection:
            connection.execute("REPLACE INTO traces VALUES (?, ?, ?)", (trace.unit_hash, text, _sha256(text)))

    def put_shorter(self, traces: Iterable[Trace]) -> int:
        """Put the shortest trace of each unit, where none as short is in the cache; raises and warns as :meth:`get`.

        Returns:
            How many were put.
        """
        shortest: dict[str, Trace] = {}
        for trace in sorted(traces, key=lambda trace: len(trace.actions)):
            shortest.setdefault(trace.unit_hash, trace)
        count = 0
        for unit_hash, trace in shortest.items():
            known = self.get(unit_hash)
            if known is None or len(trace.actions) < len(known.actions):
                self.put(trace)
                count += 1
        return count

    def traces(self) -> Iterator[Trace]:
        """Yield every trace that can be read, in the order of their hashes; raises and warns as :meth:`get`."""
        found = (_read(self.path, *row) for row in self._rows("SELECT * FROM traces ORDER BY unit"))
        return (trace for trace in found if trace is not None)

    @property
    def num_bytes(self) -> int:
        """Size of the file."""
        rows = self._rows("SELECT page_count * page_size FROM pragma_page_count, pragma_page_size")
        return rows[0][0] if rows else 0

    def _rows(self, query: str, *values: str) -> list[tuple]:
        if self._connection is None and not self.path.exists():  # to read makes no file
            return []
        with self._connected() as connection:
            return connection.execute(query, values).fetchall()

    @contextlib.contextmanager
    def _connected(self, *, writes: bool = False) -> Iterator[sqlite3.Connection]:
        """Let one thread at a time use the connection, and name the file in what goes wrong."""
        if writes:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with self._lock:
                if self._connection is None:
                    self._connection = _connect(self.path)
                    weakref.finalize(self, self._connection.close)
                yield self._connection
        except sqlite3.OperationalError as error:
            is_full = error.sqlite_errorname == "SQLITE_FULL"
            reason = (errno.ENOSPC, os.strerror(errno.ENOSPC)) if is_full else (errno.EIO, str(error))
            raise OSError(*reason, str(self.path)) from error
        except sqlite3.DatabaseError as error:
            raise DamagedCacheError(
                f"{self.path} is damaged ({error}); move it away, and the same command records its traces anew"
            ) from error


def default_folder() -> Path:
    """Return the default folder: ``traces`` in ``$JAXARC_CACHE``, else in the user's cache folder."""
    chosen = os.environ.get("JAXARC_CACHE")
    folder = user_path(chosen) if chosen else at_home(lambda: platformdirs.user_cache_dir("jaxarc"), ".cache/jaxarc")
    return folder / "traces"


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False)
    connection.text_factory = lambda text: text.decode(errors="replace")  # what is no text fails the checksum
    try:
        # Not flushed to the disk after each trace, which takes longer than most experts; what is lost is made again.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS traces (unit TEXT PRIMARY KEY, trace TEXT, sha256 TEXT) WITHOUT ROWID"
        )
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _read(path: Path, unit_hash: str, text: str, sha256: str) -> Trace | None:
    """Return the trace of a row; SQLite notices a damaged page, and not a digit that changed."""
    try:
        text = str(text)  # a damaged row may hold anything
        if _sha256(text) != sha256:
            raise ValueError("its contents do not have the checksum that was written with them")
        trace = Trace.from_json(text)
        if trace.unit_hash != unit_hash:
            raise ValueError(f"it is of unit {trace.unit_hash}")
        return trace
    except ValueError as error:
        warnings.warn(
            f"{path}, unit {unit_hash!r:.80}: damaged ({error}); it counts as missing until it is recorded again",
            DamagedTraceWarning,
            stacklevel=4,
        )
        return None
