"""Kaggle's layout of ARC: the tasks in ``*_challenges.json``, the outputs of their tests in ``*_solutions.json``."""

from pathlib import Path
from typing import Any, Final

from jaxarc.datasets.json_text import read_json_text
from jaxarc.tasks.validation import TaskFormatError

_CHALLENGES: Final = "challenges.json"
_SOLUTIONS: Final = "solutions.json"


def is_challenges(file: Path) -> bool:
    """Tell by its name whether a file holds tasks whose test outputs are in another file."""
    return file.name == _CHALLENGES or file.name.endswith((f"_{_CHALLENGES}", f"-{_CHALLENGES}"))


def is_solutions(file: Path) -> bool:
    """Tell by its name whether a file holds the test outputs of another one."""
    return file.name == _SOLUTIONS or file.name.endswith((f"_{_SOLUTIONS}", f"-{_SOLUTIONS}"))


def solutions_of(challenges: Path) -> Path:
    """Return where the test outputs of a challenges file belong."""
    return challenges.with_name(challenges.name.removesuffix(_CHALLENGES) + _SOLUTIONS)


def challenges_of(solutions: Path) -> Path:
    """Return where the tasks of a solutions file belong."""
    return solutions.with_name(solutions.name.removesuffix(_SOLUTIONS) + _CHALLENGES)


def read_solutions(challenges: Path, tasks: dict[str, Any]) -> dict[str, Any] | None:
    """Read the solutions beside a challenges file; ``None`` where there are none and every test has its output.

    Raises:
        TaskFormatError: the file is missing, is no mapping from task id to outputs, or solves other tasks.
    """
    file = solutions_of(challenges)
    if not file.exists():
        if all(_tests_have_outputs(task) for task in tasks.values()):
            return None
        raise TaskFormatError(
            f"{challenges}: the outputs of its tests are in another file; put {file.name} beside it, or leave this "
            "file out: a task without answers cannot be played"
        )
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


def with_solutions(task: Any, task_id: str, solutions: dict[str, Any], file: Path) -> Any:
    """Return a task with the outputs of its tests put in; what is no task comes back as it is.

    Raises:
        TaskFormatError: there is not one solution for every test input, or it contradicts an output that is there.
    """
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
