"""What an operation is expected to make of a grid: what a replay then stores is only where the environment differs.

``page/expectation.js`` computes the same, number by number. The two must agree with each other; that they agree with
the environment saves space and nothing else, so rare operations are left out.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Bool, Int8

from jaxarc import constants as c

_MOVES: Final = {c.MOVE_UP: (-1, 0), c.MOVE_DOWN: (1, 0), c.MOVE_LEFT: (0, -1), c.MOVE_RIGHT: (0, 1)}
_TURNS: Final = {
    c.ROTATE_CLOCKWISE: lambda box: np.rot90(box, -1),
    c.ROTATE_COUNTERCLOCKWISE: np.rot90,
    c.FLIP_LEFT_RIGHT: np.fliplr,
    c.FLIP_UP_DOWN: np.flipud,
}
_ON_ALL: Final = {*_MOVES, *_TURNS, c.CLEAR}  # where nothing is selected
_WITHOUT_CELLS: Final = {c.COPY_INPUT, c.RESIZE, c.SUBMIT}


def acts_on_cells(operation: int) -> bool:
    """Whether the selected cells are what an operation changes or takes."""
    return operation not in _WITHOUT_CELLS


def selection_of(action: Sequence[int], selection_format: str, shape: tuple[int, int]) -> Bool[np.ndarray, "H W"]:
    """Return the cells of a canvas that an action selects; what lies outside it is left out."""
    selection = np.zeros((c.MAX_GRID_SIZE, c.MAX_GRID_SIZE), np.bool_)
    if selection_format == "bbox" and len(action) > 1:
        (top, bottom), (left, right) = sorted(action[1::2]), sorted(action[2::2])
        selection[top : bottom + 1, left : right + 1] = True
    else:
        selection[list(action[1::2]), list(action[2::2])] = True
    return selection[: shape[0], : shape[1]]


def expected_grid(
    before: Int8[np.ndarray, "H W"],
    first: Int8[np.ndarray, "H W"],
    operation: int,
    selection: Bool[np.ndarray, "H W"],
) -> Int8[np.ndarray, "H W"]:
    """Return the grid that an operation makes of one, if it does what it usually does.

    Args:
        before: the grid, -1 outside its active area.
        first: what the episode started from.
        operation: its number.
        selection: the cells selected.
    """
    if operation == c.COPY_INPUT:
        return first
    active = before != c.PADDING
    chosen = selection & active
    if operation in _ON_ALL and not chosen.any():
        chosen = active
    if operation < c.FLOOD_FILL:
        return np.where(chosen, np.int8(operation), before)
    if operation in (c.CUT, c.CLEAR):
        return np.where(chosen, np.int8(0), before)
    if operation in _MOVES:
        return _moved(before, chosen, *_MOVES[operation])
    if operation in _TURNS and chosen.any():
        return _turned(before, chosen, operation)
    return before


def expected_clipboard(
    before: Int8[np.ndarray, "H W"], operation: int, selection: Bool[np.ndarray, "H W"]
) -> Int8[np.ndarray, "h w"] | None:
    """Return the box of selected cells that copy and cut take, -1 between them; None if nothing is taken."""
    chosen = selection & (before != c.PADDING)
    if operation not in (c.COPY, c.CUT) or not chosen.any():
        return None
    return np.where(chosen, before, np.int8(c.PADDING))[_box_of(chosen)]


def _moved(before: np.ndarray, chosen: np.ndarray, down: int, right: int) -> np.ndarray:
    height, width = before.shape
    content = np.pad(np.where(chosen, before, np.int8(c.PADDING)), 1, constant_values=c.PADDING)
    come = content[1 - down : 1 - down + height, 1 - right : 1 - right + width]
    left_behind = np.where(chosen, np.int8(0), before)
    return np.where((come != c.PADDING) & (before != c.PADDING), come, left_behind)


def _turned(before: np.ndarray, chosen: np.ndarray, operation: int) -> np.ndarray:
    """Turn the box around the chosen cells about its upper left corner; what leaves the active area is lost."""
    box = _box_of(chosen)
    turned = _TURNS[operation](before[box])
    after = before.copy()
    after[box] = 0
    room = after[box[0].start : box[0].start + turned.shape[0], box[1].start : box[1].start + turned.shape[1]]
    room[...] = np.where(room != c.PADDING, turned[: room.shape[0], : room.shape[1]], room)
    return after


def _box_of(cells: np.ndarray) -> tuple[slice, slice]:
    rows, columns = np.flatnonzero(cells.any(axis=1)), np.flatnonzero(cells.any(axis=0))
    return slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
