"""ARC tasks from JSON files of one's own: ``{"train": [{"input": ..., "output": ...}], "test": [...]}``."""

import json
from pathlib import Path

from jaxarc.tasks.raw_task import RawTask
from jaxarc.tasks.task_set import TaskSet
from jaxarc.tasks.validation import TaskFormatError, check_task


def read_json(path: str | Path) -> TaskSet:
    """Read one task file, or every ``*.json`` below a folder in the order of their paths.

    A task's id is its file name without ``.json``. Other files, and files and folders whose name starts with a dot, are
    left out.

    Raises:
        FileNotFoundError: there is nothing at ``path``.
        TaskFormatError: a file is not an ARC task, two files give the same id, or the folder has no JSON file.
    """
    place = Path(path)
    if not place.exists():
        raise FileNotFoundError(f"no file or folder {place}; give the path of a task file or of a folder of them")
    if not place.is_dir():
        return TaskSet(str(path), (_read_task(place),))
    files = _task_files(place)
    if not files:
        raise TaskFormatError(f"folder {place} has no *.json file; put task files into it or below it")
    _check_unique(files)
    return TaskSet(str(path), tuple(_read_task(file) for file in files))


def _task_files(folder: Path) -> list[Path]:
    found = [file.relative_to(folder) for file in folder.rglob("*.json")]
    shown = sorted(file for file in found if not any(part.startswith(".") for part in file.parts))
    return [folder / file for file in shown if (folder / file).is_file()]


def _check_unique(files: list[Path]) -> None:
    first: dict[str, Path] = {}
    for file in files:
        other = first.setdefault(file.stem, file)
        if other is not file:
            raise TaskFormatError(
                f"two files give the task id {file.stem!r}: {other} and {file}; the id is the file name, rename one "
                "or read the folders one by one"
            )


def _read_task(file: Path) -> RawTask:
    return RawTask(file.stem, *check_task(_parse(file), str(file)))


def _parse(file: Path) -> object:
    try:
        return json.loads(file.read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise TaskFormatError(f"{file}: not UTF-8 text (byte {error.start}); save the file as UTF-8") from error
    except json.JSONDecodeError as error:
        raise TaskFormatError(
            f"{file}: not JSON at line {error.lineno}, column {error.colno}: {error.msg}; is the file complete?"
        ) from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; lists nested thousands deep
        raise TaskFormatError(f"{file}: cannot be an ARC task ({error}); grids are lists of rows of 0..9") from error
