"""Numbers for task ids: a state carries an integer, and this process knows which task it means.

Numbers are given in the order of registration, so they mean something only in the process that gave them; what is
written to a file is the id.
"""

import threading
from typing import Final

from jaxarc.errors import UsageError, whole_number

NO_TASK: Final = -1  # the index of a task without an id


class UnknownTaskError(UsageError, KeyError):
    """No task has this id or index."""


_ids: list[str] = []
_indices: dict[str, int] = {}  # where each id is in the list
_lock = threading.Lock()


def register_task(task_id: str) -> int:
    """Name a task for this process and return its index; the same id always gets the same index.

    Raises:
        ValueError: the id is not a non-empty string.
    """
    if not isinstance(task_id, str) or not task_id:
        raise ValueError(f"a task id is a non-empty string, got {task_id!r}; name the task")
    with _lock:
        if task_id not in _indices:
            _ids.append(task_id)
            _indices[task_id] = len(_ids) - 1
        return _indices[task_id]


def task_id_of(index: int) -> str:
    """Return the id of a task index, such as ``state.task_index``.

    Raises:
        UnknownTaskError: a ``KeyError``; the index is -1 (no id) or was not given in this process.
    """
    number = whole_number(index, "a task index", UnknownTaskError)
    if number == NO_TASK:
        raise UnknownTaskError(f"index {NO_TASK} marks a task without an id; name it with register_task(task_id)")
    if not 0 <= number < len(_ids):
        raise UnknownTaskError(
            f"no task has index {number}; this process registered {len(_ids)} tasks (indices from 0 on); "
            "load the task's dataset or call register_task(task_id) first"
        )
    return _ids[number]
