"""ARC tasks: find them by name, read them from files, put them on the device, draw from them."""

from jaxarc.tasks.buffer import TaskBuffer, buffer_of_task, pack_tasks
from jaxarc.tasks.catalogue import UnknownDatasetError, dataset_names, find_dataset, load_tasks, register_dataset
from jaxarc.tasks.downloads.installed import NotInstalledError
from jaxarc.tasks.published.dataset import Dataset, Edition
from jaxarc.tasks.published.errata import Erratum, known_issues
from jaxarc.tasks.readers.json_reader import read_json
from jaxarc.tasks.readers.problems import TaskProblem, find_problems
from jaxarc.tasks.registry import UnknownTaskError, register_task, task_id_of, task_index_of
from jaxarc.tasks.sampling import sample_task, task_weights, uniform_weights
from jaxarc.tasks.subset import SubsetError, TooLargeWarning
from jaxarc.tasks.task import Task, create_mock_task, create_task
from jaxarc.tasks.task_set import RawTask, TaskSet
from jaxarc.tasks.validation import TaskFormatError

__all__ = [
    "Dataset",
    "Edition",
    "Erratum",
    "NotInstalledError",
    "RawTask",
    "SubsetError",
    "Task",
    "TaskBuffer",
    "TaskFormatError",
    "TaskProblem",
    "TaskSet",
    "TooLargeWarning",
    "UnknownDatasetError",
    "UnknownTaskError",
    "buffer_of_task",
    "create_mock_task",
    "create_task",
    "dataset_names",
    "find_dataset",
    "find_problems",
    "known_issues",
    "load_tasks",
    "pack_tasks",
    "read_json",
    "register_dataset",
    "register_task",
    "sample_task",
    "task_id_of",
    "task_index_of",
    "task_weights",
    "uniform_weights",
]
