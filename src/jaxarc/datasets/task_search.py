"""Find a task by what a person writes: the name of a dataset, a task of it, or the id or title of a task alone."""

import difflib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from jaxarc.datasets.catalogue import UnknownDatasetError, dataset_names, find_dataset, load_tasks
from jaxarc.datasets.task_set import TaskSet
from jaxarc.tasks.procedural.names import procedural_names
from jaxarc.tasks.registry import UnknownTaskError


class FoundTask(NamedTuple):
    """A task, and the others of its dataset."""

    tasks: TaskSet
    dataset: str  # the name that loads them
    task_id: str


def lasting_name(dataset: str) -> str:
    """Return a name of a dataset that means the same in another working directory."""
    path = Path(dataset)
    return str(path.resolve()) if path.exists() else dataset


def find_task(word: str, dataset: str | None = None) -> FoundTask:
    """Find the first task of a dataset, a task written as ``DATASET/TASK``, or a task by its id or title.

    Args:
        word: what a person wrote.
        dataset: the one that has the task; by default the first of all that are here.

    Raises:
        UnknownDatasetError: there is no such dataset.
        UnknownTaskError: there is no such task. Names the nearest ones.
    """
    if dataset is not None:
        tasks = load_tasks(dataset)
        task_id = _by_title(tasks, word) or tasks.raw_task(word).task_id
        return FoundTask(tasks, lasting_name(dataset), task_id)
    try:
        tasks = load_tasks(word)
    except UnknownDatasetError:
        dataset, _, task_id = word.rpartition("/")
        return find_task(task_id, dataset) if dataset else find_task_id(word)
    return FoundTask(tasks, lasting_name(word), tasks.task_ids[0])


def find_task_id(word: str) -> FoundTask:
    """Find a task by its id or title in the datasets that are here, those of ARC-AGI-1 first; no path is read.

    Raises:
        UnknownTaskError: there is none. Names the nearest ones.
    """
    sets: list[TaskSet] = []
    for tasks in _sets_here():
        sets.append(tasks)
        if word in tasks:
            return FoundTask(tasks, tasks.name, word)
    for tasks in sets:
        if found := _by_title(tasks, word):
            return FoundTask(tasks, tasks.name, found)
    names = {name: None for tasks in sets for task in tasks for name in (task.task_id, task.title)}
    near = difflib.get_close_matches(word, names, n=3, cutoff=0.5)
    hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
    raise UnknownTaskError(f"no dataset, and no task of the {len(sets)} data sets here, is called {word!r:.200}{hint}")


def _sets_here() -> Iterator[TaskSet]:
    for name in dataset_names():
        if name not in procedural_names() and find_dataset(name).where():
            yield load_tasks(name)


def _by_title(tasks: TaskSet, title: str) -> str | None:
    wanted = title.casefold()
    return next((task.task_id for task in tasks if task.title.casefold() == wanted), None)
