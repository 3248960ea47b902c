"""What an ARC task is, and how tasks stand on the device: build one, pack many, draw from them.

Datasets of tasks are found and read by :mod:`jaxarc.datasets`.
"""

from jaxarc.tasks.buffer import TaskBuffer, TaskGenerator, buffer_of_task, pack_tasks
from jaxarc.tasks.raw_task import RawTask, TaskFormatError, UnknownAnswerError
from jaxarc.tasks.registry import UnknownTaskError, register_task, task_id_of, task_index_of
from jaxarc.tasks.sampling import sample_task, uniform_weights
from jaxarc.tasks.task import Task, create_mock_task, create_task

__all__ = [
    "RawTask",
    "Task",
    "TaskBuffer",
    "TaskFormatError",
    "TaskGenerator",
    "UnknownAnswerError",
    "UnknownTaskError",
    "buffer_of_task",
    "create_mock_task",
    "create_task",
    "pack_tasks",
    "register_task",
    "sample_task",
    "task_id_of",
    "task_index_of",
    "uniform_weights",
]


def __dir__() -> list[str]:
    return sorted(__all__)
