"""What a well-formed ARC task is: every rule, and a message that says where it is broken and how to mend it."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from jaxarc.constants import MAX_GRID_SIZE, MAX_TRACKED_PAIRS, NUM_COLORS
from jaxarc.errors import JaxarcError

Pair: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Input and output, each ``int8[h, w]`` with colors 0..9 and sides 1..30."""


class TaskFormatError(JaxarcError, ValueError):
    """A task, pair or grid breaks a rule of the ARC format."""


def check_task(data: Any, source: str, null_color: int | None = None) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """Turn one parsed JSON object ``{"train": [...], "test": [...]}`` into its pairs.

    Other keys beside ``train`` and ``test`` are allowed. Rows, columns and pairs are counted from 0 in messages.

    Args:
        data: the object.
        source: where it comes from, the start of every message.
        null_color: the color, 0..9, that a ``null`` cell stands for; by default such a cell is an error.

    Returns:
        The demonstration pairs and the test pairs.

    Raises:
        TaskFormatError: any rule of the format is broken; the message starts with ``source``.
    """
    return _check_parts(data, source, null_color, lambda check, *arguments: check(*arguments))


def find_problems_of_task(data: Any, source: str, null_color: int | None = None) -> list[str]:
    """List what :func:`check_task` would refuse, part by part; of one grid the first problem only."""
    found: list[str] = []

    def attempt(check: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return check(*arguments)
        except TaskFormatError as error:
            found.append(str(error))

    _check_parts(data, source, null_color, attempt)
    return found


def check_pairs(pairs: Sequence[tuple[Any, Any]], source: str, split: str) -> tuple[Pair, ...]:
    """Check ``(input, output)`` tuples of arrays or nested lists and cast their grids to int8.

    Raises:
        TaskFormatError: no pair or too many, something other than two grids, or a grid that breaks a rule.
    """
    if not isinstance(pairs, list | tuple):
        raise TaskFormatError(
            f"{source}: {split!r} must be a list of pairs, got {_spell(pairs)}; write [(input, output), ...]"
        )
    _check_count(len(pairs), source, split)
    return tuple(_check_pair(pair, f"{source}: {split} pair {index}") for index, pair in enumerate(pairs))


def check_grid(grid: Any, where: str, null_color: int | None = None) -> np.ndarray:
    """Check one grid, an integer array or a list of rows, and return it as a read-only ``int8[h, w]``.

    Raises:
        TaskFormatError: the grid is empty, ragged or larger than 30x30, or a cell is not a whole number in 0..9.
    """
    is_listed = isinstance(grid, list | tuple)
    checked = _check_rows(grid, where, null_color) if is_listed else _check_array(np.asarray(grid), where)
    checked.setflags(write=False)
    return checked


def _check_parts(data: Any, source: str, null_color: int | None, attempt: Callable[..., Any]) -> Any:
    """Check each part of a task through ``attempt``, which either raises or notes the error and returns ``None``."""
    if attempt(_check_object, data, source) is None:
        return None
    return tuple(_check_split(data, source, split, null_color, attempt) for split in ("train", "test"))


def _check_object(data: Any, source: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise TaskFormatError(
            f"{source}: a task is a JSON object with the keys 'train' and 'test', got {_spell(data)}; "
            "write one task per file"
        )
    return data


def _check_split(
    data: dict[str, Any], source: str, split: str, null_color: int | None, attempt: Callable[..., Any]
) -> tuple[Any, ...]:
    pairs = []
    for index, pair in enumerate(attempt(_pairs_of, data, source, split) or ()):
        where = f"{source}: {split} pair {index}"
        sides = attempt(_sides_of, pair, where) or {}
        pairs.append(
            tuple(attempt(_check_json_grid, grid, f"{where} {side}", null_color) for side, grid in sides.items())
        )
    return tuple(pairs)


def _pairs_of(data: dict[str, Any], source: str, split: str) -> list[Any]:
    if split not in data:
        found = ", ".join(_spell_key(key) for key in list(data)[:5]) or "none"
        raise TaskFormatError(
            f"{source}: the key {split!r} is missing; a task needs 'train' and 'test', found keys: {found}"
        )
    pairs = data[split]
    if not isinstance(pairs, list):
        raise TaskFormatError(
            f"{source}: {split!r} must be a list of pairs, got {_spell(pairs)}; write [{{'input': ..., 'output': ...}}]"
        )
    _check_count(len(pairs), source, split)
    return pairs


def _sides_of(pair: Any, where: str) -> dict[str, Any]:
    if not isinstance(pair, dict):
        raise TaskFormatError(
            f"{where}: a pair is an object with the keys 'input' and 'output', got {_spell(pair)}; name both grids"
        )
    for side in ("input", "output"):
        if side not in pair:
            raise TaskFormatError(
                f"{where}: the key {side!r} is missing; every pair, test pairs too, needs 'input' and 'output', "
                f"found keys: {', '.join(map(_spell_key, list(pair)[:5])) or 'none'}; add the grid"
            )
    return {side: pair[side] for side in ("input", "output")}


def _check_json_grid(grid: Any, where: str, null_color: int | None) -> np.ndarray:
    if not isinstance(grid, list):
        raise TaskFormatError(f"{where}: a grid is a list of rows, got {_spell(grid)}; write [[0, 1], [2, 3]]")
    return check_grid(grid, where, null_color)


def _check_pair(pair: Any, where: str) -> Pair:
    if not isinstance(pair, list | tuple) or len(pair) != 2 or pair[0] is None or pair[1] is None:
        raise TaskFormatError(f"{where}: a pair is (input, output), both grids, got {_spell(pair)}; give both")
    return check_grid(pair[0], f"{where} input"), check_grid(pair[1], f"{where} output")


def _check_count(count: int, source: str, split: str) -> None:
    if count == 0:
        raise TaskFormatError(f"{source}: {split!r} has no pairs; a task needs at least one {split} pair, add one")
    if count > MAX_TRACKED_PAIRS:
        raise TaskFormatError(
            f"{source}: {split!r} has {count} pairs, the limit is {MAX_TRACKED_PAIRS}; split the task into several"
        )


def _check_rows(rows: Sequence[Any], where: str, null_color: int | None) -> np.ndarray:
    if not rows:
        raise TaskFormatError(f"{where}: the grid has no rows; a side is 1..{MAX_GRID_SIZE}, add a row")
    for index, row in enumerate(rows):
        if not isinstance(row, list | tuple):
            raise TaskFormatError(f"{where}, row {index}: a row is a list of colors, got {_spell(row)}; write [0, 1]")
        if not row:
            raise TaskFormatError(f"{where}, row {index}: the row is empty; a side is 1..{MAX_GRID_SIZE}, add cells")
        if len(row) != len(rows[0]):
            raise TaskFormatError(
                f"{where}, row {index}: the row has {len(row)} cells and row 0 has {len(rows[0])}; "
                "all rows of a grid have the same length, fill or cut the row"
            )
    _check_size(len(rows), len(rows[0]), where)
    if null_color is not None:
        rows = [[null_color if cell is None else cell for cell in row] for row in rows]
    for index, row in enumerate(rows):
        if set(map(type, row)) != {int} or min(row) < 0 or max(row) >= NUM_COLORS:
            column = next(i for i, cell in enumerate(row) if type(cell) is not int or not 0 <= cell < NUM_COLORS)
            _refuse_cell(row[column], index, column, where)
    return np.array(rows, np.int8)


def _check_array(array: np.ndarray, where: str) -> np.ndarray:
    if not np.issubdtype(array.dtype, np.integer):
        raise TaskFormatError(
            f"{where}: cells are whole numbers 0..{NUM_COLORS - 1}, got dtype {array.dtype}; cast the array to int8"
        )
    if array.ndim != 2 or array.size == 0:
        raise TaskFormatError(
            f"{where}: a grid has two sides of 1..{MAX_GRID_SIZE}, got shape {array.shape}; pass (rows, columns)"
        )
    _check_size(array.shape[0], array.shape[1], where)
    if array.min() < 0 or array.max() >= NUM_COLORS:
        row, column = np.argwhere((array < 0) | (array >= NUM_COLORS))[0].tolist()
        _refuse_cell(int(array[row, column]), row, column, where)
    return array.astype(np.int8)


def _check_size(height: int, width: int, where: str) -> None:
    if height > MAX_GRID_SIZE or width > MAX_GRID_SIZE:
        raise TaskFormatError(
            f"{where}: the grid is {height}x{width}, sides are 1..{MAX_GRID_SIZE}; crop the grid or leave the task out"
        )


def _refuse_cell(cell: Any, row: int, column: int, where: str) -> None:
    hint = "correct the cell"
    if cell is None:
        hint = (
            "Mini-ARC writes null for color 0: bring that set with 'jaxarc tasks import PATH --name mini-arc', read "
            "other such files with read_json(path, null_color=0), or correct the cell"
        )
    elif type(cell) is int and cell == -1:
        hint = "crop the padding"
    raise TaskFormatError(
        f"{where}, row {row}, column {column}: got {_spell(cell)}; cells are whole numbers 0..{NUM_COLORS - 1}, {hint}"
    )


def _spell_key(key: str) -> str:
    return repr(key) if len(key) <= 40 else f"{key[:37]!r}..."


def _spell(value: Any) -> str:
    """Name a value and its JSON type, shortened, so that a message stays one line."""
    if value is None:
        return "null (None)"
    if isinstance(value, dict | list | tuple):
        return f"a {type(value).__name__} of {len(value)}"
    if type(value) is int and abs(value) >= 10**12:
        return "a whole number of more than 12 digits"
    text = repr(value)
    return f"{text if len(text) <= 40 else text[:37] + '...'} ({type(value).__name__})"
