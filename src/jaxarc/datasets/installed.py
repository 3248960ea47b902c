"""Task sets in the user's data folder: one file each, checked whenever it is read.

Their grids are bytes, because JSON takes long: 400,000 pairs as of re-arc are read in 2 s, and from an archive in 30 s.
"""

import io
import json
import os
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import platformdirs
from jaxtyping import Integer, UInt8

from jaxarc.constants import MAX_GRID_SIZE, NUM_COLORS
from jaxarc.datasets.archives import ARCHIVES, ZIP_DAMAGE
from jaxarc.datasets.json_format import parse_json
from jaxarc.datasets.task_set import TaskSet, digest_of
from jaxarc.errors import UsageError
from jaxarc.files import at_home, file_name, user_path, write_whole
from jaxarc.tasks.packed_tasks import PackedTasks, PackedTexts
from jaxarc.tasks.raw_task import Pair, RawTask, TaskFormatError, check_task_id

_SUFFIX: Final = ".tasks"
_MOST_BYTES: Final = 2**33  # of a part; a million rules have 514 MB
_MANY: Final = 10_000  # tasks, from which on each is made when it is asked for
_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?", re.ASCII)


class NotInstalledError(UsageError, FileNotFoundError):
    """The data folder has no task set of this name."""


def data_folder() -> Path:
    """Return where task sets are kept: ``$JAXARC_DATA``, or else the user's data folder of this system.

    The environment is read on every call, and nothing is made.
    """
    chosen = os.environ.get("JAXARC_DATA")
    if chosen:
        return user_path(chosen)
    return at_home(lambda: platformdirs.user_data_dir("jaxarc", appauthor=False), "data")


def check_set_name(name: str) -> str:
    """Return the name, refusing one that could not be a file or would mean something else in a list of tasks.

    Raises:
        ValueError: other characters than letters, digits, ``-``, ``_`` and ``.``, more than one ``/``, or a part that
            is no file name on every system, such as ``con``, or one of more than 150 letters.
    """
    if not _NAME.fullmatch(name) or any(file_name(part) != part for part in name.split("/")):
        raise ValueError(
            f"{name!r:.80} cannot name a task set; a name is letters, digits, '-', '_' and '.', starts with a letter "
            "or digit, is no device such as 'con', and has at most one '/', such as 'my-tasks' or 'lab/easy'"
        )
    return name


def installed_path(name: str, folder: Path | None = None) -> Path:
    """Return the file of a task set, whether it exists or not; ``folder`` replaces :func:`data_folder`.

    Raises:
        ValueError: the name is not one that a set can have.
    """
    return _sets(folder).joinpath(*f"{check_set_name(name)}{_SUFFIX}".split("/"))


def installed_names(folder: Path | None = None) -> tuple[str, ...]:
    """List the names of the task sets that are there, sorted."""
    sets = _sets(folder)
    files = [file.relative_to(sets) for pattern in (f"*{_SUFFIX}", f"*/*{_SUFFIX}") for file in sets.glob(pattern)]
    names = [file.as_posix().removesuffix(_SUFFIX) for file in files]
    return tuple(sorted(name for name in names if _NAME.fullmatch(name)))


def install(task_set: TaskSet, name: str, folder: Path | None = None) -> Path:
    """Keep a task set under a name, replacing what had it, and return the file.

    Raises:
        ValueError: the name is not one that a set can have.
        OSError: the data folder cannot be written.
    """
    packed = PackedTasks.of(task_set.tasks)
    labels = [
        Label(task_id, title, concept, *counts)
        for task_id, title, concept, counts in zip(
            packed.task_ids, packed.titles, packed.concepts, packed.counts.tolist(), strict=True
        )
    ]
    return install_grids(name, labels, packed.sizes, packed.cells.view(np.uint8), folder)


class Label(NamedTuple):
    """What a file says of a task beside its grids."""

    task_id: str
    title: str
    concept: str
    num_train: int
    num_test: int
    num_pool: int


def install_grids(
    name: str,
    labels: Sequence[Label],
    sizes: Integer[np.ndarray, "N 2"],
    cells: UInt8[np.ndarray, " M"],
    folder: Path | None = None,
) -> Path:
    """Keep tasks whose grids stand one after the other: input and output of each pair, demonstrations, tests, pool.

    They replace what had the name. Arguments are not checked; what is wrong is noticed when the file is read.

    Raises:
        ValueError: the name is not one that a set can have, or there are too many cells.
        OSError: the data folder cannot be written.
    """
    if cells.size > _MOST_BYTES:
        raise ValueError(
            f"a task set has up to {_MOST_BYTES:,} cells, and {name!r} has {cells.size:,}; take fewer tasks"
        )
    content = {"tasks.json": json.dumps(labels).encode(), "sizes": sizes.astype(np.int8), "cells": cells}
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for member, part in content.items():  # without the time of day: equal sets are equal files
            archive.writestr(zipfile.ZipInfo(member), bytes(part), zipfile.ZIP_DEFLATED)
    return write_whole(installed_path(name, folder), packed.getvalue())


def uninstall(name: str, folder: Path | None = None) -> Path:
    """Remove a task set from the data folder, whole or damaged, and return the path of its file.

    Raises:
        NotInstalledError: there is none of this name.
        ValueError: the name is not one that a set can have.
        OSError: the file cannot be removed.
    """
    path = installed_path(name, folder)
    try:
        path.unlink()
    except (FileNotFoundError, NotADirectoryError) as error:
        names = ", ".join(installed_names(folder)) or "none"
        raise NotInstalledError(f"no task set {name!r} is installed (no file {path}); there are: {names}") from error
    return path


def arc_json(task: RawTask) -> dict[str, Any] | list[Any]:
    """Return the pairs of a task in the format of ARC's files; an unknown answer is left out.

    A task with a pool is a list of all its pairs, as in re-arc.
    """
    return [_pair_json(pair) for pair in task.all_pairs] if task.pool else splits_json(task)


def splits_json(task: RawTask) -> dict[str, Any]:
    """Return demonstrations and tests alone."""
    return {"train": [_pair_json(pair) for pair in task.train], "test": [_pair_json(pair) for pair in task.test]}


def read_installed(name: str, folder: Path | None = None) -> TaskSet:
    """Read a task set from the data folder.

    Raises:
        NotInstalledError: a ``FileNotFoundError``; there is none of this name. Says how to get it.
        TaskFormatError: the file is damaged, or was not written by :func:`install` under this name.
    """
    path = installed_path(name, folder)
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotInstalledError(_how_to_install(name, path)) from error
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            packed = _unpack(archive)
            return TaskSet(name, packed if len(packed) > _MANY else tuple(packed))
    except (*ZIP_DAMAGE, KeyError, TypeError, OverflowError) as error:
        raise TaskFormatError(f"{path}: damaged, or no installed set ({error}); {_how_to_replace(name)}") from error


def has_published_set(name: str, folder: Path | None = None) -> bool:
    """Return whether the data folder has a whole copy of one of :data:`jaxarc.datasets.archives.ARCHIVES`."""
    try:
        tasks = read_installed(name, folder)
        return digest_of(tasks) == ARCHIVES[name].digest or (bool(ARCHIVES[name].git_blob) and len(tasks) > 0)
    except (NotInstalledError, TaskFormatError):
        return False


def how_to_import(name: str) -> str:
    """Return the way for a machine without network to get a published set."""
    return (
        f"without network, fetch {ARCHIVES[name].url} on another machine, copy the zip here and run: "
        f"jaxarc tasks import FILE --name {name}"
    )


def _sets(folder: Path | None) -> Path:
    return (data_folder() if folder is None else folder) / "tasks"


def _unpack(archive: zipfile.ZipFile) -> PackedTasks:
    """Return the tasks of a file.

    It has three members, of whose bytes zip keeps checksums: ``tasks.json`` lists ``[id, title, concept, number of
    demonstrations, of tests, of further pairs]``; ``sizes`` has two bytes for each grid, its rows and its columns, and
    ``cells`` a byte for each cell. One demonstration (7 8) -> (7; 8) is ``1 2 2 1`` and ``7 8 7 8``.
    """
    labels = parse_json(_member(archive, "tasks.json", archive.getinfo("tasks.json").file_size), "tasks.json")
    ids, titles, concepts, *numbers = zip(*labels, strict=True)
    del labels  # which take as much as the cells
    counts = np.array(numbers, np.int64).reshape(3, -1).T
    for task_id in ids:
        check_task_id(task_id, "tasks.json")
    if not all(isinstance(text, str) for text in (*titles, *concepts)):
        raise ValueError("a title or a concept is no text")
    if without := np.flatnonzero((counts[:, :2] == 0).any(axis=1)).tolist():
        raise ValueError(f"task {ids[without[0]]!r} has no demonstration or no test")
    packed = PackedTexts.of(ids), PackedTexts.of(titles), PackedTexts.of(concepts)
    del ids, titles, concepts
    sizes = np.frombuffer(_member(archive, "sizes", 4 * int(counts.sum())), np.int8).reshape(-1, 2)
    is_test = np.repeat(np.tile([False, True, False], len(counts)), counts.ravel())
    unknown = (sizes == 0).all(axis=1) & np.stack([np.zeros_like(is_test), is_test], axis=1).ravel()
    if ((sizes < 1).any(axis=1) & ~unknown).any() or sizes.max() > MAX_GRID_SIZE:
        raise ValueError(f"a side is not 1..{MAX_GRID_SIZE}")
    num_cells = int(sizes.prod(axis=1, dtype=np.int64).sum())
    cells = np.frombuffer(_member(archive, "cells", num_cells), np.uint8)
    if cells.max() >= NUM_COLORS:
        raise ValueError(f"a color is not 0..{NUM_COLORS - 1}")
    return PackedTasks(*packed, counts, sizes, cells.view(np.int8))


def _member(archive: zipfile.ZipFile, name: str, size: int) -> bytes:
    """Return the bytes of a member, at most as many as there must be."""
    with archive.open(name) as member:
        content = member.read(min(size, _MOST_BYTES) + 1)
    if len(content) != size:
        raise ValueError(f"{name} has {len(content)} bytes or more, not {size}")
    return content


def _pair_json(pair: Pair) -> dict[str, Any]:
    source, target = pair
    return {"input": source.tolist()} | ({"output": target.tolist()} if target.size else {})


def _how_to_install(name: str, path: Path) -> str:
    if name in ARCHIVES:
        return (
            f"the tasks of {name!r} are not installed (no file {path}); run: jaxarc tasks download {name}; "
            + how_to_import(name)
        )
    return f"no task set {name!r} is installed (no file {path}); run: {_how_to_make(name)}"


def _how_to_replace(name: str) -> str:
    if name in ARCHIVES:
        return f"run: jaxarc tasks download {name} --again"
    return f"make it again: {_how_to_make(name)} --replace"


def _how_to_make(name: str) -> str:
    folder, _, rest = name.partition("/")
    if folder == "rules":  # of which those that hold something out are drawn with the others
        drawn = re.sub("-(arguments|compositions|words)$", "", rest)
        return f"jaxarc tasks generate rules {drawn} --count NUMBER" + " --held-out NUMBER" * (drawn != rest)
    return f"jaxarc tasks import PATH --name {name}"
