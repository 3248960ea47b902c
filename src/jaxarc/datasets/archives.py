"""Archives of published task sets: where each is, what it must hold, and how tasks are read out of it.

Tasks are read straight out of a zip archive, or out of a folder with the same files; nothing is unpacked to the disk.
"""

import dataclasses
import functools
import hashlib
import json
import lzma
import os
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias, TypeVar

from jaxarc.datasets.json_format import parse_json, read_task, tasks_by_id
from jaxarc.datasets.task_set import TaskSet, digest_of
from jaxarc.tasks.raw_task import RawTask, TaskFormatError

MAX_FILE_BYTES: Final = 8 * 2**20  # 1,000 pairs of the largest grids take 6 MB
MAX_TOTAL_BYTES: Final = 2**31
MAX_ENTRIES: Final = 100_000

PINS: Final = json.loads(Path(__file__).with_name("published.json").read_bytes())
"""The pins of published sets: ``archives``, and ``datasets`` with their versions."""

_OTHER_FORMATS: Final = {".jsonl", ".ndjson", ".csv", ".zip", ".gz", ".tar", ".parquet", ".npz", ".json5"}

Label: TypeAlias = Mapping[str, str]
"""``task_id``, and where the path of a file says it ``title`` and ``concept``."""

_REPOSITORY: Final = "(?:[^/]+/)?"  # GitHub puts everything below one folder, named after the repository
ZIP_DAMAGE: Final = (
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


class SkippedFilesWarning(UserWarning):
    """Files beside the tasks were not read, and may hold some."""


@dataclasses.dataclass(frozen=True)
class Archive:
    """One published task set.

    GitHub makes its archives on request and does not promise their bytes, so the digest of the tasks is pinned instead:
    a repository that has changed is noticed and refused. A zip file that is part of a repository is pinned by the name
    that git gives to its content.
    """

    url: str  # of a zip file
    homepage: str
    license: str
    num_tasks: int
    digest: str  # of the tasks, see digest_of; "": the file is pinned by its git_blob instead
    label: Callable[[str], Label | None]  # of a path in the archive, with slashes; None: not a task of this set
    example: str  # a path that has a label, for messages
    loose_cells: bool = False  # null stands for color 0, and "7" for 7
    git_blob: str = ""  # name that git gives to the content of the zip file


def any_json(path: str) -> Label | None:
    """Take every JSON file as a task named after the file; skip hidden files, macOS's, and re-arc's metadata."""
    *folders, file = path.split("/")
    is_hidden = any(part.startswith((".", "__MACOSX")) for part in (*folders, file))
    if is_hidden or not file.lower().endswith(".json") or file == "metadata.json":
        return None
    return {"task_id": file[: -len(".json")]}


def label_by_patterns(patterns: Sequence[str], path: str) -> Label | None:
    """Take the groups ``task_id``, ``concept`` and ``title`` of the first pattern that is the whole path.

    ``MINI-ARC-main/data/MiniARC/Good_axis_l69ctqaoulgvm1zso2.json`` gives the id ``l69ctqaoulgvm1zso2``, the one part
    that all copies of Mini-ARC agree on, and the title ``Good axis``. Copies and drafts beside the tasks match nothing.
    """
    for pattern in patterns:
        if found := re.fullmatch(_REPOSITORY + pattern, path):
            label = found.groupdict()
            if "title" in label:
                label["title"] = " ".join(printable(label["title"]).replace("_", " ").split())
            return label
    return None


def printable(text: str) -> str:
    """Put a question mark for each letter that a terminal would not show."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


ARCHIVES: Final[dict[str, Archive]] = {
    pins["name"]: Archive(
        url=pins["url"],
        homepage=pins["homepage"],
        license=pins["license"],
        num_tasks=pins["num_tasks"],
        digest=pins["digest"],
        label=functools.partial(label_by_patterns, pins["files"]),
        example=pins["example"],
        git_blob=pins.get("git_blob", ""),
        loose_cells=pins["loose_cells"],
    )
    for pins in PINS["archives"]
}
"""What can be downloaded, by name."""


def read_archive(path: Path, archive: Archive, name: str) -> TaskSet:
    """Read the tasks of a published set from its zip file or from a folder with its files, in the order of their ids.

    Both may have the layout of the repository, below one more folder or not, or hold the folders of tasks only. Other
    files are skipped. In a set with loose cells ``null`` is read as 0 and ``"7"`` as 7.

    Raises:
        FileNotFoundError: there is nothing at ``path``.
        TaskFormatError: the file is no zip, is damaged or encrypted, or unpacks to more than any task set; a file in it
            is not an ARC task; or the tasks are not those that are pinned.
    """
    if archive.git_blob:
        _require_blob(path, archive, name)
    tasks = TaskSet(name, _read_tasks(path, archive.label, archive.example, archive.loose_cells))
    if archive.digest and (found := digest_of(tasks)) != archive.digest:
        raise TaskFormatError(
            f"{path}: these are not the tasks pinned as {name!r}: expected {archive.num_tasks} tasks with the digest "
            f"{archive.digest}, found {len(tasks)} with {found}; take an unchanged copy of {archive.url}, or import "
            "this one under a name of your own"
        )
    return tasks


def read_zip(path: Path) -> TaskSet:
    """Read every JSON file of a zip archive as a task named after the file, or as several, in the order of their names.

    Warns:
        SkippedFilesWarning: other files in it may hold tasks, or are hidden; names one.

    Raises:
        FileNotFoundError: there is nothing at ``path``.
        TaskFormatError: as for :func:`read_archive`, or two files have one name.
    """
    return TaskSet(str(path), _read_tasks(path, any_json, "task.json", loose_cells=False))


def _require_blob(path: Path, archive: Archive, name: str) -> None:
    if path.is_dir():
        raise TaskFormatError(
            f"{path}: {name!r} is known by its zip file; give an unchanged copy of {archive.url}, or import the folder "
            "under a name of your own"
        )
    content = path.read_bytes()
    found = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    if found != archive.git_blob:
        raise TaskFormatError(
            f"{path}: not the file pinned as {name!r}: git names its content {found}, expected {archive.git_blob}; "
            f"take an unchanged copy of {archive.url}, or import this one under a name of your own"
        )


def _read_tasks(
    path: Path, label: Callable[[str], Label | None], example: str, loose_cells: bool
) -> tuple[RawTask, ...]:
    read = _read_folder if path.is_dir() else _read_zip
    found: list[tuple[str, str, RawTask]] = []  # id, source and task; each file is parsed when it is read
    for labels, content, source in read(path, label):
        title, concept = labels.get("title", ""), labels.get("concept", "")
        for task_id, data in tasks_by_id(parse_json(content, source), labels["task_id"], source).items():
            cells = _plain_cells(data) if loose_cells else data
            task = read_task(task_id, cells, source, title=title, concept=concept)
            found.append((task_id, source, task))
    # In the order of ids, so equal ids are neighbors, and the result does not depend on how the archive was packed.
    found.sort(key=lambda one: one[:2])
    if not found:
        raise TaskFormatError(f"{path}: no task found; expected files such as {example}")
    # The id is the name of a file, and two folders of one archive may have files of one name.
    for (first, one, _), (second, other, _) in pairwise(found):
        if first == second:
            raise TaskFormatError(f"two files give the task id {first!r}: {one} and {other}; remove one of them")
    return tuple(task for _, _, task in found)


def _read_zip(path: Path, label: Callable[[str], Label | None]) -> Iterator[tuple[Label, bytes, str]]:
    with path.open("rb") as file, _named_damage(path), zipfile.ZipFile(file) as archive:
        entries = [(info.filename, info) for info in archive.infolist() if not info.filename.endswith("/")]
        if label is any_json:
            warn_of_skipped(path, [name for name, _ in entries if label(name) is None])
        # What a zip says about sizes may be false, so the bytes are counted as they are unpacked.
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
    for found, file in _labeled(sorted(files_below(folder)), label, folder):
        with file.open("rb") as opened:
            source = printable(str(file))
            yield found, _read_bounded(opened.read, source), source


def files_below(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield all files below a folder with their paths from there, with slashes; not those of hidden folders.

    Links to folders are followed after all real folders, each to a folder that was not walked and does not hold this
    one: so none is walked twice, or for ever.

    Raises:
        OSError: a folder cannot be read.
    """

    def refuse(error: OSError) -> None:
        raise error

    root = os.path.realpath(folder)
    walked: set[str] = set()
    waiting = [str(folder)]
    while waiting:
        for parent, folders, files in os.walk(waiting.pop(0), onerror=refuse):
            real = os.path.realpath(parent)
            if real in walked or (walked and Path(root).is_relative_to(real)):
                folders.clear()
                continue
            walked.add(real)
            # ``os.walk`` goes into the folders that are left in the list, and not through links.
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            waiting += [path for name in folders if os.path.islink(path := os.path.join(parent, name))]
            for file in map(Path(parent).joinpath, sorted(files)):
                yield file.relative_to(folder).as_posix(), file


def warn_of_skipped(source: Path, paths: Iterable[str]) -> None:
    """Say in one line which files may hold tasks and are not read: other formats, and hidden files of JSON."""
    names = [path for path in paths if not path.split("/")[-1].startswith("._") and "__MACOSX" not in path]
    skipped = [
        name
        for name in names
        if Path(name).suffix.lower() in _OTHER_FORMATS or (Path(name).name.startswith(".") and name.endswith(".json"))
    ]
    if skipped:
        warnings.warn(
            f"{source}: {len(skipped):,} files are skipped, such as {printable(skipped[0])}; tasks are read from "
            "*.json files that are not hidden, rename them, or give the path of one *.zip",
            SkippedFilesWarning,
            stacklevel=3,
        )


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
    # One byte more than allowed is asked for: getting it shows that the file is too large, without reading the rest.
    content = read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise TaskFormatError(f"{source}: larger than {MAX_FILE_BYTES} bytes; no ARC task is, leave the file out")
    return content


def _plain_cells(data: Any, depth: int = 6) -> Any:
    """Write colors as numbers, which the Mini-ARC editor wrote as ``null`` and strings, and leave all else as it is.

    A cell is inside of a row, a grid, a pair, a split and a task.
    """
    if depth and isinstance(data, dict):
        return {name: _plain_cells(part, depth - 1) for name, part in data.items()}
    if depth and isinstance(data, list):
        return [_plain_cells(part, depth - 1) for part in data]
    if data is None:
        return 0
    return int(data) if isinstance(data, str) and data in set("0123456789") else data


@contextmanager
def _named_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except TaskFormatError:
        raise
    except ZIP_DAMAGE as error:
        raise TaskFormatError(f"{path}: not a whole zip archive ({error}); fetch or copy the file again") from error
