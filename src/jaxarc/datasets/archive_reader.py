"""Tasks straight out of a zip archive, or out of a folder with the same files; nothing is unpacked to the disk."""

import json
import lzma
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeVar

from jaxarc.datasets.archives import Archive, Label, any_json, printable
from jaxarc.datasets.digest import digest_of
from jaxarc.datasets.task_set import TaskSet
from jaxarc.tasks.raw_task import RawTask
from jaxarc.tasks.validation import TaskFormatError, check_task

MAX_FILE_BYTES: Final = 4 * 2**20  # 600 times the largest task file of the published sets
MAX_TOTAL_BYTES: Final = 512 * 2**20
MAX_ENTRIES: Final = 100_000

_ZIP_DAMAGE: Final = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,  # a seek before the start of the file, a broken bzip2 stream
    RuntimeError,  # with NotImplementedError: a password is needed, an unknown way to compress
    ValueError,
)
_Entry = TypeVar("_Entry")


def read_archive(path: Path, archive: Archive, name: str) -> TaskSet:
    """Read the tasks of a published set from its zip file or from a folder with its files, in the order of their ids.

    Both may have the layout of the repository, below one more folder or not, or hold the folders of tasks only. What is
    not a task of the set is left out. In a set with loose cells ``null`` is read as 0 and ``"7"`` as 7.

    Raises:
        FileNotFoundError: there is nothing at ``path``.
        TaskFormatError: the file is no zip, is damaged or encrypted, or unpacks to more than any task set; a file in it
            is not an ARC task; or the tasks are not those that are pinned.
    """
    tasks = TaskSet(name, tuple(_read_tasks(path, archive.label, archive.example, archive.loose_cells)))
    if (found := digest_of(tasks)) != archive.digest:
        raise TaskFormatError(
            f"{path}: these are not the tasks pinned as {name!r}: expected {archive.num_tasks} tasks with the digest "
            f"{archive.digest}, found {len(tasks)} with {found}; take an unchanged copy of {archive.url}, or import "
            "this one under a name of your own"
        )
    return tasks


def read_zip(path: Path) -> TaskSet:
    """Read every JSON file of a zip archive as a task named after the file, in the order of their names.

    Raises:
        FileNotFoundError: there is nothing at ``path``.
        TaskFormatError: as for :func:`read_archive`, or two files have one name.
    """
    return TaskSet(str(path), tuple(_read_tasks(path, any_json, "task.json", loose_cells=False)))


def _read_tasks(path: Path, label: Callable[[str], Label | None], example: str, loose_cells: bool) -> Iterator[RawTask]:
    read = _read_folder if path.is_dir() else _read_zip
    files = sorted(read(path, label), key=lambda file: file[0].task_id)
    if not files:
        raise TaskFormatError(f"{path}: no task found; expected files such as {example}")
    for (first, _, one), (second, _, other) in pairwise(files):
        if first.task_id == second.task_id:
            raise TaskFormatError(
                f"two files give the task id {first.task_id!r}: {one} and {other}; remove one of them"
            )
    for found, content, source in files:
        data = _parse(content, source)
        yield RawTask(found.task_id, *check_task(_strict(data) if loose_cells else data, source), *found[1:])


def _read_zip(path: Path, label: Callable[[str], Label | None]) -> Iterator[tuple[Label, bytes, str]]:
    with path.open("rb") as file, _named_damage(path), zipfile.ZipFile(file) as archive:
        entries = [(info.filename, info) for info in archive.infolist() if not info.filename.endswith("/")]
        total = 0
        for found, info in _labeled(entries, label, path):
            source = f"{path}: {printable(info.filename)}"
            if info.flag_bits & 0x1:
                raise TaskFormatError(f"{source}: the file is encrypted; make the archive without a password")
            with archive.open(info) as member:
                content = _read_bounded(member.read, source)
            total += len(content)
            if total > MAX_TOTAL_BYTES:
                raise TaskFormatError(f"{path}: unpacks to more than {MAX_TOTAL_BYTES} bytes; this is no task set")
            yield found, content, source


def _read_folder(folder: Path, label: Callable[[str], Label | None]) -> Iterator[tuple[Label, bytes, str]]:
    for found, file in _labeled(_files_below(folder), label, folder):
        with file.open("rb") as opened:
            source = printable(str(file))
            yield found, _read_bounded(opened.read, source), source


def _files_below(folder: Path) -> Iterator[tuple[str, Path]]:
    def refuse(error: OSError) -> None:
        raise error

    for place, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for file in map(Path(place).joinpath, sorted(files)):
            yield file.relative_to(folder).as_posix(), file


def _labeled(
    entries: Iterable[tuple[str, _Entry]], label: Callable[[str], Label | None], source: Path
) -> list[tuple[Label, _Entry]]:
    """Choose the entries that are tasks."""
    chosen = []
    for count, (path, entry) in enumerate(entries):
        if count == MAX_ENTRIES:
            raise TaskFormatError(f"{source}: more than {MAX_ENTRIES} files; give the folder of one task set")
        if found := label(path):
            chosen.append((found, entry))
    return chosen


def _read_bounded(read: Callable[[int], bytes], source: str) -> bytes:
    content = read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise TaskFormatError(f"{source}: larger than {MAX_FILE_BYTES} bytes; no ARC task is, leave the file out")
    return content


def _parse(content: bytes, source: str) -> Any:
    try:
        return json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise TaskFormatError(f"{source}: not JSON ({error}); take an unchanged copy of the file") from error


def _strict(data: Any) -> Any:
    """Write colors as numbers, which the Mini-ARC editor wrote as ``null`` and strings, and leave all else as it is."""
    if not isinstance(data, dict):
        return data
    return {
        split: [
            {side: _strict_grid(grid) for side, grid in pair.items()} if isinstance(pair, dict) else pair
            for pair in pairs
        ]
        if isinstance(pairs, list)
        else pairs
        for split, pairs in data.items()
    }


def _strict_grid(grid: Any) -> Any:
    if not isinstance(grid, list):
        return grid
    return [[_strict_cell(cell) for cell in row] if isinstance(row, list) else row for row in grid]


def _strict_cell(cell: Any) -> Any:
    if cell is None:
        return 0
    return int(cell) if isinstance(cell, str) and cell in set("0123456789") else cell


@contextmanager
def _named_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except TaskFormatError:
        raise
    except _ZIP_DAMAGE as error:
        raise TaskFormatError(f"{path}: not a whole zip archive ({error}); fetch or copy the file again") from error
