"""Find a task by what a person writes: the name of a dataset, a task of it, or the id of a task alone."""

from pathlib import Path
from typing import Final, NamedTuple

from jaxarc.datasets.catalogue import UnknownDatasetError, load_tasks
from jaxarc.datasets.task_set import TaskSet
from jaxarc.tasks.registry import UnknownTaskError

SEARCHED: Final = ("arc-agi-1/training", "arc-agi-1/evaluation", "arc-agi-2/training", "arc-agi-2/evaluation")
"""Datasets in which an id alone is looked up, in this order."""


class FoundTask(NamedTuple):
    """A task, and the others of its dataset."""

    tasks: TaskSet
    dataset: str  # the name that loads them
    task_id: str


def lasting_name(dataset: str) -> str:
    """Return a name of a dataset that means the same in another working directory."""
    path = Path(dataset)
    return str(path.resolve()) if path.exists() else dataset


def find_task(word: str) -> FoundTask:
    """Find the first task of a dataset, a task written as ``DATASET/TASK``, or a task by its id.

    Raises:
        UnknownTaskError: there is none; names the datasets that were searched.
    """
    try:
        tasks = load_tasks(word)
    except UnknownDatasetError:
        dataset, _, task_id = word.rpartition("/")
        if not dataset:
            return find_task_id(word)
        tasks = load_tasks(dataset)
        return FoundTask(tasks, lasting_name(dataset), tasks.raw_task(task_id).task_id)
    return FoundTask(tasks, lasting_name(word), tasks.task_ids[0])


def find_task_id(task_id: str) -> FoundTask:
    """Find a task of ARC-AGI-1 or ARC-AGI-2 by its id.

    Raises:
        UnknownTaskError: there is none; names the datasets that were searched.
    """
    for name in SEARCHED:
        tasks = load_tasks(name)
        if task_id in tasks:
            return FoundTask(tasks, name, task_id)
    raise UnknownTaskError(
        f"{task_id!r:.200} is neither a dataset nor a task of {', '.join(SEARCHED)}; write DATASET/TASK for a task of "
        "another dataset"
    )
