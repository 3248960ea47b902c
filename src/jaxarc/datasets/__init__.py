"""Datasets of ARC tasks: find them by name, read them from files, choose some of their tasks."""

from typing import TYPE_CHECKING

from jaxarc.datasets.archives import SkippedFilesWarning
from jaxarc.datasets.catalogue import (
    UnknownDatasetError,
    dataset_names,
    find_dataset,
    load_tasks,
    register_dataset,
)
from jaxarc.datasets.installed import NotInstalledError
from jaxarc.datasets.json_files import TaskProblem, find_problems, read_json
from jaxarc.datasets.published import Dataset, DatasetVersion
from jaxarc.datasets.selectors import SubsetError
from jaxarc.datasets.task_set import TaskSet, task_weights
from jaxarc.lazy import lazy

if TYPE_CHECKING:
    from jaxarc.datasets.procedural_samples import sample_task_set

__all__ = [
    "Dataset",
    "DatasetVersion",
    "NotInstalledError",
    "SkippedFilesWarning",
    "SubsetError",
    "TaskProblem",
    "TaskSet",
    "UnknownDatasetError",
    "dataset_names",
    "find_dataset",
    "find_problems",
    "load_tasks",
    "read_json",
    "register_dataset",
    "sample_task_set",
    "task_weights",
]


_HOMES = {"sample_task_set": "jaxarc.datasets.procedural_samples"}  # it runs on the device, and brings JAX

__getattr__, __dir__ = lazy(__name__, _HOMES)
