"""The rules of editing in plain NumPy, for experts on the host: play their actions and check the grid they leave.

The rules are those of :mod:`jaxarc.envs` for a legal action on one canvas; a test plays random actions on both.
"""

from collections.abc import Callable, Container, Sequence
from typing import Final, TypeAlias

import numpy as np
from jaxtyping import Bool, Int8

from jaxarc import constants as c
from jaxarc.experts.bitboards import pack_cells, spread, unpack_cells
from jaxarc.experts.expert import Action, ActionFormat, InvalidActionError, NotSolvedError, Pair

Grid: TypeAlias = Int8[np.ndarray, "h w"]
Cells: TypeAlias = Bool[np.ndarray, "h w"]
Bounds: TypeAlias = tuple[int, int, int, int]
"""Top row, left column, bottom row and right column of a box, all inclusive."""

FULL_CANVAS: Final = (c.MAX_GRID_SIZE, c.MAX_GRID_SIZE)
TURNS: Final[dict[int, Callable[[Grid], Grid]]] = {
    c.ROTATE_CLOCKWISE: lambda grid: np.rot90(grid, -1),
    c.ROTATE_COUNTERCLOCKWISE: np.rot90,
    c.FLIP_LEFT_RIGHT: np.fliplr,
    c.FLIP_UP_DOWN: np.flipud,
}
"""Rotations and flips as functions of the content of a box."""
STEPS: Final = {c.MOVE_UP: (-1, 0), c.MOVE_DOWN: (1, 0), c.MOVE_LEFT: (0, -1), c.MOVE_RIGHT: (0, 1)}
"""Rows down and columns right of each move."""
EDITS: Final = range(c.NUM_GRID_OPERATIONS)
"""The operations on a grid, the submit included; the others switch pairs."""
_COORDINATES: Final = {"point": 2, "bbox": 4}
_NUMBERS: Final = {
    "point": "operation, row, column",
    "bbox": "operation, r1, c1, r2, c2",
    "mask": "operation, then row and column of each cell",
}


class HostCanvas:
    """A grid that actions edit in place, by the rules of :mod:`jaxarc.envs`."""

    grid: Grid  # the active area alone, without padding; 0 .. 9
    clipboard: Grid | None  # content of a box, -1 where its cells were not selected
    is_submitted: bool

    def __init__(self, start: Grid, canvas_shape: tuple[int, int] = FULL_CANVAS):
        """Begin with a pair's input.

        Args:
            start: the input.
            canvas_shape: rows and columns that a resize cannot exceed.
        """
        self.grid = np.array(start, np.int8)
        self.clipboard = None
        self.is_submitted = False
        self._input = self.grid.copy()
        self._canvas_shape = canvas_shape

    def apply(self, action: Action, action_format: ActionFormat) -> None:
        """Play one action, which :func:`check_action` would accept."""
        operation = int(action[0])
        numbers = action[1:]
        if operation == c.RESIZE:
            self._resize(numbers)
        elif operation == c.SUBMIT:
            self.is_submitted = True
        elif operation == c.COPY_INPUT:
            self.grid = self._input.copy()
        else:
            self._edit(operation, _selected(numbers, action_format, self.grid.shape))

    def _resize(self, numbers: Sequence[int]) -> None:
        if not numbers:
            return
        # Numbers are rows and columns in turn, in every format, so the largest of each are the lower right corner: the
        # box 0 0 2 4 makes the grid 3x5.
        corner = max(numbers[::2]), max(numbers[1::2])
        shape = tuple(min(at + 1, side) for at, side in zip(corner, self._canvas_shape, strict=True))
        resized = np.zeros(shape, np.int8)
        height, width = (min(sides) for sides in zip(shape, self.grid.shape, strict=True))
        resized[:height, :width] = self.grid[:height, :width]
        self.grid = resized

    def _edit(self, operation: int, cells: Cells) -> None:
        # Family by family. A box of None means that no active cell is selected: fills then do nothing, as their mask is
        # empty, and moves, turns and clears take the whole grid.
        box = _bounds_of(cells)
        if operation < c.FLOOD_FILL:
            self.grid[cells] = operation - c.FILL
        elif operation < c.MOVE_UP:
            if cells.sum() == 1 and box is not None:
                self.grid[_component_at(self.grid, *box[:2])] = operation - c.FLOOD_FILL
        elif operation in (c.COPY, c.CUT, c.PASTE):
            if box is not None:
                self._use_clipboard(operation, cells, box)
        elif operation == c.CLEAR:
            self.grid[cells if box else ...] = 0
        elif operation in STEPS:
            self._move(cells if box else np.ones_like(cells), *STEPS[operation])
        else:
            self._turn(operation, box or (0, 0, self.grid.shape[0] - 1, self.grid.shape[1] - 1))

    def _use_clipboard(self, operation: int, cells: Cells, box: Bounds) -> None:
        top, left, bottom, right = box
        if operation != c.PASTE:
            # Cells of the box that were not selected are padding in the clipboard, which a paste leaves out.
            part = np.s_[top : bottom + 1, left : right + 1]
            self.clipboard = np.where(cells[part], self.grid[part], np.int8(c.PADDING))
            if operation == c.CUT:
                self.grid[cells] = 0
        elif self.clipboard is not None:
            # The clipboard's top-left corner comes to the box's; what reaches over the edge is clipped.
            region = self.grid[top:, left:][: self.clipboard.shape[0], : self.clipboard.shape[1]]
            pasted = self.clipboard[: region.shape[0], : region.shape[1]]
            np.copyto(region, pasted, where=pasted != c.PADDING)

    def _move(self, cells: Cells, down: int, across: int) -> None:
        rows, columns = np.nonzero(cells)
        to_rows = rows + down
        to_columns = columns + across
        height, width = self.grid.shape
        kept = (to_rows >= 0) & (to_rows < height) & (to_columns >= 0) & (to_columns < width)
        # Read, clear, write, in this order: in 1 1 2 a move of the first two cells to the right clears both, then gives
        # 0 1 1.
        moved = self.grid[rows[kept], columns[kept]]
        self.grid[rows, columns] = 0
        self.grid[to_rows[kept], to_columns[kept]] = moved

    def _turn(self, operation: int, box: Bounds) -> None:
        top, left, bottom, right = box
        part = self.grid[top : bottom + 1, left : right + 1]
        # A turn is a view of the part, which the next line clears: hence the copy.
        turned = TURNS[operation](part).copy()
        part[...] = 0
        # A box of 2x3 rotated has 3x2 cells from the same corner: what leaves the grid is clipped, what is free is 0.
        region = self.grid[top:, left:][: turned.shape[0], : turned.shape[1]]
        region[...] = turned[: region.shape[0], : region.shape[1]]


def play_on_host(
    pair: Pair,
    actions: Sequence[Action],
    action_format: ActionFormat,
    canvas_shape: tuple[int, int] = FULL_CANVAS,
) -> Grid:
    """Return the grid, without padding, into which the actions turn a pair's input.

    Raises:
        InvalidActionError: an action is not one of the format or the canvas, or comes after the submit.
    """
    # Each action is checked against the canvas before it is played, so `apply` need not check anything.
    canvas = HostCanvas(pair.input, canvas_shape)
    for index, action in enumerate(actions):
        if canvas.is_submitted:
            raise InvalidActionError(
                f"action {index} comes after the submit, action {index - 1}; let the submit be the last action"
            )
        check_action(action, f"action {index}", action_format, canvas_shape)
        canvas.apply(action, action_format)
    return canvas.grid


def check_solution(
    pair: Pair,
    actions: Sequence[Action],
    action_format: ActionFormat,
    canvas_shape: tuple[int, int] = FULL_CANVAS,
) -> None:
    """Check that actions turn a pair's input into its output and then submit it.

    Raises:
        InvalidActionError: an action is not one of the format or the canvas, or comes after the submit.
        NotSolvedError: there is no submit at the end, or the grid is not the output.
    """
    grid = play_on_host(pair, actions, action_format, canvas_shape)
    if not actions or actions[-1][0] != c.SUBMIT:
        raise NotSolvedError(f"{len(actions)} actions and no submit at their end; add operation {c.SUBMIT}")
    if grid.shape != pair.output.shape:
        raise NotSolvedError(
            f"{len(actions)} actions end in a grid of {_spell(grid.shape)}, the output is {_spell(pair.output.shape)}; "
            f"resize it with operation {c.RESIZE}"
        )
    wrong = np.argwhere(grid != pair.output)
    if len(wrong):
        row, column = wrong[0].tolist()
        raise NotSolvedError(
            f"{len(actions)} actions leave {len(wrong)} of {grid.size} cells wrong, the first in row {row}, column "
            f"{column}: got {grid[row, column]}, the output has {pair.output[row, column]}; fix it before the submit"
        )


def check_action(
    action: Action,
    where: str,
    action_format: ActionFormat,
    canvas_shape: tuple[int, int] = FULL_CANVAS,
    operations: Container[int] = EDITS,
) -> None:
    """Check that an action is one of the format, of the canvas and of some operations.

    Args:
        action: what to check.
        where: its position, for the message, such as ``action 3``.
        action_format: how its selection is given.
        canvas_shape: rows and columns, the bounds of coordinates.
        operations: those that are allowed.

    Raises:
        InvalidActionError: it has other numbers than the format takes, one out of range, or another operation.
    """
    wrong = [number for number in action if not isinstance(number, int | np.integer) or isinstance(number, bool)]
    if wrong:
        raise InvalidActionError(f"{where}: {wrong[0]!r:.80} is not a whole number; write it as an int")
    fits = len(action) % 2 == 1 if action_format == "mask" else len(action) == 1 + _COORDINATES[action_format]
    if not fits:
        raise InvalidActionError(
            f"{where}: {len(action)} numbers, but format {action_format!r} takes {_NUMBERS[action_format]}; "
            "use the format that it was recorded in"
        )
    if action[0] not in operations:
        raise InvalidActionError(f"{where}: operation {action[0]} is not among those allowed, {_listed(operations)}")
    for name, numbers, side in (("row", action[1::2], canvas_shape[0]), ("column", action[2::2], canvas_shape[1])):
        outside = [number for number in numbers if not 0 <= number < side]
        if outside:
            raise InvalidActionError(
                f"{where}: {name} {outside[0]} is not on the canvas of {_spell(canvas_shape)}; use 0..{side - 1}, or "
                "a larger canvas"
            )


def _listed(operations: Container[int]) -> str:
    """``0..34``, or ``0, 1, 34`` where some are left out."""
    ids = [i for i in range(c.NUM_OPERATIONS) if i in operations]
    return f"{ids[0]}..{ids[-1]}" if ids == list(range(ids[0], ids[-1] + 1)) else ", ".join(map(str, ids))


def _component_at(grid: Grid, row: int, column: int) -> Cells:
    """The cells of equal color that are connected to a cell by sides."""
    width = grid.shape[1]
    # A row of bits has one more than the grid has columns; see jaxarc.experts.bitboards.
    seed = 1 << row * (width + 1) + column
    return unpack_cells(spread(seed, pack_cells(grid == grid[row, column]), width), grid.shape)


def _selected(numbers: Sequence[int], action_format: ActionFormat, shape: tuple[int, ...]) -> Cells:
    """The selected cells of the active area."""
    # A point is one pair of numbers and a box two, in either order; both are min .. max. Slices end at the grid's edge,
    # so that only cells of the active area are selected; the cells of a mask are filtered.
    cells = np.zeros(shape, np.bool_)
    rows = numbers[::2]
    columns = numbers[1::2]
    if action_format == "mask":
        inside = [(r, k) for r, k in zip(rows, columns, strict=True) if r < shape[0] and k < shape[1]]
        if inside:
            cells[tuple(np.array(inside).T)] = True
    else:
        cells[min(rows) : max(rows) + 1, min(columns) : max(columns) + 1] = True
    return cells


def _bounds_of(cells: Cells) -> Bounds | None:
    """The smallest box around the cells, or ``None`` for no cells."""
    rows = np.flatnonzero(cells.any(axis=1))
    columns = np.flatnonzero(cells.any(axis=0))
    return (int(rows[0]), int(columns[0]), int(rows[-1]), int(columns[-1])) if len(rows) else None


def _spell(shape: tuple[int, ...]) -> str:
    return f"{shape[0]}x{shape[1]}"
