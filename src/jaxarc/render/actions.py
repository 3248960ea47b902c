"""Actions as numbers, the way traces hold them: which cells one selects, and how pages and pictures name it."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Bool

from jaxarc.constants import COPY_INPUT, FLOOD_FILL, MAX_GRID_SIZE, MOVE_UP, RESIZE, SUBMIT
from jaxarc.envs.operations import get_operation_name
from jaxarc.render.palette import COLOR_NAMES

_WITHOUT_SELECTION: Final = {COPY_INPUT, RESIZE, SUBMIT}  # operations that do not act on the selected cells


def acts_on_cells(operation: int) -> bool:
    """Whether an operation changes or takes the selected cells."""
    return operation not in _WITHOUT_SELECTION


def selection_of(action: Sequence[int], selection_format: str, shape: tuple[int, int]) -> Bool[np.ndarray, "H W"]:
    """Return the cells of a canvas that an action selects; cells outside the canvas are left out."""
    # Drawn on the largest canvas and then cut: cells outside the shape drop out without a test for each.
    selection = np.zeros((MAX_GRID_SIZE, MAX_GRID_SIZE), np.bool_)
    if selection_format == "bbox" and len(action) > 1:
        top, bottom = sorted(action[1::2])
        left, right = sorted(action[2::2])
        selection[top : bottom + 1, left : right + 1] = True
    else:
        selection[list(action[1::2]), list(action[2::2])] = True
    return selection[: shape[0], : shape[1]]


def describe_operation(operation: int) -> str:
    """Name an operation with the name of its color: ``flood fill red``."""
    if operation < MOVE_UP:
        verb = "fill" if operation < FLOOD_FILL else "flood fill"
        return f"{verb} {COLOR_NAMES[operation % FLOOD_FILL]}"
    return get_operation_name(operation)


def describe_action(action: Sequence[int], selection_format: str) -> str:
    """Name an action and its cells, counted from 0 as in the API: ``fill red, row 1, columns 3–4``.

    Of a mask that is no full box the number of cells is named, and the box around them.
    """
    name = describe_operation(action[0])
    numbers = action[1:]
    if action[0] in (SUBMIT, COPY_INPUT):
        return name
    if action[0] == RESIZE and numbers:
        return f"resize to {max(numbers[::2]) + 1} × {max(numbers[1::2]) + 1}"
    if not numbers:
        return f"{name}, whole grid"
    (top, bottom), (left, right) = ((min(side), max(side)) for side in (numbers[::2], numbers[1::2]))
    area = f"{_span('row', top, bottom)}, {_span('column', left, right)}"
    count = len(numbers) // 2
    is_box = selection_format == "bbox" or count == (bottom - top + 1) * (right - left + 1)
    return f"{name}, {area}" if is_box else f"{name}, {count} cells in {area}"


def _span(word: str, first: int, last: int) -> str:
    return f"{word} {first}" if first == last else f"{word}s {first}–{last}"
