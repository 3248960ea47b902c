"""Editing operations on one canvas, in plain NumPy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

PADDING = -1  # outside the active area, and where the clipboard holds nothing
NUM_OPERATIONS = 42

COPY, PASTE, CUT, CLEAR, COPY_INPUT, RESIZE, SUBMIT = 28, 29, 30, 31, 32, 33, 34
RESET_PAIR = 39
MOVES = {20: (-1, 0), 21: (1, 0), 22: (0, -1), 23: (0, 1)}  # (row step, column step)
QUARTER_TURNS = {24: -1, 25: 1}  # counter-clockwise quarter turns, as np.rot90 counts them
FLIP_AXES = {26: 1, 27: 0}  # 26 mirrors the columns, 27 the rows


@dataclass(frozen=True)
class Canvas:
    """What an agent edits: a grid with its active area, the clipboard and the selection; never changed in place."""

    grid: np.ndarray  # int8[H, W], 0..9 in the active area, -1 outside
    height: int  # 1 .. H
    width: int  # 1 .. W
    clipboard: np.ndarray  # int8[H, W], 0..9 where a cell is held, -1 elsewhere; content at the origin
    selection: np.ndarray  # bool[H, W], inside the active area


def apply_operation(canvas: Canvas, operation: int, selection: np.ndarray, pair_input: np.ndarray) -> Canvas:
    """Returns the canvas after editing operation 0..34 or 39.

    Args:
        canvas: the canvas before.
        operation: 0..34 or 39; the other ids change the pair and belong to the episode.
        selection: bool[H, W], the raw selection of the action.
        pair_input: int8[H, W], the current pair's input, -1 outside its active area.

    Raises:
        ValueError: for any other operation id.
    """
    if operation == RESIZE:
        return resize(canvas, selection)
    if operation == COPY_INPUT:
        return copy_input(canvas, selection, pair_input)
    if operation == RESET_PAIR:
        return start_canvas(pair_input)

    selected = selection & active_area(canvas)
    if 0 <= operation <= 9:
        return fill(canvas, selected, operation)
    if 10 <= operation <= 19:
        return flood_fill(canvas, selected, operation - 10)
    if operation in MOVES:
        return move(canvas, selected, *MOVES[operation])
    if operation in QUARTER_TURNS:
        return rotate(canvas, selected, QUARTER_TURNS[operation])
    if operation in FLIP_AXES:
        return flip(canvas, selected, FLIP_AXES[operation])
    if operation == COPY:
        return copy(canvas, selected)
    if operation == PASTE:
        return paste(canvas, selected)
    if operation == CUT:
        return cut(canvas, selected)
    if operation == CLEAR:
        return clear(canvas, selected)
    if operation == SUBMIT:
        return replace(canvas, selection=selected)
    raise ValueError(f"operation {operation} is not an editing operation; allowed: 0..34 and 39")


def similarity(grid: np.ndarray, target: np.ndarray) -> tuple[int, int]:
    """Returns (matching cells, cells in the union of the two active areas) of two int8[H, W] grids padded with -1."""
    height, width = active_size(grid)
    target_height, target_width = active_size(target)
    matches = int(np.count_nonzero((grid == target) & (target >= 0)))
    return matches, max(height, target_height) * max(width, target_width)


def start_canvas(pair_input: np.ndarray) -> Canvas:
    """Returns the canvas that holds a padded input, with nothing on the clipboard and nothing selected."""
    height, width = active_size(pair_input)
    return Canvas(
        grid=pair_input.copy(),
        height=height,
        width=width,
        clipboard=np.full(pair_input.shape, PADDING, np.int8),
        selection=np.zeros(pair_input.shape, bool),
    )


def pad(grid: np.ndarray, max_height: int, max_width: int) -> np.ndarray:
    """Returns int8[max_height, max_width]: the active cells of a grid, padded or not, with -1 around them."""
    if grid.shape == (max_height, max_width) and grid.dtype == np.int8:
        return grid
    height, width = active_size(grid)
    padded = np.full((max_height, max_width), PADDING, np.int8)
    padded[:height, :width] = grid[:height, :width]
    return padded


def cropped(grid: np.ndarray) -> np.ndarray:
    """Returns the active cells of a padded grid."""
    height, width = active_size(grid)
    return grid[:height, :width]


def active_size(grid: np.ndarray) -> tuple[int, int]:
    """Returns (height, width) of a grid's top-left active area."""
    return int(np.count_nonzero(grid[:, 0] >= 0)), int(np.count_nonzero(grid[0, :] >= 0))


def active_area(canvas: Canvas) -> np.ndarray:
    """Returns bool[H, W], True in the active area."""
    area = np.zeros(canvas.grid.shape, bool)
    area[: canvas.height, : canvas.width] = True
    return area


def fill(canvas: Canvas, selected: np.ndarray, color: int) -> Canvas:
    """Paints every selected cell."""
    if not selected.any():
        return canvas
    return replace(canvas, grid=_painted(canvas.grid, selected, color), selection=selected)


def flood_fill(canvas: Canvas, selected: np.ndarray, color: int) -> Canvas:
    """Paints the 4-connected component of equal color around the only selected cell."""
    if np.count_nonzero(selected) != 1:
        return canvas
    row, column = divmod(int(selected.argmax()), selected.shape[1])
    component = _component(canvas, row, column)
    return replace(canvas, grid=_painted(canvas.grid, component, color), selection=selected)


def move(canvas: Canvas, selected: np.ndarray, row_step: int, column_step: int) -> Canvas:
    """Moves the selected cells' content by one cell; an empty selection moves the whole active area."""
    moving = selected if selected.any() else active_area(canvas)
    grid = _painted(canvas.grid, moving, 0)
    selection = np.zeros_like(selected)
    for row, column in np.argwhere(moving).tolist():
        to_row, to_column = row + row_step, column + column_step
        if 0 <= to_row < canvas.height and 0 <= to_column < canvas.width:
            grid[to_row, to_column] = canvas.grid[row, column]
            selection[to_row, to_column] = selected[row, column]
    return replace(canvas, grid=grid, selection=selection)


def rotate(canvas: Canvas, selected: np.ndarray, quarter_turns: int) -> Canvas:
    """Turns the content of the box (empty: the whole active area) in place, anchored at the box's top-left."""
    top, left, bottom, right = _box_or_whole(canvas, selected)
    turned = np.rot90(canvas.grid[top:bottom, left:right], quarter_turns)
    grid = canvas.grid.copy()
    grid[top:bottom, left:right] = 0
    target = grid[top : canvas.height, left : canvas.width]  # a view: what lies outside is lost
    kept = turned[: target.shape[0], : target.shape[1]]
    target[: kept.shape[0], : kept.shape[1]] = kept
    return replace(canvas, grid=grid, selection=selected)


def flip(canvas: Canvas, selected: np.ndarray, axis: int) -> Canvas:
    """Mirrors the content of the box (empty: the whole active area)."""
    top, left, bottom, right = _box_or_whole(canvas, selected)
    grid = canvas.grid.copy()
    grid[top:bottom, left:right] = np.flip(canvas.grid[top:bottom, left:right], axis)
    return replace(canvas, grid=grid, selection=selected)


def copy(canvas: Canvas, selected: np.ndarray) -> Canvas:
    """Puts the selected cells of the box on the clipboard, shifted to the origin."""
    if not selected.any():
        return canvas
    top, left, bottom, right = _box(selected)
    content = np.where(selected, canvas.grid, PADDING)[top:bottom, left:right]
    clipboard = np.full(canvas.grid.shape, PADDING, np.int8)
    clipboard[: bottom - top, : right - left] = content
    return replace(canvas, clipboard=clipboard, selection=selected)


def paste(canvas: Canvas, selected: np.ndarray) -> Canvas:
    """Writes the held cells with the clipboard's origin at the top-left of the selection's box."""
    if not selected.any() or not (canvas.clipboard >= 0).any():
        return canvas
    top, left, _, _ = _box(selected)
    grid = canvas.grid.copy()
    target = grid[top : canvas.height, left : canvas.width]  # a view, clipped to the active area
    content = canvas.clipboard[: target.shape[0], : target.shape[1]]
    target[content >= 0] = content[content >= 0]
    return replace(canvas, grid=grid, selection=selected)


def cut(canvas: Canvas, selected: np.ndarray) -> Canvas:
    """Copies, then paints the selected cells 0."""
    return fill(copy(canvas, selected), selected, 0)


def clear(canvas: Canvas, selected: np.ndarray) -> Canvas:
    """Paints the selected cells (empty: the whole active area) 0."""
    cleared = selected if selected.any() else active_area(canvas)
    return replace(canvas, grid=_painted(canvas.grid, cleared, 0), selection=selected)


def copy_input(canvas: Canvas, selection: np.ndarray, pair_input: np.ndarray) -> Canvas:
    """Makes grid and active area those of the pair's input; the clipboard stays, the selection is clipped to both."""
    height, width = active_size(pair_input)
    copied = replace(canvas, grid=pair_input.copy(), height=height, width=width)
    return replace(copied, selection=selection & active_area(canvas) & active_area(copied))


def resize(canvas: Canvas, selection: np.ndarray) -> Canvas:
    """Makes the active area end at the bottom-right corner of the raw selection's box."""
    if not selection.any():
        return canvas
    _, _, height, width = _box(selection)
    kept_height, kept_width = min(height, canvas.height), min(width, canvas.width)
    grid = np.full(canvas.grid.shape, PADDING, np.int8)
    grid[:height, :width] = 0
    grid[:kept_height, :kept_width] = canvas.grid[:kept_height, :kept_width]
    return replace(canvas, grid=grid, height=height, width=width, selection=selection.copy())


def _painted(grid: np.ndarray, cells: np.ndarray, color: int) -> np.ndarray:
    painted = grid.copy()
    painted[cells] = color
    return painted


def _box(selected: np.ndarray) -> tuple[int, int, int, int]:
    """Returns (top, left, bottom, right) of a selection that is not empty, as half-open ranges."""
    rows = np.nonzero(selected.any(axis=1))[0]
    columns = np.nonzero(selected.any(axis=0))[0]
    return int(rows[0]), int(columns[0]), int(rows[-1]) + 1, int(columns[-1]) + 1


def _box_or_whole(canvas: Canvas, selected: np.ndarray) -> tuple[int, int, int, int]:
    return _box(selected) if selected.any() else (0, 0, canvas.height, canvas.width)


def _component(canvas: Canvas, row: int, column: int) -> np.ndarray:
    """Returns bool[H, W]: the cells of one color that 4-connected steps inside the active area reach from one cell."""
    colors = canvas.grid.tolist()
    color = colors[row][column]
    reached = {(row, column)}
    waiting = [(row, column)]
    while waiting:
        r, c = waiting.pop()
        for cell in ((r - 1, c), (r + 1, c), (r, c - 1), (r, c + 1)):
            inside = 0 <= cell[0] < canvas.height and 0 <= cell[1] < canvas.width
            if inside and cell not in reached and colors[cell[0]][cell[1]] == color:
                reached.add(cell)
                waiting.append(cell)
    component = np.zeros(canvas.grid.shape, bool)
    component[tuple(np.array(list(reached)).T)] = True
    return component
