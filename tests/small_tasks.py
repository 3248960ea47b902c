"""Small tasks that many tests play, learn or read: each has one pair, which is its demonstration and its test."""

import json
from pathlib import Path
from typing import Any, Final

import numpy as np

from jaxarc.datasets import TaskSet
from jaxarc.tasks import RawTask

PAIR: Final = {"input": [[1]], "output": [[2]]}
TASK: Final = {"train": [PAIR], "test": [PAIR]}
"""A task as a file has it."""


def tasks_of(*pairs: tuple[Any, Any], name: str = "small") -> TaskSet:
    """Return a set of the tasks ``task-0``, ``task-1``, ... of these pairs of input and output."""
    return TaskSet(name, tuple(RawTask(f"task-{i}", (pair,), (pair,)) for i, pair in enumerate(pairs)))


def grid_of(rows: str) -> np.ndarray:
    """Return the grid whose rows are written as digits: ``12 34``."""
    return np.array([[int(cell) for cell in row] for row in rows.split()], np.int8)


def write_json(path: Path, data: Any = TASK) -> Path:
    """Write data, or text that is no JSON, into a file whose folders need not be there; return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data))
    return path
