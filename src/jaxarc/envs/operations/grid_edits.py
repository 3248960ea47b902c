"""Kernels on a batch of flat grids: the selection before an operation, the edits, and the selection after them."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int, Int8, Int32, UInt32

from jaxarc import constants as c
from jaxarc.constants import PADDING
from jaxarc.envs.canvas import (
    HEIGHT,
    WIDTH,
    BoundingBox,
    Canvas,
    CheckedAction,
    GridShape,
    cell_columns,
    cell_rows,
    clip_box,
    inside,
    pack_box,
    pack_columns,
    whole_if_empty,
)
from jaxarc.envs.structured_actions import CHANGES_PAIR, COPIES, TURNS, move_offset
from jaxarc.fusion import materialize_call


class ResolvedSelection(NamedTuple):
    """The selection as an operation uses it."""

    chosen: BoundingBox  # around the chosen cells, within the active area; within the canvas for a resize
    effective: BoundingBox  # the same, or the whole active area when nothing is chosen
    is_empty: Bool[Array, " B"]  # nothing is chosen
    is_single: Bool[Array, " B"]  # exactly one cell is chosen
    columns: UInt32[Array, "B W"] | None  # the chosen cells as bits; None: every cell of the box
    raw: Bool[Array, "B HW"] | None  # the cells before they are limited to the active area; None: a box


def resolve_selection(canvas: Canvas, action: CheckedAction, shape: GridShape) -> ResolvedSelection:
    """Intersect the raw selection with the active area, for a resize with the canvas, and find its bounding box."""
    height, width = (canvas.sizes[:, i].astype(jnp.int32) for i in (HEIGHT, WIDTH))
    # A resize may select cells beyond the active area, as it makes that larger; any other operation may not.
    resizes = action.operation == c.RESIZE
    height_limit = jnp.where(resizes, shape[0], height)
    width_limit = jnp.where(resizes, shape[1], width)
    columns = None
    raw = None
    if action.selection.dtype == jnp.bool_:
        # Bits of a column make the intersection with the active area one `&` for each of W words instead of one for
        # each of HW cells, and the bounding box a few operations on the words.
        raw = action.selection
        operation = action.operation
        columns = materialize_call(functools.partial(pack_columns, shape=shape), raw, predicate_of=operation)
        columns = columns & _active_columns(height_limit, width_limit, shape)
        # [W, B]: faster on one column of all grids at a time.
        side_by_side = materialize_call(jnp.transpose, columns, predicate_of=operation)
        box = materialize_call(_bounding_box, side_by_side, predicate_of=operation)
    else:
        corners = BoundingBox(*(action.selection[:, i] for i in range(4)))
        box = clip_box(corners, height_limit, width_limit)
    # A box of one row and one column holds one cell. An empty box ends before it begins in some direction, so it fails.
    is_single = (box.top == box.bottom) & (box.left == box.right)
    return ResolvedSelection(box, whole_if_empty(box, height, width), box.is_empty, is_single, columns, raw)


def effective_cells(
    effective: BoundingBox,
    is_empty: Bool[Array, " B"],
    raw: Bool[Array, "B HW"] | None,
    active: Bool[Array, "B HW"],
    shape: GridShape,
) -> Bool[Array, "B HW"]:
    """The cells that any operation but a resize uses: the chosen ones, or the whole active area."""
    # A box was limited to the active area when it was clipped; a mask is limited here, cell by cell.
    return inside(effective, shape) if raw is None else active & (raw | is_empty[:, None])


def _active_columns(height: Int[Array, " B"], width: Int[Array, " B"], shape: GridShape) -> UInt32[Array, "B W"]:
    """The top-left ``height x width`` cells as columns of bits; 2x2 of 3x3 is 011 011 000."""
    rows = (jnp.uint32(1) << height.astype(jnp.uint32)) - jnp.uint32(1)
    return jnp.where(jnp.arange(shape[1], dtype=jnp.int32)[None] < width[:, None], rows[:, None], jnp.uint32(0))


def rearrange_cells(
    grid: Int8[Array, "B HW"],
    clipboard: Int8[Array, "B HW"],
    operation: Int32[Array, " B"],
    use: ResolvedSelection,
    active: Bool[Array, "B HW"],
    shape: GridShape,
) -> tuple[Int8[Array, "B HW"], Int8[Array, "B HW"]]:
    """Apply operations 20..30; the new grid and the new clipboard.

    Every one of them is a gather that is affine in row and column: cell (r, c) takes the color of the flat cell
    ``i * r + j * c + k``. With the box's sides t, l, b, s and W columns, cell (r, c) comes from (row, column)::

        clockwise          (b - (c - l), l + (r - t))    i = 1    j = -W    k = W (b + l) + l - t
        counter-clockwise  (t + (c - l), s - (r - t))    i = -1   j = W     k = W (t - l) + s + t
        left-right         (r, l + s - c)                i = W    j = -1    k = l + s
        up-down            (t + b - r, c)                i = -W   j = 1     k = W (t + b)
        move               (r - down, c - across)        i = W    j = 1     k = -W down - across
        paste              (r - t, c - l)                i = W    j = 1     k = -W t - l
        copy and cut       (r + t, c + l)                i = W    j = 1     k = W t + l

    A box of 2x3 that is rotated clockwise about its top-left corner; cells it leaves become 0, and what falls outside
    the active area is lost. Cell (0, 1) comes from row 1 - 1 = 0, column 0 + 0 = 0, flat ``1 * 0 - 3 * 1 + 3 = 0``::

        1 2 3      4 1 0
        4 5 6  ->  5 2 0
        0 0 0      6 3 0

    A cell that leaves its row on the right appears at the left end of the next one, outside the box of what may arrive.

    Args:
        grid: what is edited.
        clipboard: what is pasted.
        operation: of each environment; the results of others than 20..30 are not to be used.
        use: the cells; of a paste, copy or cut not empty.
        active: the active area.
        shape: rows and columns of the canvas.
    """
    box = use.effective
    cells = effective_cells(box, use.is_empty, use.raw, active, shape)
    turns = TURNS.has(operation)
    pastes = (operation == c.PASTE)[:, None]
    copies = COPIES.has(operation)[:, None]
    # A gather from an array as it is, by an index of its own, is computed where its result is used; others are stored,
    # and so is one that two results use. Every cell of a box is chosen; only of a mask the others are set to padding
    # first.
    width = shape[1]
    rows, columns = (jnp.asarray(axis[None], jnp.int32) for axis in (cell_rows(shape), cell_columns(shape)))
    corner = (width * box.top + box.left)[:, None]
    down, across = move_offset(operation)
    i, j, k = _factors_of_turn(operation, box, width)
    i, j, k = jnp.where(turns, i, width), jnp.where(turns, j, 1), jnp.where(turns, k, -width * down - across)
    source = grid
    if use.raw is not None:
        # On a CPU, XLA takes seven times as long where a gather reads what no array holds yet.
        limit = lambda grid, cells, turns: jnp.where(cells | turns[:, None], grid, jnp.int8(PADDING))
        source = materialize_call(limit, grid, cells, turns, predicate_of=operation)
    brought = _take_cells(source, i[:, None] * rows + j[:, None] * columns + k[:, None])
    brought = jnp.where(pastes, _take_cells(clipboard, width * rows + columns - corner), brought)
    copied = _take_cells(source, width * rows + columns + corner)

    choose = lambda turned, shifted: jnp.where(turns, turned, shifted)
    ends = _destination_of_turn(operation, box), _destination_of_shift(operation, box, shape)
    receives = inside(jax.tree.map(choose, *ends), shape)
    leaves = jnp.where(turns[:, None], inside(box, shape), cells) & ~pastes
    emptied = jnp.where(leaves, jnp.int8(0), grid)
    edited = jnp.where(receives & (brought > PADDING) & active, brought, emptied)
    held = jnp.where(receives, copied, jnp.int8(PADDING))
    return jnp.where(copies, grid, edited), jnp.where(copies, held, clipboard)


def _destination_of_shift(operation: Int32[Array, " B"], box: BoundingBox, shape: GridShape) -> BoundingBox:
    height, width = shape
    pastes = operation == c.PASTE
    copies = COPIES.has(operation)
    down, across = move_offset(operation)
    # Where content may arrive: a move's box, one step on; a copy's box, at the origin; for a paste everything below and
    # to the right of its corner. Beyond it there are only cells that the shift wrapped into another row.
    return BoundingBox(
        jnp.where(copies, 0, box.top + down),
        jnp.where(copies, 0, box.left + across),
        jnp.where(pastes, height - 1, jnp.where(copies, box.bottom - box.top, box.bottom + down)),
        jnp.where(pastes, width - 1, jnp.where(copies, box.right - box.left, box.right + across)),
    )


def _factors_of_turn(
    operation: Int32[Array, " B"], box: BoundingBox, width: int
) -> tuple[Int32[Array, " B"], Int32[Array, " B"], Int32[Array, " B"]]:
    """The factors i, j and k of the table of :func:`rearrange_cells`."""
    top, left, bottom, right = box
    # Rotations have i = +-1 and j = -+W, flips i = +-W and j = -+1, and `sign` is + for the first of each kind. So i
    # and j are one select each, and only k needs a formula for each operation.
    clockwise = operation == c.ROTATE_CLOCKWISE
    left_right = operation == c.FLIP_LEFT_RIGHT
    rotates = clockwise | (operation == c.ROTATE_COUNTERCLOCKWISE)
    sign = jnp.where(clockwise | left_right, jnp.int32(1), jnp.int32(-1))
    i = jnp.where(rotates, sign, sign * width)
    j = jnp.where(rotates, -sign * width, -sign)
    k_of_flip = jnp.where(left_right, left + right, width * (top + bottom))
    k_of_turn = jnp.where(clockwise, width * (bottom + left) + left - top, width * (top - left) + right + top)
    return i, j, jnp.where(rotates, k_of_turn, k_of_flip)


def _take_cells(source: Int8[Array, "B HW"], index: Int[Array, "B HW"]) -> Int8[Array, "B HW"]:
    index = jnp.clip(index, 0, source.shape[1] - 1).astype(jnp.int32)  # clipped ones are not used
    return jnp.take_along_axis(source, index, axis=1, mode="promise_in_bounds")


def _destination_of_turn(operation: Int32[Array, " B"], box: BoundingBox) -> BoundingBox:
    top, left, bottom, right = box
    rotates = (operation == c.ROTATE_CLOCKWISE) | (operation == c.ROTATE_COUNTERCLOCKWISE)
    # A box of h x w that is rotated covers w x h cells from the same corner; a flip covers the box itself.
    return BoundingBox(
        top, left, jnp.where(rotates, top + right - left, bottom), jnp.where(rotates, left + bottom - top, right)
    )


def next_selection(
    before: Canvas,
    operation: Int32[Array, " B"],
    applied: Bool[Array, " B"],
    use: ResolvedSelection,
    height: Int32[Array, " B"],
    width: Int32[Array, " B"],
    shape: GridShape,
) -> Int8[Array, "B 4"] | UInt32[Array, "B W"]:
    """The selection that the state keeps: as it was where nothing applied, empty on another pair, moved by a move.

    Otherwise the chosen cells within the active area after the operation, which has ``height`` and ``width``.
    """
    # A move carries the selection along; what leaves the active area is cut off. In 3x3 the columns 110 010 000 moved
    # down become 100 100 000, because the bits of row 3, 1000, are beyond the area.
    if use.columns is None:
        after = pack_box(clip_box(_moved_box(use.chosen, operation), height, width))
        cleared = jnp.array([[0, 0, -1, -1]], jnp.int8)
    else:
        after = _moved_columns(use.columns, operation) & _active_columns(height, width, shape)
        cleared = jnp.uint32(0)
    after = jnp.where(CHANGES_PAIR.has(operation)[:, None], cleared, after)
    return jnp.where(applied[:, None], after, before.selection)


def _bounding_box(columns: UInt32[Array, "W B"]) -> BoundingBox:
    """Find the smallest box around the cells; empty, with top and left beyond bottom and right, when there is none.

    The union of all columns has a bit for every row in use, and a second word gets a bit for every column in use; the
    lowest and the highest bit of the two are the bounds. For 3x3, with words in binary, row 0 lowest::

        0 1 1      columns 000 011 001    rows in use     011 -> top 0, bottom 1
        0 1 0                             columns in use  110 -> left 1, right 2
        0 0 0
    """
    # One word for each grid: the union over its columns has the rows in use, and `used_columns` one bit for each
    # column.
    bit_of_column = jnp.uint32(1) << jnp.arange(columns.shape[0], dtype=jnp.uint32)[:, None]
    used_columns = jnp.where(columns != 0, bit_of_column, jnp.uint32(0))
    top, bottom = _extent(_union(columns))
    left, right = _extent(_union(used_columns))
    return BoundingBox(top, left, bottom, right)


def _union(words: UInt32[Array, "W B"]) -> UInt32[Array, " B"]:
    return functools.reduce(jnp.bitwise_or, words)


def _extent(bits: UInt32[Array, " B"]) -> tuple[Int32[Array, " B"], Int32[Array, " B"]]:
    """Indices of the lowest and the highest bit; 32 and -1 when there is none.

    ``bits & -bits`` keeps the lowest bit, and one less has as many ones as there are zeros below it: for 01100 that is
    00100, and 00011 has two.
    """
    lowest = lax.population_count((bits & -bits) - jnp.uint32(1))
    return lowest.astype(jnp.int32), 31 - lax.clz(bits).astype(jnp.int32)


def _moved_box(box: BoundingBox, operation: Int32[Array, " B"]) -> BoundingBox:
    holds_cells = (~box.is_empty).astype(jnp.int32)
    # An empty box stays where it is: moved by one it could seem to hold cells.
    down, across = (holds_cells * offset for offset in move_offset(operation))
    return BoundingBox(box.top + down, box.left + across, box.bottom + down, box.right + across)


def _moved_columns(columns: UInt32[Array, "B W"], operation: Int32[Array, " B"]) -> UInt32[Array, "B W"]:
    """Shift the bits of each word for a move up or down, the words themselves for one to the left or right."""
    # Padded in a step of its own: moves to the side are then slices, without a comparison for each word.
    pad = lambda columns: jnp.pad(columns, ((0, 0), (1, 1)))
    padded = materialize_call(pad, columns, predicate_of=operation)
    moved = {
        c.MOVE_UP: columns >> jnp.uint32(1),
        c.MOVE_DOWN: columns << jnp.uint32(1),
        c.MOVE_LEFT: padded[:, 2:],
        c.MOVE_RIGHT: padded[:, :-2],
    }
    for code, after in moved.items():
        columns = jnp.where((operation == code)[:, None], after, columns)
    return columns
