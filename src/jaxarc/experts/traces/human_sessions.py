"""What people did in the O2ARC web editor: files of Mini-ARC traces and of ARCTraj, read into steps.

A Mini-ARC trace is a JSON object with ``task_id`` and ``action_sequence``, the text of another object with a list of
the same name, whose entries hold an ``action`` with its ``tool`` and the ``grid`` after it. ARCTraj is a CSV file with
``taskId`` and ``actionSequence``, the text of a list whose entries hold an ``operation`` and the ``grid`` before it.
"""

import csv
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from jaxarc import constants as c
from jaxarc.experts.expert import Action

_DIRECTIONS: Final = {
    ("Move", "up"): c.MOVE_UP,
    ("Move", "down"): c.MOVE_DOWN,
    ("Move", "left"): c.MOVE_LEFT,
    ("Move", "right"): c.MOVE_RIGHT,
    ("Rotate", "clockwise"): c.ROTATE_CLOCKWISE,
    ("Rotate", "counterclockwise"): c.ROTATE_COUNTERCLOCKWISE,
    ("Flip", "horizontal"): c.FLIP_LEFT_RIGHT,
    ("Flip", "vertical"): c.FLIP_UP_DOWN,
}
_TRANSLATIONS: Final = {(-1, 0): c.MOVE_UP, (1, 0): c.MOVE_DOWN, (0, -1): c.MOVE_LEFT, (0, 1): c.MOVE_RIGHT}
_TURNING_TOOLS: Final = {"rotate": c.ROTATE_CLOCKWISE, "reflectX": c.FLIP_UP_DOWN, "reflectY": c.FLIP_LEFT_RIGHT}


class HumanStep(NamedTuple):
    """One step of a person."""

    guess: Action | None  # the mask action that it should be, None where there is no such
    after: np.ndarray  # int8[h, w], the grid that it left


class HumanSession(NamedTuple):
    """What a person did on one task, or why it cannot be read."""

    name: str  # file, and row of a table
    task_id: str
    start: np.ndarray | None  # int8[h, w], the grid before the first step; None where it cannot be read
    steps: list[HumanStep]
    problem: str = ""


class _UnreadableError(ValueError):
    """Says what is wrong with a session."""


def read_human_sessions(path: str | Path) -> Iterator[HumanSession]:
    """Read a CSV file of ARCTraj, a JSON file of a Mini-ARC trace, or a folder of either.

    Raises:
        OSError: a file cannot be read.
    """
    source = Path(path)
    files = sorted([*source.glob("*.json"), *source.glob("*.csv")]) if source.is_dir() else [source]
    for file in files:
        if file.suffix == ".csv":
            yield from _read_table(file)
        else:
            yield _session(file.name, file.read_text(encoding="utf-8", errors="replace"), _mini_arc)


def _read_table(file: Path) -> Iterator[HumanSession]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a session is a field of up to some megabytes
    with file.open(encoding="utf-8", errors="replace", newline="") as lines:
        for number, row in enumerate(csv.DictReader(lines), start=1):
            yield _session(f"{file.name}, row {number}", row, _arctraj)


def _session(name: str, content: Any, read: Any) -> HumanSession:
    try:
        task_id, start, steps = read(content)
    except (_UnreadableError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        missing = f"no field {error}" if isinstance(error, KeyError) else str(error)
        return HumanSession(name, "", None, [], " ".join(missing.split()) or "not a session")
    return HumanSession(name, task_id, start, steps)


def _mini_arc(text: str) -> tuple[str, np.ndarray, list[HumanStep]]:
    record = json.loads(text)
    entries = json.loads(record["action_sequence"])["action_sequence"]
    if not entries or entries[0]["action"]["tool"] != "start":
        raise _UnreadableError("it does not begin with the tool 'start'")
    steps = [HumanStep(_guess_of_tool(entry["action"]), _grid(entry["grid"])) for entry in entries[1:]]
    return str(record["task_id"]), _grid(entries[0]["grid"]), steps


def _arctraj(row: Mapping[str, str]) -> tuple[str, np.ndarray, list[HumanStep]]:
    entries = json.loads(row["actionSequence"])
    if not isinstance(entries, list) or not entries:
        raise _UnreadableError("its action sequence is empty")
    grids = [_grid(entry["grid"]) for entry in entries]
    steps = [
        HumanStep(_guess_of_operation(entry, after), after)
        for entry, after in zip(entries, [*grids[1:], grids[-1]], strict=True)
    ]
    return str(row["taskId"]), grids[0], steps


def _guess_of_tool(action: Mapping[str, Any]) -> Action | None:
    tool = action["tool"]
    cells = [(int(cell["row"]), int(cell["col"])) for cell in action.get("selected_cells", [])]
    if tool == "copyFromInput":
        return (c.COPY_INPUT,)
    if tool in ("edit", "floodfill") and {"symbol", "row", "col"} <= set(action):
        first = c.FILL if tool == "edit" else c.FLOOD_FILL
        return _mask(first + int(action["symbol"]), [(int(action["row"]), int(action["col"]))])
    if tool == "translate":
        moved = int(action["row_change"]), int(action["col_change"])
        return _mask(_TRANSLATIONS[moved], cells) if moved in _TRANSLATIONS and cells else None
    return _mask(_TURNING_TOOLS[tool], cells) if tool in _TURNING_TOOLS and cells else None


def _guess_of_operation(entry: Mapping[str, Any], after: np.ndarray) -> Action | None:
    operation = entry["operation"]
    cells = [(int(cell["y"]), int(cell["x"])) for cell in entry.get("object") or []]
    if operation == "Paint" and cells:
        return _mask(c.FILL + int(entry["color"]), cells)
    if operation == "ResizeGrid":
        return (c.RESIZE, after.shape[0] - 1, after.shape[1] - 1)
    if operation == "CopyFromInput":
        return (c.COPY_INPUT,)
    code = _DIRECTIONS.get((operation, entry.get("direction", "")))
    return _mask(code, cells) if code is not None and cells else None


def _mask(operation: int, cells: list[tuple[int, int]]) -> Action:
    return (operation, *(number for cell in cells for number in cell))


def _grid(rows: Any) -> np.ndarray:
    grid = np.array([[int(cell) for cell in row] for row in rows], np.int64)
    if grid.ndim != 2 or not (1 <= grid.shape[0] <= c.MAX_GRID_SIZE and 1 <= grid.shape[1] <= c.MAX_GRID_SIZE):
        raise _UnreadableError(f"a grid has sides 1..{c.MAX_GRID_SIZE}, got shape {grid.shape}")
    if grid.min() < 0 or grid.max() >= c.NUM_COLORS:
        raise _UnreadableError(f"colors are 0..{c.NUM_COLORS - 1}, got {grid.min()}..{grid.max()}")
    return grid.astype(np.int8)
