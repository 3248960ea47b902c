"""The selection before an operation uses it, and the one that the state remembers after it."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int8, Int32, UInt8

from jaxarc import constants as c
from jaxarc.envs.canvas import HEIGHT, WIDTH, Canvas, Command
from jaxarc.envs.operations.bits import pack_cells
from jaxarc.envs.operations.compaction import staged, update_rows
from jaxarc.envs.operations.geometry import (
    Box,
    GridShape,
    Selection,
    active_area,
    bounding_box,
    cell_columns,
    clip_box,
    pack_box,
    whole_if_empty,
)

MOVE_DIVISOR = 16  # see the divisors of the executor


class UsedSelection(NamedTuple):
    """The selection as an operation uses it."""

    chosen: Selection  # within the active area; raw for a resize
    effective: Selection  # the same, or the whole active area when nothing is chosen
    is_empty: Bool[Array, " B"]  # nothing is chosen
    is_single: Bool[Array, " B"]  # exactly one cell is chosen


def used_selection(canvas: Canvas, command: Command, shape: GridShape) -> UsedSelection:
    """Intersect the raw selection with the active area (but for a resize) and find its box."""
    height, width = (canvas.sizes[:, i].astype(jnp.int32) for i in (HEIGHT, WIDTH))
    resizes = command.operation == c.RESIZE
    if command.selection.dtype == jnp.bool_:
        active = active_area(height, width, shape)
        cells = command.selection & (active | resizes[:, None])
        box = bounding_box(cells, shape)
        effective_cells = jnp.where(box.is_empty[:, None], active, cells)
    else:
        cells = effective_cells = None
        box = Box(*(command.selection[:, i] for i in range(4)))
        box = clip_box(box, jnp.where(resizes, shape[0], height), jnp.where(resizes, shape[1], width))
    effective = whole_if_empty(box, height, width)
    single = (box.top == box.bottom) & (box.left == box.right)
    return UsedSelection(Selection(box, cells), Selection(effective, effective_cells), box.is_empty, single)


def remembered_selection(
    before: Canvas,
    operation: Int32[Array, " B"],
    applied: Bool[Array, " B"],
    chosen: Selection,
    height: Int32[Array, " B"],
    width: Int32[Array, " B"],
    shape: GridShape,
    executor: str,
) -> Int8[Array, "B 4"] | UInt8[Array, "B bytes"]:
    """The selection that the state keeps: as it was where nothing applied, empty on another pair, moved by a move.

    Otherwise the chosen cells within the active area after the operation, which has ``height`` and ``width``.
    """
    if chosen.cells is None:
        after = pack_box(clip_box(_moved_box(chosen.box, operation), height, width))
        cleared = jnp.array([[0, 0, -1, -1]], jnp.int8)
    else:
        after = _packed(chosen.cells, operation, height, width, shape, executor)
        cleared = jnp.uint8(0)
    after = jnp.where((operation > c.SUBMIT)[:, None], cleared, after)
    return jnp.where(applied[:, None], after, before.selection)


def _moved_box(box: Box, operation: Int32[Array, " B"]) -> Box:
    moved = lambda code: (~box.is_empty & (operation == code)).astype(jnp.int32)
    down = moved(c.MOVE_DOWN) - moved(c.MOVE_UP)
    across = moved(c.MOVE_RIGHT) - moved(c.MOVE_LEFT)
    return Box(box.top + down, box.left + across, box.bottom + down, box.right + across)


def _packed(
    cells: Bool[Array, "B HW"],
    operation: Int32[Array, " B"],
    height: Int32[Array, " B"],
    width: Int32[Array, " B"],
    shape: GridShape,
    executor: str,
) -> UInt8[Array, "B bytes"]:
    """The cells within the active area after the operation, moved by a move, as bits."""
    after = pack_cells(cells & active_area(height, width, shape))

    def kernel(_: Array, ins: tuple[Array, ...]) -> Array:
        cells, operation, height, width = ins
        move = lambda cells: _moved_cells(cells, operation, shape) & active_area(height, width, shape)
        return pack_cells(staged(executor, jnp.any(operation < c.NUM_OPERATIONS), move, cells))

    moves = (operation >= c.MOVE_UP) & (operation <= c.MOVE_RIGHT)
    return update_rows(executor, moves, kernel, after, (cells, operation, height, width), MOVE_DIVISOR)


def _moved_cells(cells: Bool[Array, "B HW"], operation: Int32[Array, " B"], shape: GridShape) -> Bool[Array, "B HW"]:
    width, columns = shape[1], cell_columns(shape)[None]
    ahead = lambda steps: jnp.pad(cells[:, steps:], ((0, 0), (0, steps)))
    behind = lambda steps: jnp.pad(cells[:, :-steps], ((0, 0), (steps, 0)))
    shifted = {
        c.MOVE_UP: ahead(width),
        c.MOVE_DOWN: behind(width),
        c.MOVE_LEFT: ahead(1) & (columns < width - 1),
        c.MOVE_RIGHT: behind(1) & (columns > 0),
    }
    for code, moved in shifted.items():
        cells = jnp.where((operation == code)[:, None], moved, cells)
    return cells
