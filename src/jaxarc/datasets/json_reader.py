"""ARC tasks from JSON files of one's own, one task per file or many, or in Kaggle's layout."""

import dataclasses
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from jaxarc.constants import NUM_COLORS
from jaxarc.datasets.json_text import read_json_text
from jaxarc.datasets.kaggle_reader import (
    challenges_of,
    is_challenges,
    is_solutions,
    read_solutions,
    solutions_of,
    with_solutions,
)
from jaxarc.datasets.task_set import TaskSet
from jaxarc.tasks.raw_task import RawTask
from jaxarc.tasks.validation import TaskFormatError, check_task

_MAX_ID_LENGTH: Final = 200


@dataclasses.dataclass(frozen=True)
class FoundTask:
    """One task of a file before its grids are checked."""

    task_id: str
    concept: str  # the subfolder that its file lies in, "" at the top
    file: Path
    source: str  # how messages name the place: the file, and the id where the file holds several tasks
    data: Any  # what the file says; None where it cannot be told
    error: TaskFormatError | None = None  # why it cannot be told


def read_json(path: str | Path, null_color: int | None = None) -> TaskSet:
    """Read a file of tasks, or every ``*.json`` below a folder in the order of their paths.

    A file holds one task, whose id is the file name without ``.json``, or a mapping from id to task. The test outputs
    of ``*_challenges.json`` are taken from ``*_solutions.json`` beside it. The concept of a task is the subfolder that
    its file lies in. Other files, and what starts with a dot, are left out; links to folders are not followed.

    Args:
        path: the file or folder.
        null_color: the color, 0..9, that a ``null`` cell stands for (Mini-ARC writes ``null`` for 0); by default such
            a cell is an error.

    Raises:
        FileNotFoundError: there is nothing at ``path``.
        TaskFormatError: a file does not hold ARC tasks, an id comes twice, or the folder has no JSON file.
        ValueError: ``null_color`` is not a color.
    """
    if null_color is not None and null_color not in range(NUM_COLORS):
        raise ValueError(f"null_color is a color 0..{NUM_COLORS - 1} or None, got {null_color!r}; Mini-ARC means 0")
    tasks = []
    for found in unique_tasks(find_tasks(path), _raise):
        if found.error is not None:
            raise found.error
        pairs = check_task(found.data, found.source, null_color)
        tasks.append(RawTask.of_checked_pairs(found.task_id, *pairs, concept=found.concept))
    if not tasks:
        raise TaskFormatError(f"{path}: holds no task; a file holds one task or an object from id to task")
    return TaskSet(str(path), tuple(tasks))


def json_files(path: str | Path) -> list[Path]:
    """List the files that :func:`read_json` opens, in the order of their paths.

    Raises:
        FileNotFoundError: there is nothing at ``path``.
        TaskFormatError: the folder has no JSON file.
        OSError: a folder cannot be read.
    """
    place = Path(path)
    if not os.path.lexists(place):
        raise FileNotFoundError(f"no file or folder {place}; give the path of a task file or of a folder of them")
    if not place.is_dir():
        return [place, *_solutions_beside(place)]
    files = sorted(_walk(place), key=lambda file: file.relative_to(place))
    if not files:
        raise TaskFormatError(f"folder {place} has no *.json file; put task files into it or below it")
    return files


def find_tasks(
    path: str | Path, on_error: Callable[[Path, TaskFormatError | OSError], None] | None = None
) -> Iterator[FoundTask]:
    """Yield the tasks of a file or folder, unchecked.

    Args:
        path: the file or folder.
        on_error: what to do with a file that cannot be parsed; by default its error is raised.

    Raises:
        FileNotFoundError, TaskFormatError, OSError: see :func:`json_files`.
    """
    place = Path(path)
    for file in json_files(place):
        if is_solutions(file) and challenges_of(file).exists():
            if file == place:
                raise TaskFormatError(f"{file}: holds solutions only; give the path of {challenges_of(file).name}")
            continue
        concept = file.parent.name if file != place and file.parent != place else ""
        try:
            found = _tasks_of_file(file, concept)
        except (TaskFormatError, OSError) as error:
            if on_error is None:
                raise
            on_error(file, error)
        else:
            yield from found


def unique_tasks(
    tasks: Iterable[FoundTask], on_error: Callable[[FoundTask, TaskFormatError], None]
) -> Iterator[FoundTask]:
    """Yield the tasks whose id is a good one that did not come before; the others go to ``on_error``."""
    first: dict[str, FoundTask] = {}
    for task in tasks:
        other = first.setdefault(task.task_id, task)
        if not task.task_id.isprintable() or not 1 <= len(task.task_id) <= _MAX_ID_LENGTH:
            on_error(
                task,
                TaskFormatError(
                    f"{task.file}: the task id {task.task_id[:40]!r} is not 1..{_MAX_ID_LENGTH} printable characters; "
                    "rename the task"
                ),
            )
        elif other is not task:
            on_error(
                task,
                TaskFormatError(
                    f"two files give the task id {task.task_id!r}: {other.file} and {task.file}; the id is the file "
                    "name or the key of a task, rename one or read the folders one by one"
                ),
            )
        else:
            yield task


def _raise(_: FoundTask, error: TaskFormatError) -> None:
    raise error


def _walk(folder: Path) -> Iterator[Path]:
    def fail(error: OSError) -> None:
        raise error

    for parent, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(parent) / name for name in names if name.endswith(".json") and not name.startswith("."))


def _solutions_beside(file: Path) -> list[Path]:
    return [solutions_of(file)] if is_challenges(file) and solutions_of(file).exists() else []


def _tasks_of_file(file: Path, concept: str) -> list[FoundTask]:
    content = read_json_text(file)
    if is_solutions(file) and not _is_task(content):
        raise TaskFormatError(f"{file}: solutions without tasks; put {challenges_of(file).name} beside it")
    if _is_task(content) or not _holds_tasks(content):
        return [FoundTask(file.stem, concept, file, str(file), content)]
    solutions = read_solutions(file, content) if is_challenges(file) else None
    found = []
    for task_id, data in content.items():
        task = FoundTask(task_id, concept, file, f"{file}: {task_id}", data)
        if solutions is not None:
            task = _solved(task, solutions)
        found.append(task)
    return found


def _solved(task: FoundTask, solutions: dict[str, Any]) -> FoundTask:
    try:
        data = with_solutions(task.data, task.task_id, solutions, solutions_of(task.file))
    except TaskFormatError as error:
        return dataclasses.replace(task, data=None, error=error)
    return dataclasses.replace(task, data=data)


def _is_task(content: Any) -> bool:
    return isinstance(content, dict) and ("train" in content or "test" in content)


def _holds_tasks(content: Any) -> bool:
    return isinstance(content, dict) and any(_is_task(value) for value in content.values())
