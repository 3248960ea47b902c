"""Kernels that edit a batch of flat grids: shift cells, rotate and flip a box, flood fill."""

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int8, Int16, Int32, UInt32

from jaxarc import constants as c
from jaxarc.constants import FLOOD_FILL, PADDING
from jaxarc.envs.canvas import (
    BoundingBox,
    GridShape,
    cell_columns,
    cell_rows,
    inside,
    pack_columns,
    per_cell,
    unpack_columns,
)
from jaxarc.envs.operations.compaction import staged


def shift_cells(
    grid: Int8[Array, "B HW"],
    clipboard: Int8[Array, "B HW"],
    operation: Int32[Array, " B"],
    box: BoundingBox,
    cells: Bool[Array, "B HW"],
    active: Bool[Array, "B HW"],
    shape: GridShape,
    executor: str,
) -> Int8[Array, "B HW"]:
    """Apply operations 20..23 and 29 to the grid, or make the clipboard of 28 and 30.

    Args:
        grid: what is edited.
        clipboard: what is pasted.
        operation: one of those.
        box: the smallest one around the cells, not empty.
        cells: what is moved or copied.
        active: the active area.
        shape: rows and columns of the canvas.
        executor: see :func:`jaxarc.envs.operations.compaction.staged`.
    """
    width = shape[1]
    pastes, copies = operation == c.PASTE, (operation == c.COPY) | (operation == c.CUT)
    is_move = lambda code: (operation == code).astype(jnp.int32)
    down = is_move(c.MOVE_DOWN) - is_move(c.MOVE_UP)
    across = is_move(c.MOVE_RIGHT) - is_move(c.MOVE_LEFT)
    corner = width * box.top + box.left
    offset = jnp.where(pastes, -corner, jnp.where(copies, corner, -width * down - across))
    always = jnp.any(operation < c.NUM_OPERATIONS)
    from_clipboard = pastes[:, None]

    def mark(grid: Array, clipboard: Array, cells: Array, from_clipboard: Array) -> Array:
        return jnp.where(from_clipboard, clipboard, jnp.where(cells, grid, jnp.int8(PADDING)))

    source = staged(executor, always, mark, grid, clipboard, cells, from_clipboard)
    shifted = shift_flat(source, offset)
    goal = BoundingBox(
        jnp.where(copies, 0, box.top + down),
        jnp.where(copies, 0, box.left + across),
        jnp.where(pastes, shape[0] - 1, jnp.where(copies, box.bottom - box.top, box.bottom + down)),
        jnp.where(pastes, shape[1] - 1, jnp.where(copies, box.right - box.left, box.right + across)),
    )
    received = inside(goal, shape) & (shifted > PADDING)
    edits = jnp.where(received & active, shifted, jnp.where(cells & ~from_clipboard, jnp.int8(0), grid))
    return jnp.where(copies[:, None], jnp.where(received, shifted, jnp.int8(PADDING)), edits)


def turn_box(
    grid: Int8[Array, "B HW"],
    operation: Int32[Array, " B"],
    box: BoundingBox,
    active: Bool[Array, "B HW"],
    shape: GridShape,
    executor: str,
) -> Int8[Array, "B HW"]:
    """Apply operations 24..27 to the cells of a box that is not empty: one gather, affine in row and column.

    The source of cell (r, c) is the flat cell ``i * r + j * c + k``.
    """
    top, left, bottom, right = box
    width = shape[1]
    clockwise, across = operation == c.ROTATE_CLOCKWISE, operation == c.FLIP_LEFT_RIGHT
    rotates = clockwise | (operation == c.ROTATE_COUNTERCLOCKWISE)
    sign = jnp.where(clockwise | across, 1, -1)
    i = jnp.where(rotates, sign, sign * width)
    j = jnp.where(rotates, -sign * width, -sign)
    k = jnp.where(across, left + right, width * (top + bottom))
    turned = jnp.where(clockwise, width * (bottom + left) + left - top, width * (top - left) + right + top)
    k = jnp.where(rotates, turned, k)
    cells = inside(box, shape)
    always = jnp.any(operation < c.NUM_OPERATIONS)
    wide = lambda x: x.astype(jnp.int16)[:, None]
    rows, columns = cell_rows(shape)[None].astype("int16"), cell_columns(shape)[None].astype("int16")
    index = wide(i) * rows + wide(j) * columns + wide(k)

    def gather(source: Int8[Array, "B HW"], index: Int16[Array, "B HW"]) -> Int8[Array, "B HW"]:
        index = jnp.clip(index, 0, shape[0] * shape[1] - 1).astype(jnp.int32)  # clipped ones are not used
        return jnp.take_along_axis(source, index, axis=1, mode="promise_in_bounds")

    gathered = staged(executor, always, gather, grid, index)
    goal = BoundingBox(
        top, left, jnp.where(rotates, top + right - left, bottom), jnp.where(rotates, left + bottom - top, right)
    )
    received = inside(goal, shape) & active
    return jnp.where(received, gathered, jnp.where(cells, jnp.int8(0), grid))


def shift_flat(source: Int8[Array, "B HW"], offset: Int32[Array, " B"]) -> Int8[Array, "B HW"]:
    """Cell ``p`` of each row becomes its cell ``p + offset``; beyond the row anything, not to be used."""
    batch, cells = source.shape
    padded = jnp.pad(source.reshape(-1), (cells, cells), constant_values=PADDING)
    starts = jnp.arange(1, batch + 1, dtype=jnp.int32) * cells + offset
    return jax.vmap(lambda start: lax.dynamic_slice(padded, (start,), (cells,)))(starts)


def flood_fill(
    grid: Int8[Array, "B HW"],
    operation: Int32[Array, " B"],
    row: Int32[Array, " B"],
    column: Int32[Array, " B"],
    shape: GridShape,
    executor: str,
) -> Int8[Array, "B HW"]:
    """Recolor the 4-connected component of equal color around one active cell per environment."""
    stage = functools.partial(staged, executor, jnp.any(row >= 0))
    start = jnp.take_along_axis(grid, (row * shape[1] + column)[:, None], axis=1)
    same = stage(lambda grid, start: pack_columns(grid == start, shape), grid, start).T  # padding never is the color
    columns = jnp.arange(shape[1], dtype=jnp.int32)[:, None]
    seed = jnp.where(columns == column[None], (jnp.uint32(1) << row.astype(jnp.uint32))[None], jnp.uint32(0)) & same
    region = stage(jnp.transpose, _connected(seed, same))
    return jnp.where(unpack_columns(region, shape, stage), per_cell(operation - FLOOD_FILL), grid)


def _connected(seed: UInt32[Array, "W B"], open_cells: UInt32[Array, "W B"]) -> UInt32[Array, "W B"]:
    """All open cells that a seed reaches through open cells."""

    def sweep(beside: UInt32[Array, " B"], column: tuple[Array, Array]) -> tuple[Array, Array]:
        reached, passable = column
        filled = _fill_runs((reached | beside) & passable, passable)
        return filled, filled

    def body(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        reached, _ = carry
        nothing = jnp.zeros_like(reached[0])
        _, reached = lax.scan(sweep, nothing, (reached, open_cells))
        _, reached = lax.scan(sweep, nothing, (reached, open_cells), reverse=True)
        before = jnp.concatenate([nothing[None], reached[:-1]])  # the last sweep left nothing to spread the other way
        return reached, jnp.any((open_cells & ~reached & before) != 0)

    return lax.while_loop(lambda carry: carry[1], body, (seed, jnp.any(seed != 0)))[0]


def _fill_runs(seed: UInt32[Array, " B"], open_cells: UInt32[Array, " B"]) -> UInt32[Array, " B"]:
    """Spread the seeds over the runs of open cells that they lie in: down by doubling, up by one carry."""
    spread, run = seed, open_cells
    for step in (1, 2, 4, 8, 16):
        spread = spread | (run & (spread >> jnp.uint32(step)))
        run = run & (run >> jnp.uint32(step))
    return spread | (open_cells & ~(open_cells + spread))
