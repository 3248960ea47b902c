"""Numbers for task ids: a state carries an integer, and this process knows which task it means.

Numbers are given in the order of registration, so they mean something only in the process that gave them; what is
written to a file is the id.
"""

import threading
from typing import Final

from jaxarc.errors import UsageError

NO_TASK: Final = -1  # the index of a task without an id


class UnknownTaskError(UsageError, KeyError):
    """No task has this id or index."""


class TaskRegistry:
    """Task ids and their indices 0, 1, 2, ..., safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids: list[str] = []
        self._indices: dict[str, int] = {}

    def __len__(self) -> int:
        with self._lock:
            return len(self._ids)

    def register(self, task_id: str) -> int:
        """Return the index of ``task_id``, giving it the next free one when it is new."""
        if not isinstance(task_id, str) or not task_id:
            raise ValueError(f"a task id is a non-empty string, got {task_id!r}; name the task")
        with self._lock:
            if task_id not in self._indices:
                self._indices[task_id] = len(self._ids)
                self._ids.append(task_id)
            return self._indices[task_id]

    def id_of(self, index: int) -> str:
        """Return the id that ``register`` gave ``index`` to."""
        number = int(index)
        with self._lock:
            if 0 <= number < len(self._ids):
                return self._ids[number]
            count = len(self._ids)
        if number == NO_TASK:
            raise UnknownTaskError(f"index {NO_TASK} marks a task without an id; name it with register_task(task_id)")
        raise UnknownTaskError(
            f"no task has index {number}; this process registered {count} tasks (indices from 0 on); "
            "load the task's dataset or call register_task(task_id) first"
        )

    def index_of(self, task_id: str) -> int:
        """Return the index of a registered id."""
        with self._lock:
            if task_id in self._indices:
                return self._indices[task_id]
        raise UnknownTaskError(
            f"task {task_id!r} is not registered in this process; load its dataset or call register_task({task_id!r})"
        )


_REGISTRY = TaskRegistry()


def register_task(task_id: str) -> int:
    """Name a task for this process and return its index; the same id always gets the same index.

    Raises:
        ValueError: the id is not a non-empty string.
    """
    return _REGISTRY.register(task_id)


def task_id_of(index: int) -> str:
    """Return the id of a task index, such as ``state.task_index``.

    Raises:
        UnknownTaskError: a ``KeyError``; the index is -1 (no id) or was not given in this process.
    """
    return _REGISTRY.id_of(index)


def task_index_of(task_id: str) -> int:
    """Return the index of a registered task id.

    Raises:
        UnknownTaskError: a ``KeyError``; the id is not registered.
    """
    return _REGISTRY.index_of(task_id)
