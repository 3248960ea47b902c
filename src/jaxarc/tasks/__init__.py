"""ARC tasks: find them by name, read them from files, put them on the device, draw from them."""

from jaxarc.tasks.buffer import TaskBuffer, buffer_of_task, pack_tasks
from jaxarc.tasks.catalogue import UnknownDatasetError, dataset_names, load_tasks
from jaxarc.tasks.registry import UnknownTaskError, register_task, task_id_of, task_index_of
from jaxarc.tasks.sampling import sample_task, task_weights, uniform_weights
from jaxarc.tasks.task import Task, create_mock_task, create_task
from jaxarc.tasks.task_set import RawTask, TaskSet
from jaxarc.tasks.validation import TaskFormatError

__all__ = [
    "RawTask",
    "Task",
    "TaskBuffer",
    "TaskFormatError",
    "TaskSet",
    "UnknownDatasetError",
    "UnknownTaskError",
    "buffer_of_task",
    "create_mock_task",
    "create_task",
    "dataset_names",
    "load_tasks",
    "pack_tasks",
    "register_task",
    "sample_task",
    "task_id_of",
    "task_index_of",
    "task_weights",
    "uniform_weights",
]
