"""Everything that is wrong with the task files of a folder, not just the first thing."""

from pathlib import Path
from typing import Final, NamedTuple

from jaxarc.datasets.json_reader import find_tasks, unique_tasks
from jaxarc.tasks.validation import TaskFormatError, find_problems_of_task

MOST_PROBLEMS_OF_A_FILE: Final = 100


class TaskProblem(NamedTuple):
    """One rule that one file breaks."""

    file: Path
    task_id: str  # "" where the file as a whole is wrong
    message: str  # what is wrong, where, and how to mend it


def find_problems(path: str | Path, null_color: int | None = None) -> list[TaskProblem]:
    """Check a task file, or every one below a folder, and list all that :func:`read_json` would refuse.

    Of one grid the first problem is listed, and of one file at most 100.

    Args:
        path: the file or folder.
        null_color: as for :func:`read_json`.

    Raises:
        FileNotFoundError: there is nothing at ``path``.
    """
    found: list[TaskProblem] = []
    counts: dict[Path, int] = {}

    def note(file: Path, task_id: str, message: str) -> None:
        counts[file] = counts.get(file, 0) + 1
        if counts[file] <= MOST_PROBLEMS_OF_A_FILE:
            found.append(TaskProblem(file, task_id, message))

    num_tasks = 0
    try:
        tasks = find_tasks(path, lambda file, error: note(file, "", str(error)))
        for task in unique_tasks(tasks, lambda task, error: note(task.file, task.task_id, str(error))):
            num_tasks += 1
            wrong = [str(task.error)] if task.error else find_problems_of_task(task.data, task.source, null_color)
            for message in wrong:
                note(task.file, task.task_id, message)
    except FileNotFoundError:
        raise
    except (TaskFormatError, OSError) as error:  # of the folder itself
        note(Path(path), "", str(error))
    for file, count in counts.items():
        if count > MOST_PROBLEMS_OF_A_FILE:
            found.append(TaskProblem(file, "", f"{file}: {count - MOST_PROBLEMS_OF_A_FILE} more problems"))
    if not found and not num_tasks:
        note(Path(path), "", f"{path}: holds no task; a file holds one task or an object from id to task")
    return found
