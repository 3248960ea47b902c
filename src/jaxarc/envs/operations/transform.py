"""Move, rotate, flip, paste and copy: one gather whose source index is affine in row and column.

Each of them fills a destination rectangle from source cells ``i * row + j * column + k``. Source cells that do not take
part are marked as padding beforehand, so a gathered padding value means: leave this cell.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int8, Int16, Int32

from jaxarc import constants as c
from jaxarc.constants import PADDING
from jaxarc.envs.operations.compaction import staged
from jaxarc.envs.operations.geometry import Box, GridShape, Selection, cell_columns, cell_rows, inside, per_cell


class Affine(NamedTuple):
    """Source index of cell (row, column): ``i * row + j * column + k``."""

    i: Int32[Array, " B"]
    j: Int32[Array, " B"]
    k: Int32[Array, " B"]


def transform(
    grid: Int8[Array, "B HW"],
    clipboard: Int8[Array, "B HW"],
    operation: Int32[Array, " B"],
    selection: Selection,
    active: Bool[Array, "B HW"],
    shape: GridShape,
    executor: str,
) -> Int8[Array, "B HW"]:
    """Apply operations 20..27 and 29; the selection is not empty."""
    source_map, destination = _plan(operation, selection.box, shape)
    moves = per_cell(operation) <= c.MOVE_RIGHT
    pastes = per_cell(operation) == c.PASTE
    in_box = inside(selection.box, shape)
    taken = in_box if selection.cells is None else jnp.where(moves, selection.cells, in_box)
    source = jnp.where(pastes, clipboard, jnp.where(taken, grid, jnp.int8(PADDING)))
    gathered = gather_cells(source, source_map, shape, executor)
    received = inside(destination, shape) & active & (gathered > PADDING)
    vacated = taken & ~pastes
    return jnp.where(received, gathered, jnp.where(vacated, jnp.int8(0), grid))


def copy_to_origin(
    grid: Int8[Array, "B HW"], selection: Selection, shape: GridShape, executor: str
) -> Int8[Array, "B HW"]:
    """The selected cells moved to the top-left corner; padding where nothing was selected."""
    box = selection.box
    cells = inside(box, shape) if selection.cells is None else selection.cells
    source = jnp.where(cells, grid, jnp.int8(PADDING))
    one, row = jnp.ones_like(box.top), jnp.full_like(box.top, shape[1])
    gathered = gather_cells(source, Affine(row, one, box.top * shape[1] + box.left), shape, executor)
    zero = jnp.zeros_like(box.top)
    extent = Box(zero, zero, box.bottom - box.top, box.right - box.left)
    return jnp.where(inside(extent, shape), gathered, jnp.int8(PADDING))


def gather_cells(
    source: Int8[Array, "B HW"], source_map: Affine, shape: GridShape, executor: str
) -> Int8[Array, "B HW"]:
    """Read each cell's source; an index outside the grid is clipped, and must not be used by the caller.

    The gather is a stage of its own: fused with what makes its operands, it would run cell by cell.
    """
    wide = lambda x: x.astype(jnp.int16)[:, None]
    rows, columns = cell_rows(shape)[None].astype("int16"), cell_columns(shape)[None].astype("int16")
    index = wide(source_map.i) * rows + wide(source_map.j) * columns + wide(source_map.k)

    def gather(source: Int8[Array, "B HW"], index: Int16[Array, "B HW"]) -> Int8[Array, "B HW"]:
        index = jnp.clip(index, 0, shape[0] * shape[1] - 1).astype(jnp.int32)
        return jnp.take_along_axis(source, index, axis=1, mode="promise_in_bounds")

    always = jnp.any(source_map.k > -(2**15))
    return staged(executor, always, gather, source, index)


def _plan(operation: Int32[Array, " B"], box: Box, shape: GridShape) -> tuple[Affine, Box]:
    """Where each cell comes from, and the rectangle that is filled."""
    top, left, bottom, right = box
    width = shape[1]
    same = top * 0
    identity = width + same
    i = _pick(operation, identity, {c.ROTATE_CLOCKWISE: 1, c.ROTATE_COUNTERCLOCKWISE: -1, c.FLIP_UP_DOWN: -width})
    j = _pick(
        operation,
        same + 1,
        {c.ROTATE_CLOCKWISE: -width, c.ROTATE_COUNTERCLOCKWISE: width, c.FLIP_LEFT_RIGHT: -1},
    )
    k = _pick(
        operation,
        same,
        {
            c.MOVE_UP: width,
            c.MOVE_DOWN: -width,
            c.MOVE_LEFT: 1,
            c.MOVE_RIGHT: -1,
            c.ROTATE_CLOCKWISE: width * (bottom + left) + left - top,
            c.ROTATE_COUNTERCLOCKWISE: width * (top - left) + right + top,
            c.FLIP_LEFT_RIGHT: left + right,
            c.FLIP_UP_DOWN: width * (top + bottom),
            c.PASTE: -(width * top + left),
        },
    )
    turned = (operation == c.ROTATE_CLOCKWISE) | (operation == c.ROTATE_COUNTERCLOCKWISE)
    down = _pick(operation, same, {c.MOVE_UP: -1, c.MOVE_DOWN: 1})
    across = _pick(operation, same, {c.MOVE_LEFT: -1, c.MOVE_RIGHT: 1})
    pasted = operation == c.PASTE
    destination = Box(
        top + down,
        left + across,
        jnp.where(pasted, shape[0] - 1, jnp.where(turned, top + right - left, bottom) + down),
        jnp.where(pasted, shape[1] - 1, jnp.where(turned, left + bottom - top, right) + across),
    )
    return Affine(i, j, k), destination


def _pick(
    operation: Int32[Array, " B"], default: Int32[Array, " B"], by_operation: dict[int, int | Int32[Array, " B"]]
) -> Int32[Array, " B"]:
    for code, value in by_operation.items():
        default = jnp.where(operation == code, value, default)
    return default
