"""ARC tasks from JSON files of one's own: one task per file, many per file, or Kaggle's layout.

Kaggle keeps the tasks in ``*_challenges.json`` and the outputs of their tests in ``*_solutions.json`` beside it.
Of a hidden test set there is no such file, and the answers of its tests are unknown.

A file may also list the pairs of a task without a split, see :mod:`jaxarc.datasets.pair_lists`.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from jaxarc.constants import NUM_COLORS
from jaxarc.datasets.json_format import find_problems_of_task, read_json_text
from jaxarc.datasets.pair_lists import LeftOut, is_pair_list, read_rows, read_task
from jaxarc.datasets.task_set import TaskSet
from jaxarc.tasks.raw_task import RawTask, TaskFormatError

MOST_PROBLEMS_OF_A_FILE: Final = 100
_MAX_ID_LENGTH: Final = 200
_CHALLENGES: Final = "challenges.json"
_SOLUTIONS: Final = "solutions.json"

Report: TypeAlias = Callable[[Path, str, TaskFormatError | OSError], None]
"""Gets the file, the task id ("" for the file as a whole) and the error of each problem; may raise the error."""


class TaskProblem(NamedTuple):
    """One rule that one file breaks."""

    file: Path
    task_id: str  # "" where the file as a whole is wrong
    message: str  # the value, the rule and the fix


def read_json(path: str | Path, null_color: int | None = None) -> TaskSet:
    """Read a file of tasks, or every ``*.json`` below a folder in the order of their paths.

    A file holds one task, whose id is the file name without ``.json``, or a mapping from id to task; a file ``*.jsonl``
    holds a task in each line, and a table ``*.csv`` one in each row. A task is an object with ``train`` and ``test``,
    or a list of pairs. The test outputs of ``*_challenges.json`` come from ``*_solutions.json`` beside it; without that
    file those that are missing are unknown (:attr:`jaxarc.tasks.RawTask.has_answers`). The concept of a task is the
    subfolder of its file. Other files, hidden ones, ``metadata.json`` beside a folder ``tasks`` (re-arc) and links to
    folders are skipped.

    Args:
        path: the file or folder.
        null_color: the color, 0..9, that a ``null`` cell stands for (Mini-ARC writes ``null`` for 0); by default such
            a cell is an error.

    Raises:
        FileNotFoundError: there is nothing at ``path``.
        TaskFormatError: a file does not hold ARC tasks, an id comes twice, or the folder has no JSON file.
        ValueError: ``null_color`` is not a color.

    Warns:
        TooLargeWarning: of lists of pairs, pairs over 30x30 are left out; says how many.
    """
    if null_color is not None and null_color not in range(NUM_COLORS):
        raise ValueError(f"null_color is a color 0..{NUM_COLORS - 1} or None, got {null_color!r}; Mini-ARC means 0")

    def fail(file: Path, task_id: str, error: TaskFormatError | OSError) -> None:
        raise error

    left_out = LeftOut()
    tasks = tuple(_read_tasks(Path(path), null_color, fail, left_out))
    left_out.warn(path)
    if not tasks:
        raise TaskFormatError(_no_task(path))
    return TaskSet(str(path), tasks)


def find_problems(path: str | Path, null_color: int | None = None) -> list[TaskProblem]:
    """Check a task file, or every one below a folder, and list everything that :func:`read_json` would refuse.

    Of one grid the first problem is listed, and of one file at most 100.

    Args:
        path: the file or folder.
        null_color: as for :func:`read_json`.

    Raises:
        FileNotFoundError: there is nothing at ``path``.
    """
    found: list[TaskProblem] = []
    counts: dict[Path, int] = {}

    def note(file: Path, task_id: str, error: TaskFormatError | OSError) -> None:
        # A file that is wrong everywhere would fill the report; its further problems
        # are counted, and named in one line.
        counts[file] = counts.get(file, 0) + 1
        if counts[file] <= MOST_PROBLEMS_OF_A_FILE:
            found.append(TaskProblem(file, task_id, str(error)))

    num_tasks = 0
    try:
        num_tasks = sum(1 for _ in _read_tasks(Path(path), null_color, note, LeftOut()))
    except FileNotFoundError:
        raise
    except (TaskFormatError, OSError) as error:  # of the folder itself
        note(Path(path), "", error)
    for file, count in counts.items():
        if count > MOST_PROBLEMS_OF_A_FILE:
            found.append(TaskProblem(file, "", f"{file}: {count - MOST_PROBLEMS_OF_A_FILE} more problems"))
    if not found and not num_tasks:
        found.append(TaskProblem(Path(path), "", _no_task(path)))
    return found


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
    files = sorted(_walk(path), key=lambda file: file.relative_to(path))
    if not files:
        raise TaskFormatError(f"folder {path} has no *.json file; put task files into it or below it")
    return files


def _no_task(path: str | Path) -> str:
    return f"{path}: holds no task; a file holds one task or an object from id to task"


def _walk(folder: Path) -> Iterator[Path]:
    def fail(error: OSError) -> None:
        raise error

    for parent, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(parent) / name for name in names if _is_tasks_file(name, folders))


def _is_tasks_file(name: str, folders: list[str]) -> bool:
    return name.endswith(".json") and not name.startswith(".") and not (name == "metadata.json" and "tasks" in folders)


def _read_tasks(path: Path, null_color: int | None, report: Report, left_out: LeftOut) -> Iterator[RawTask]:
    """Yield the good tasks of a file or folder, and report every problem of the others."""
    # One walk serves both callers: ``report`` raises at the first problem, or notes it and lets the walk go on.
    file_of_id: dict[str, Path] = {}
    for file in json_files(path):
        if file.suffix in (".jsonl", ".csv"):
            yield from _read_rows(file, null_color, report, left_out)
            continue
        if _is_solutions(file) and _challenges_of(file).exists():
            if file == path:
                raise TaskFormatError(f"{file}: holds solutions only; give the path of {_challenges_of(file).name}")
            continue
        try:
            tasks, solutions = _split_file(file)
            answers_hidden = _is_challenges(file) and solutions is None
        except (TaskFormatError, OSError) as error:
            report(file, "", error)
            continue
        # A folder between the given one and the file is the concept, as in ConceptARC: corpus/Center/Center1.json.
        concept = file.parent.name if file.parent != path and file != path and not _is_in_tasks_folder(file) else ""
        for task_id, data in tasks.items():
            wrong = _problem_of_id(task_id, file, file_of_id)
            if wrong is not None:
                report(file, task_id, wrong)
                continue
            source = str(file) if task_id == file.stem and len(tasks) == 1 else f"{file}: {task_id}"
            try:
                solved = data if solutions is None else _with_solutions(data, task_id, solutions, _solutions_of(file))
            except TaskFormatError as error:
                report(file, task_id, error)
                continue
            try:
                task = read_task(
                    task_id,
                    solved,
                    source,
                    left_out,
                    null_color=null_color,
                    answers_hidden=answers_hidden,
                    concept=concept,
                )
            except TaskFormatError as error:
                if is_pair_list(solved):
                    report(file, task_id, error)
                    continue
                for message in find_problems_of_task(solved, source, null_color, answers_hidden=answers_hidden):
                    report(file, task_id, TaskFormatError(message))
            else:
                if task is not None:
                    yield task


def _read_rows(file: Path, null_color: int | None, report: Report, left_out: LeftOut) -> Iterator[RawTask]:
    file_of_id: dict[str, Path] = {}
    for row in read_rows(file):
        wrong = _problem_of_id(row.task_id, file, file_of_id)
        if wrong is not None:
            report(file, row.task_id, wrong)
            continue
        try:
            task = read_task(
                row.task_id,
                row.data,
                row.source,
                left_out,
                null_color=null_color,
                concept=row.concept,
                skips_large=True,
            )
        except TaskFormatError as error:
            report(file, row.task_id, error)
        else:
            if task is not None:
                yield task


def _is_in_tasks_folder(file: Path) -> bool:
    return file.parent.name == "tasks"  # which is no concept


def _problem_of_id(task_id: str, file: Path, file_of_id: dict[str, Path]) -> TaskFormatError | None:
    """Check that an id can be printed and is new, and remember its file."""
    is_new = task_id not in file_of_id
    other = file_of_id.setdefault(task_id, file)
    if not task_id.isprintable() or not 1 <= len(task_id) <= _MAX_ID_LENGTH:
        return TaskFormatError(
            f"{file}: the task id {task_id[:40]!r} is not 1..{_MAX_ID_LENGTH} printable characters; rename the task"
        )
    if not is_new:
        return TaskFormatError(
            f"two files give the task id {task_id!r}: {other} and {file}; the id is the file name or the key of a "
            "task, rename one or read the folders one by one"
        )
    return None


def _split_file(file: Path) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return the unchecked tasks of a file by id, and for Kaggle's challenges their solutions."""
    content = read_json_text(file)
    if _is_solutions(file) and not _is_task(content):
        raise TaskFormatError(f"{file}: solutions without tasks; put {_challenges_of(file).name} beside it")
    _refuse_list(content, file)
    # An object with "train" or "test" is one task, one whose values have them is many. What is neither counts as one
    # task, whose check then says what is missing.
    holds_tasks = isinstance(content, dict) and any(_is_task(value) for value in content.values())
    if _is_task(content) or not holds_tasks:
        return {file.stem: content}, None
    return content, _read_solutions(file, content) if _is_challenges(file) else None


def _refuse_list(content: Any, file: Path) -> None:
    if isinstance(content, list) and any(isinstance(value, dict) and _is_task(value) for value in content):
        raise TaskFormatError(
            f"{file}: a list of {len(content)} tasks has no ids; write an object with an id for each, "
            '{"id": {"train": ..., "test": ...}, ...}, or a line for each in a .jsonl file'
        )


def _is_task(content: Any) -> bool:
    return is_pair_list(content) or (isinstance(content, dict) and ("train" in content or "test" in content))


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
    if outputs is None and _tests_have_outputs(task):
        return task
    if outputs is None:
        raise TaskFormatError(f"{file}: {task_id}: no solution, {len(tests)} needed; use two files of one release")
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


def _tests_have_outputs(task: Any) -> bool:
    tests = task.get("test") if isinstance(task, dict) else None
    return isinstance(tests, list) and all(isinstance(test, dict) and "output" in test for test in tests)
