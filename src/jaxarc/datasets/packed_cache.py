"""Checked tasks kept on the disk in packed form, found again by the content of the files that they came from."""

import hashlib
import io
import itertools
import json
import os
import re
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import platformdirs

from jaxarc.files import write_whole
from jaxarc.tasks.raw_task import RawTask

FORMAT: Final = 1  # part of the key: another format never meets the files of this one
MAX_CACHE_BYTES: Final = 2**30  # beyond it the oldest entries go
_OURS: Final = re.compile(r"[0-9a-f]{64}\.npz|\.[0-9a-f]{64}\.npz\..*\.part")  # whole, or left over by a crash
_CHECKSUM_BYTES: Final = 64  # hexadecimal digits of a SHA-256, the comment of the zip file and so its last bytes


class DamagedCacheWarning(UserWarning):
    """A cached file was not as it was written, and is made anew."""


def cache_folder() -> Path:
    """Return where packed tasks are kept: ``$JAXARC_CACHE``, else ``tasks`` in the user's cache folder."""
    chosen = os.environ.get("JAXARC_CACHE")
    return Path(chosen) if chosen else Path(platformdirs.user_cache_dir("jaxarc")) / "tasks"


def read_through_cache(
    files: Mapping[str, Path], reader: str, read: Callable[[], Sequence[RawTask]]
) -> tuple[RawTask, ...]:
    """Return what ``read`` makes of ``files``, from the cache where the same bytes were read before.

    An entry was made from tasks that were checked, and its checksum proves that they are the same, so nothing is
    checked again. A folder that cannot be written or read is no error: the files are then read every time.

    Args:
        files: every file that ``read`` looks at, by the name that it looks for.
        reader: which reader with which options; another one gives other tasks for the same bytes.
        read: reads and checks the files.

    Raises:
        OSError: a file cannot be read.
        Exception: what ``read`` raises.

    Warns:
        DamagedCacheWarning: an entry was damaged; it is made anew.
    """
    entry = cache_folder() / f"{_key(files, reader)}.npz"
    try:
        content = entry.read_bytes()
    except OSError:
        content = None
    if content is not None:
        if (kept := _unpacked(content)) is not None:
            return kept
        warnings.warn(f"{entry}: damaged, made anew from the task files", DamagedCacheWarning, stacklevel=2)
    tasks = tuple(read())
    try:
        write_whole(entry, _pack(tasks))
        _make_room(entry.parent)
    except OSError:  # no room, or not ours to write: then there is no cache
        pass
    return tasks


def _key(files: Mapping[str, Path], reader: str) -> str:
    found = hashlib.sha256(f"{FORMAT} {reader}\n".encode())
    for name, file in files.items():
        content = file.read_bytes()
        found.update(f"{len(os.fsencode(name))} {len(content)}\n".encode() + os.fsencode(name))
        found.update(content)
    return found.hexdigest()


def _pack(tasks: Sequence[RawTask]) -> bytes:
    """Write all grids one after the other into an ``.npz`` file whose last bytes are the checksum of all before."""
    grids = [grid for task in tasks for pair in task.pairs for grid in pair]
    names = [[task.task_id, task.title, task.concept] for task in tasks]
    buffer = io.BytesIO()
    np.savez(
        buffer,
        cells=np.concatenate([grid.reshape(-1) for grid in grids]),
        sides=np.array([grid.shape for grid in grids], np.uint8),
        counts=np.array([(len(task.train), len(task.test)) for task in tasks], np.uint8),
        names=np.frombuffer(json.dumps(names).encode(), np.uint8),
    )
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.comment = b"0" * _CHECKSUM_BYTES
    content = buffer.getvalue()[:-_CHECKSUM_BYTES]
    return content + _checksum(content)


def _unpacked(content: bytes) -> tuple[RawTask, ...] | None:
    """Read an entry; None where it is damaged, or not one of ours for all its checksum."""
    if _checksum(content[:-_CHECKSUM_BYTES]) != content[-_CHECKSUM_BYTES:]:
        return None
    try:
        return _unpack(content)
    except (ValueError, KeyError, TypeError, IndexError, OSError, EOFError, zipfile.BadZipFile):
        return None


def _unpack(content: bytes) -> tuple[RawTask, ...]:
    """Read what ``_pack`` wrote; every grid is a view of one read-only array."""
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        cells, sides, counts = arrays["cells"], arrays["sides"].astype(np.intp), arrays["counts"].tolist()
        names = json.loads(arrays["names"].tobytes())
    cells.setflags(write=False)
    ends = np.cumsum(sides[:, 0] * sides[:, 1]).tolist()
    shapes = zip([0, *ends], ends, sides.tolist(), strict=False)  # one start more than there are grids
    grids = [cells[start:end].reshape(side) for start, end, side in shapes]
    pairs = iter(zip(grids[::2], grids[1::2], strict=True))
    tasks = []
    for (task_id, title, concept), (num_train, num_test) in zip(names, counts, strict=True):
        train = tuple(itertools.islice(pairs, num_train))
        tasks.append(RawTask.of_checked_pairs(task_id, train, tuple(itertools.islice(pairs, num_test)), title, concept))
    return tuple(tasks)


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


def _make_room(folder: Path) -> None:
    """Remove the oldest of our files until they are within the bound; what else is in the folder stays."""
    found = []
    for file in folder.iterdir():
        if not _OURS.fullmatch(file.name):
            continue
        try:
            status = file.stat()
        except FileNotFoundError:  # another process was faster
            continue
        found.append((status.st_mtime, status.st_size, file))
    total = sum(size for _, size, _ in found)
    for _, size, file in sorted(found):
        if total <= MAX_CACHE_BYTES:
            return
        file.unlink(missing_ok=True)
        total -= size
