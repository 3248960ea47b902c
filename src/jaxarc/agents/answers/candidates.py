"""Where the color of an answer's cell may come from: copies of the input, turned, recolored or read along its lines."""

from typing import Final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int8

from jaxarc.constants import NUM_COLORS, PADDING

UNKNOWN: Final = -2  # a candidate's color where it has none to offer
NUM_COPIES: Final = 16  # 8 symmetries, 8 readings of lines
NUM_TABLES: Final = 2


def symmetric_copies(grids: Int8[Array, "N H W"]) -> Int8[Array, "N 8 H W"]:
    """Turn and mirror grids within their own sizes; the first copy is the grid itself.

    What does not fit a canvas that is not square is cut off.
    """
    height, width = grids.shape[1:]
    side = max(height, width)
    square = jnp.pad(grids, ((0, 0), (0, side - height), (0, side - width)), constant_values=PADDING)
    flips = [_mirror(square, *axes) for axes in ((False, False), (False, True), (True, False), (True, True))]
    copies = jnp.stack([*flips, *(jnp.swapaxes(copy, 1, 2) for copy in flips)], axis=1)
    return copies[:, :, :height, :width]


def _mirror(square: Int8[Array, "N S S"], rows: bool, columns: bool) -> Int8[Array, "N S S"]:
    """Mirror grids up-down and left-right, each anchored at its top left again."""
    inside = square > PADDING
    side = square.shape[-1]
    place = jnp.arange(side, dtype=jnp.int32)[None]
    if rows:
        height = inside[:, :, 0].sum(axis=1, dtype=jnp.int32)[:, None]
        square = jnp.take_along_axis(square, ((height - 1 - place) % side)[:, :, None], axis=1)
    if columns:
        width = inside[:, 0].sum(axis=1, dtype=jnp.int32)[:, None]
        square = jnp.take_along_axis(square, ((width - 1 - place) % side)[:, None, :], axis=2)
    return square


def color_tables(
    inputs: Int8[Array, "B P H W"], outputs: Int8[Array, "B P H W"], shown: Bool[Array, "B P"]
) -> Int8[Array, "B 2 10"]:
    """Tell what each color always becomes at the same place, over all demonstrations of a task.

    The first table counts all cells, the second those that change. A color that becomes now this, now that, or that no
    demonstration has, is :data:`UNKNOWN`.
    """
    batch = inputs.shape[0]
    both = ((inputs > PADDING) & (outputs > PADDING) & shown[..., None, None]).reshape(batch, -1, 1)
    each_color = lambda grids: jax.nn.one_hot(grids.reshape(batch, -1), NUM_COLORS, dtype=jnp.float32)
    before = each_color(inputs) * both.astype(jnp.float32)
    counts = jnp.einsum("bna,bns->bas", before, each_color(outputs))
    both_tables = jnp.stack([counts, counts * (1 - jnp.eye(NUM_COLORS, dtype=jnp.float32))[None]], axis=1)
    total = both_tables.sum(axis=-1)
    is_sure = (both_tables.max(axis=-1) == total) & (total > 0)
    return jnp.where(is_sure, jnp.argmax(both_tables, axis=-1), UNKNOWN).astype(jnp.int8)


def recolored(grids: Int8[Array, "N H W"], tables: Int8[Array, "N 2 10"]) -> Int8[Array, "N 2 H W"]:
    """Give every cell the color that each table tells; outside stays outside."""
    count, height, width = grids.shape
    place = jnp.broadcast_to(
        jnp.maximum(grids, 0).reshape(count, 1, -1).astype(jnp.int32), (count, NUM_TABLES, height * width)
    )
    found = jnp.take_along_axis(tables, place, axis=2).reshape(count, NUM_TABLES, height, width)
    return jnp.where(grids[:, None] > PADDING, found, jnp.int8(PADDING))


def line_readings(grids: Int8[Array, "N H W"]) -> Int8[Array, "N 8 H W"]:
    """Read the colored cells of each column and of each row, black ones left out, in one order or the other.

    A reading puts, at each cell, the color of the n-th colored cell of the line; n is how far the cell is from an end
    of the line, and the colored cells are counted from an end, which gives four readings of columns and four of rows.
    Where the line has not so many colored cells a reading is black.
    """
    columns = jnp.swapaxes(_read_lines(jnp.swapaxes(grids, 1, 2)), 2, 3)
    return jnp.concatenate([columns, _read_lines(grids)], axis=1)


def enclosed_cells(grids: Int8[Array, "N H W"]) -> Bool[Array, "N H W"]:
    """Mark the black cells from which no path over black, up, down, left or right, leads to the edge of the grid."""
    black, inside = grids == 0, jnp.pad(grids > PADDING, ((0, 0), (1, 1), (1, 1)))
    around = lambda mask: mask[:, :-2, 1:-1] | mask[:, 2:, 1:-1] | mask[:, 1:-1, :-2] | mask[:, 1:-1, 2:]

    def spread(reached: tuple[Array, Array]) -> tuple[Array, Array]:
        before = reached[0]
        return before | (black & around(jnp.pad(before, ((0, 0), (1, 1), (1, 1))))), before

    at_edge = black & around(~inside)
    reached = jax.lax.while_loop(lambda state: jnp.any(state[0] != state[1]), spread, (at_edge, jnp.zeros_like(black)))
    return black & ~reached[0]


def _read_lines(lines: Int8[Array, "N L A"]) -> Int8[Array, "N 4 L A"]:
    inside, colored = lines > PADDING, lines > 0
    place = jnp.arange(lines.shape[-1], dtype=jnp.int32)[None, None]
    from_end = jnp.where(inside, inside.sum(axis=-1, keepdims=True, dtype=jnp.int32) - 1 - place, 0)
    before = jnp.cumsum(colored, axis=-1, dtype=jnp.int32) - colored.astype(jnp.int32)
    after = colored.sum(axis=-1, keepdims=True, dtype=jnp.int32) - before - 1
    readings = []
    for rank in (before, after):
        is_nth = (rank[..., None, :] == place[..., None]) & colored[..., None, :]
        nth = jnp.where(is_nth, lines[..., None, :], jnp.int8(0)).max(axis=-1)  # [N, L, n]
        readings += [nth, jnp.take_along_axis(nth, from_end, axis=-1)]
    return jnp.where(inside[:, None], jnp.stack(readings, axis=1), jnp.int8(PADDING))
