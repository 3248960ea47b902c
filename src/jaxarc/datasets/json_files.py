"""ARC tasks from JSON files of one's own: one task per file, many per file, or Kaggle's layout.

Kaggle keeps the tasks in ``*_challenges.json`` and the outputs of their tests in ``*_solutions.json`` beside it.
Of a hidden test set there is no such file, and the answers of its tests are unknown.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from jaxarc.datasets.archives import files_below, warn_of_skipped
from jaxarc.datasets.json_format import is_task, read_json_text, read_task, tasks_by_id
from jaxarc.datasets.task_set import TaskSet
from jaxarc.tasks.raw_task import RawTask, TaskFormatError, check_task_id

_CHALLENGES: Final = "challenges.json"
_SOLUTIONS: Final = "solutions.json"


class TaskProblem(NamedTuple):
    """The first rule that a task, or a file as a whole, breaks."""

    file: Path
    task_id: str  # "" where the file as a whole is wrong
    message: str  # the value, the rule and the fix


def read_json(path: str | Path) -> TaskSet:
    """Read a file of tasks, or every ``*.json`` below a folder in the order of their paths.

    A file holds one task, whose id is the file name without ``.json``, a list of tasks, or a mapping from id to task.
    A task is an object with ``train`` and ``test``, or a list of pairs. The
    test outputs of ``*_challenges.json`` come from ``*_solutions.json`` beside it; without that
    file those that are missing are unknown (:attr:`jaxarc.tasks.RawTask.has_answers`). The concept of a task is the
    subfolder of its file. Links to folders are followed, to each folder once. Other files, hidden ones and
    ``metadata.json`` beside a folder ``tasks`` (re-arc) are skipped.

    Raises:
        FileNotFoundError: there is nothing at ``path``.
        TaskFormatError: a file does not hold ARC tasks, an id comes twice, or the folder has no JSON file.

    Warns:
        SkippedFilesWarning: the folder has other files that may hold tasks, or hidden ones; names one.
    """
    tasks = []
    for found in _read_tasks(Path(path)):
        if isinstance(found, _Fault):
            raise found.error
        tasks.append(found)
    if not tasks:
        raise TaskFormatError(_no_task(path))
    return TaskSet(str(path), tuple(tasks))


def find_problems(path: str | Path) -> list[TaskProblem]:
    """Check a task file, or every one below a folder, and list the first fault of each task and file.

    What has none, :func:`read_json` reads.

    Raises:
        FileNotFoundError: there is nothing at ``path``.
    """
    try:
        found = list(_read_tasks(Path(path)))
    except FileNotFoundError:
        raise
    except (TaskFormatError, OSError) as error:  # of the folder itself
        found = [_Fault(Path(path), "", error)]
    if not found:
        return [TaskProblem(Path(path), "", _no_task(path))]
    return [TaskProblem(one.file, one.task_id, str(one.error)) for one in found if isinstance(one, _Fault)]


def json_files(path: Path) -> list[Path]:
    """List the files that :func:`read_json` opens, in the order of their paths.

    Raises:
        FileNotFoundError: there is nothing at ``path``.
        TaskFormatError: the folder has no JSON file.
        OSError: a folder cannot be read.
    """
    if not os.path.lexists(path):
        raise FileNotFoundError(f"no file or folder {path}; give the path of a task file or of a folder of them")
    if not path.is_dir():
        return [path]
    names = list(files_below(path))
    files = [file for _, file in names if _is_tasks_file(file)]
    warn_of_skipped(path, (name for name, file in names if not _is_tasks_file(file)))
    if not files:
        raise TaskFormatError(f"folder {path} has no *.json file; put task files into it or below it")
    return sorted(files, key=lambda file: file.relative_to(path))


def _no_task(path: str | Path) -> str:
    return f"{path}: holds no task; a file holds one task or an object from id to task"


def _is_tasks_file(file: Path) -> bool:
    if file.name.startswith(".") or (file.name == "metadata.json" and (file.parent / "tasks").is_dir()):
        return False
    # A link that leads nowhere may be a folder of tasks on a disk that is not there; reading it says so.
    return file.suffix.lower() == ".json" or (file.is_symlink() and not file.exists())


class _Fault(NamedTuple):
    """The first thing that is wrong with a task, or with a file as a whole."""

    file: Path
    task_id: str  # "" for the file
    error: TaskFormatError | OSError


def _read_tasks(path: Path) -> Iterator[RawTask | _Fault]:
    """Yield the tasks of a file or folder, and a fault in place of each that is wrong."""
    file_of_id: dict[str, Path] = {}
    for file in json_files(path):
        # A folder between the given one and the file is the concept, as in ConceptARC: corpus/Center/Center1.json.
        is_concept = file.parent != path and file != path and file.parent.name != "tasks"
        concept = file.parent.name if is_concept else ""
        try:
            tasks, solutions = _unchecked_tasks(file, is_alone=file == path)
        except (TaskFormatError, OSError) as error:
            yield _Fault(file, "", error)
            continue
        hidden = _is_challenges(file) and solutions is None
        for task_id, data in tasks.items():
            source = str(file) if task_id == file.stem and len(tasks) == 1 else f"{file}: {task_id}"
            try:
                _require_new(task_id, file, file_of_id)
                if solutions is not None:
                    data = _with_solutions(data, task_id, solutions, _solutions_of(file))
                yield read_task(task_id, data, source, answers_hidden=hidden, concept=concept)
            except TaskFormatError as error:
                yield _Fault(file, task_id, error)


def _require_new(task_id: str, file: Path, file_of_id: dict[str, Path]) -> None:
    check_task_id(task_id, str(file))
    other = file_of_id.setdefault(task_id, file)
    if other != file:
        raise TaskFormatError(
            f"two files give the task id {task_id!r}: {other} and {file}; the id is the file name or the key of a "
            "task, rename one or read the folders one by one"
        )


def _unchecked_tasks(file: Path, *, is_alone: bool) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the tasks of a file by id, and the solutions of challenges; none of solutions beside challenges."""
    content = read_json_text(file)
    if _is_solutions(file) and not (isinstance(content, dict) and is_task(content)):
        if not _challenges_of(file).exists():
            raise TaskFormatError(f"{file}: solutions without tasks; put {_challenges_of(file).name} beside it")
        if is_alone:
            raise TaskFormatError(f"{file}: holds solutions only; give the path of {_challenges_of(file).name}")
        return {}, None
    tasks = tasks_by_id(content, file.stem, str(file))
    return tasks, _read_solutions(file, tasks) if _is_challenges(file) and not is_task(content) else None


def _is_challenges(file: Path) -> bool:
    return file.name == _CHALLENGES or file.name.endswith((f"_{_CHALLENGES}", f"-{_CHALLENGES}"))


def _is_solutions(file: Path) -> bool:
    return file.name == _SOLUTIONS or file.name.endswith((f"_{_SOLUTIONS}", f"-{_SOLUTIONS}"))


def _solutions_of(challenges: Path) -> Path:
    return challenges.with_name(challenges.name.removesuffix(_CHALLENGES) + _SOLUTIONS)


def _challenges_of(solutions: Path) -> Path:
    return solutions.with_name(solutions.name.removesuffix(_SOLUTIONS) + _CHALLENGES)


def _read_solutions(challenges: Path, tasks: dict[str, Any]) -> dict[str, Any] | None:
    """Read the solutions beside a challenges file; ``None`` where there are none.

    Raises:
        TaskFormatError: the file is no mapping from task id to outputs, or solves other tasks.
    """
    file = _solutions_of(challenges)
    if not file.exists():
        return None
    solutions = read_json_text(file)
    if not isinstance(solutions, dict):
        raise TaskFormatError(f"{file}: solutions are an object from task id to a list of grids; is it the right file?")
    strangers = [task_id for task_id in solutions if task_id not in tasks]
    if strangers:
        raise TaskFormatError(
            f"{file}: solves {strangers[0][:40]!r} and {len(strangers) - 1} more tasks that {challenges.name} does not "
            "have; use two files of one release"
        )
    return solutions


def _with_solutions(task: Any, task_id: str, solutions: dict[str, Any], file: Path) -> Any:
    """Return a task with the outputs of its tests put in; anything that is no task comes back unchanged.

    Raises:
        TaskFormatError: there is not one solution for every test input, or it contradicts an output that is there.
    """
    # What is no task at all passes unchanged: the check that follows says what is wrong with it.
    tests = task.get("test") if isinstance(task, dict) else None
    if not isinstance(tests, list) or not all(isinstance(test, dict) for test in tests):
        return task
    outputs = solutions.get(task_id)
    if outputs is None and all("output" in test for test in tests):
        return task
    if not isinstance(outputs, list) or len(outputs) != len(tests):
        found = len(outputs) if isinstance(outputs, list) else "no list of"
        raise TaskFormatError(
            f"{file}: {task_id}: {found} solutions for {len(tests)} test inputs; use two files of one release"
        )
    for index, (test, output) in enumerate(zip(tests, outputs, strict=True)):
        if "output" in test and test["output"] != output:
            raise TaskFormatError(
                f"{file}: {task_id}: solution {index} contradicts the output in the challenges; remove one of the two"
            )
    return {**task, "test": [{**test, "output": output} for test, output in zip(tests, outputs, strict=True)]}
