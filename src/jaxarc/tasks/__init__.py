"""ARC tasks on the device: build one, pack many, draw from them.

Datasets of tasks are found and read by :mod:`jaxarc.datasets`.
"""

from typing import TYPE_CHECKING

from jaxarc.lazy import lazy
from jaxarc.tasks.raw_task import RawTask, TaskFormatError, UnknownAnswerError
from jaxarc.tasks.registry import UnknownTaskError, register_task, task_id_of

if TYPE_CHECKING:
    from jaxarc.tasks.buffer import TaskBuffer, TaskGenerator, buffer_of_task, pack_tasks, sample_task, uniform_weights
    from jaxarc.tasks.task import create_mock_task, create_task

__all__ = [
    "RawTask",
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
    "uniform_weights",
]

# What works on the device brings JAX, which the host side does without.
_HOMES = {
    **dict.fromkeys(["TaskBuffer", "TaskGenerator", "buffer_of_task", "pack_tasks"], "jaxarc.tasks.buffer"),
    **dict.fromkeys(["sample_task", "uniform_weights"], "jaxarc.tasks.buffer"),
    **dict.fromkeys(["create_mock_task", "create_task"], "jaxarc.tasks.task"),
}

__getattr__, __dir__ = lazy(__name__, _HOMES)
