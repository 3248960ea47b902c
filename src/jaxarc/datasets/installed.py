"""Task sets in the user's data folder: one JSON file each, checked whenever it is read."""

import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any, Final

import platformdirs

from jaxarc.datasets.archives import ARCHIVES
from jaxarc.datasets.json_format import check_task, parse_json
from jaxarc.datasets.pair_lists import pack_pool, unpack_pool
from jaxarc.datasets.task_set import TaskSet, digest_of
from jaxarc.errors import UsageError
from jaxarc.files import at_home, file_name, user_path, write_whole
from jaxarc.tasks.raw_task import Pair, RawTask, TaskFormatError

FORMAT: Final = "jaxarc-tasks/1"
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
    return _sets(folder).joinpath(*f"{check_set_name(name)}.json".split("/"))


def installed_names(folder: Path | None = None) -> tuple[str, ...]:
    """List the names of the task sets that are there, sorted."""
    sets = _sets(folder)
    files = [file.relative_to(sets) for pattern in ("*.json", "*/*.json") for file in sets.glob(pattern)]
    names = [file.as_posix().removesuffix(".json") for file in files]
    return tuple(sorted(name for name in names if _NAME.fullmatch(name)))


def install(task_set: TaskSet, name: str, folder: Path | None = None) -> Path:
    """Keep a task set under a name, replacing what had it, and return the file.

    Raises:
        ValueError: the name is not one that a set can have.
        OSError: the data folder cannot be written.
    """
    tasks = {
        task.task_id: {
            "title": task.title,
            "concept": task.concept,
            **splits_json(task),
            **({"pool": pack_pool(task.pool), "pool_size": len(task.pool)} if task.pool else {}),
        }
        for task in task_set
    }
    # Two digests: that of the grids, which a published set is compared by, and that
    # of ids and labels, which it leaves out.
    header = {"format": FORMAT, "name": name, "digest": digest_of(task_set), "labels": _labels_digest(task_set)}
    text = json.dumps({**header, "tasks": tasks}, separators=(",", ":"))
    return write_whole(installed_path(name, folder), text.encode("utf-8"))


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
        return _parse(content, name, path)
    except TaskFormatError as error:
        raise TaskFormatError(f"{error}; {_how_to_replace(name)}") from error


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


def _parse(content: bytes, name: str, path: Path) -> TaskSet:
    record = parse_json(content, f"{path}: damaged")
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise TaskFormatError(f"{path}: not a task set that this version of jaxarc wrote (format {FORMAT!r})")
    if record.get("name") != name:
        raise TaskFormatError(f"{path}: holds the task set {record.get('name')!r} and not {name!r}")
    if not isinstance(tasks := record.get("tasks"), dict) or not tasks:
        raise TaskFormatError(f"{path}: damaged, it has no tasks")
    # Every grid is checked again, since a file may be edited; the digests then tell an edit from what was written.
    task_set = TaskSet(name, tuple(_task(task_id, entry, path) for task_id, entry in tasks.items()))
    if record.get("digest") != digest_of(task_set) or record.get("labels") != _labels_digest(task_set):
        raise TaskFormatError(f"{path}: damaged, its tasks do not have the digest that was written with them")
    return task_set


def _task(task_id: str, entry: Any, path: Path) -> RawTask:
    source = f"{path}: task {task_id!r}"
    train, test = check_task(entry, source, answers_hidden=True)
    title = entry.get("title")
    concept = entry.get("concept")
    if not task_id or not isinstance(title, str) or not isinstance(concept, str):
        raise TaskFormatError(f"{source}: damaged, id, title and concept are strings")
    pool = entry.get("pool", "")
    size = entry.get("pool_size", 0)
    if not isinstance(pool, str) or type(size) is not int or bool(pool) != (size > 0):
        raise TaskFormatError(f"{source}: damaged, pool and pool_size do not agree")
    pairs = unpack_pool(pool, size, source) if pool else ()
    return RawTask.of_checked_pairs(task_id, train, test, title, concept, pairs)


def _pair_json(pair: Pair) -> dict[str, Any]:
    source, target = pair
    return {"input": source.tolist()} | ({"output": target.tolist()} if target.size else {})


def _labels_digest(tasks: TaskSet) -> str:
    """Fingerprint ids, titles, concepts and their order, which the digest of the tasks leaves out."""
    labels = [(task.task_id, task.title, task.concept) for task in tasks]
    return hashlib.sha256(json.dumps(labels).encode("utf-8")).hexdigest()


def _how_to_install(name: str, path: Path) -> str:
    if name in ARCHIVES:
        return (
            f"the tasks of {name!r} are not installed (no file {path}); run: jaxarc tasks download {name}; "
            + how_to_import(name)
        )
    return f"no task set {name!r} is installed (no file {path}); run: jaxarc tasks import PATH --name {name}"


def _how_to_replace(name: str) -> str:
    if name in ARCHIVES:
        return f"run: jaxarc tasks download {name} --again"
    return f"import it again: jaxarc tasks import PATH --name {name} --replace"
