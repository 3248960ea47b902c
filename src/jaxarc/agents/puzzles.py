"""Puzzles, and candidates for the colors of their answers: copies of the input, turned, recolored or read in lines."""

from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int8

from jaxarc.constants import NUM_COLORS, PADDING

UNKNOWN: Final = -2  # a candidate's color where it has none to offer
NUM_COPIES: Final = 16  # 8 symmetries, 8 readings of lines
NUM_TABLES: Final = 2


class Puzzle(NamedTuple):
    """The visible part of a task: its demonstrations, and the input whose answer is wanted."""

    inputs: Int8[Array, "B P H W"]  # of the demonstrations, -1 outside
    outputs: Int8[Array, "B P H W"]
    shown: Bool[Array, "B P"]  # slots that hold a demonstration
    grid: Int8[Array, "B H W"]  # the input whose answer is wanted


def symmetric_copies(grids: Int8[Array, "N H W"]) -> Int8[Array, "N 8 H W"]:
    """Turn and mirror grids within their own sizes; the first copy is the grid itself.

    What does not fit a canvas that is not square is cut off.
    """
    # The four flips of a grid and the four of its transpose are all 8 symmetries. On a square canvas a
    # transposed grid of 2x5 has room for its 5 rows.
    height, width = grids.shape[1:]
    side = max(height, width)
    square = jnp.pad(grids, ((0, 0), (0, side - height), (0, side - width)), constant_values=PADDING)
    flips = [_mirror(square, *axes) for axes in ((False, False), (False, True), (True, False), (True, True))]
    copies = jnp.stack([*flips, *(jnp.swapaxes(copy, 1, 2) for copy in flips)], axis=1)
    return copies[:, :, :height, :width]


def _mirror(square: Int8[Array, "N S S"], rows: bool, columns: bool) -> Int8[Array, "N S S"]:
    """Mirror grids up-down and left-right, each anchored at its top left again."""
    # The grid turns within its own size: 2 rows on a side of 4 take the rows (2 - 1 - index) % 4 =
    # 1, 0, 3, 2, so the padding stays below.
    inside = square > PADDING
    side = square.shape[-1]
    index = jnp.arange(side, dtype=jnp.int32)[None]
    if rows:
        height = inside[:, :, 0].sum(axis=1, dtype=jnp.int32)[:, None]
        square = jnp.take_along_axis(square, ((height - 1 - index) % side)[:, :, None], axis=1)
    if columns:
        width = inside[:, 0].sum(axis=1, dtype=jnp.int32)[:, None]
        square = jnp.take_along_axis(square, ((width - 1 - index) % side)[:, None, :], axis=2)
    return square


def color_tables(
    inputs: Int8[Array, "B P H W"], outputs: Int8[Array, "B P H W"], shown: Bool[Array, "B P"]
) -> Int8[Array, "B 2 10"]:
    """Return what each color always becomes in the same cell, over all demonstrations of a task.

    The first table counts all cells, the second those that change. A color that becomes several colors, or that no
    demonstration has, is :data:`UNKNOWN`. From the input ``1 1 2`` and the output ``3 3 2`` the first table has 1 -> 3
    and 2 -> 2, the second only 1 -> 3.
    """
    return sure_colors(color_counts(inputs, outputs, shown))


def color_counts(
    inputs: Int8[Array, "B P H W"], outputs: Int8[Array, "B P H W"], shown: Bool[Array, "B P"]
) -> Float32[Array, "B 10 10"]:
    """Return the number of cells that have one color before and another after: entry [a, s] counts those from a to s.

    The counts are a product of one-hot colors, which take 80 bytes a cell.
    """
    # Only cells that are in both grids of a shown demonstration count: ``before`` is 0 for the others, and so is the
    # product. A change of color is an entry off the diagonal.
    batch = inputs.shape[0]
    both = ((inputs > PADDING) & (outputs > PADDING) & shown[..., None, None]).reshape(batch, -1, 1)
    each_color = lambda grids: jax.nn.one_hot(grids.reshape(batch, -1), NUM_COLORS, dtype=jnp.float32)
    before = each_color(inputs) * both.astype(jnp.float32)
    return jnp.einsum("bna,bns->bas", before, each_color(outputs))


def sure_colors(counts: Float32[Array, "B 10 10"]) -> Int8[Array, "B 2 10"]:
    """Return the tables of :func:`color_tables`: a color is sure where one entry of its row is the whole row's sum."""
    both_tables = jnp.stack([counts, counts * (1 - jnp.eye(NUM_COLORS, dtype=jnp.float32))[None]], axis=1)
    total = both_tables.sum(axis=-1)
    is_sure = (both_tables.max(axis=-1) == total) & (total > 0)
    return jnp.where(is_sure, jnp.argmax(both_tables, axis=-1), UNKNOWN).astype(jnp.int8)


def recolored(grids: Int8[Array, "N H W"], tables: Int8[Array, "N 2 10"]) -> Int8[Array, "N 2 H W"]:
    """Give every cell the color that each table has for it; cells outside of the grid stay outside."""
    count, height, width = grids.shape
    # A color is an index into its table; cells outside look up color 0, and ``where`` puts them back outside.
    index = jnp.broadcast_to(
        jnp.maximum(grids, 0).reshape(count, 1, -1).astype(jnp.int32), (count, NUM_TABLES, height * width)
    )
    found = jnp.take_along_axis(tables, index, axis=2).reshape(count, NUM_TABLES, height, width)
    return jnp.where(grids[:, None] > PADDING, found, jnp.int8(PADDING))


def line_readings(grids: Int8[Array, "N H W"]) -> Int8[Array, "N 8 H W"]:
    """Read the colored cells of each column and of each row, black ones left out, in one order or the other.

    A reading puts, at each cell, the color of the n-th colored cell of the line; n is the distance of the cell from an
    end of the line, and the colored cells are counted from an end. That gives four readings of columns and four of
    rows. Where the line has fewer colored cells a reading is black. The row ``0 3 0 5`` has the readings:

        counted from the left,  distance from the left   3 5 0 0    all colored cells fall to the left
        counted from the left,  distance from the right  0 0 5 3
        counted from the right, distance from the left   5 3 0 0
        counted from the right, distance from the right  0 0 3 5    all colored cells fall to the right
    """
    columns = jnp.swapaxes(_read_lines(jnp.swapaxes(grids, 1, 2)), 2, 3)
    return jnp.concatenate([columns, _read_lines(grids)], axis=1)


def enclosed_cells(grids: Int8[Array, "N H W"]) -> Bool[Array, "N H W"]:
    """Mark the black cells from which no path over black, up, down, left or right, leads to the edge of the grid.

    Black at the edge is reached; then black beside what is reached, again and again until nothing changes. In a ring of
    eight colored cells of a 3x3 grid the center stays unreached: it is enclosed.
    """
    black = grids == 0
    inside = jnp.pad(grids > PADDING, ((0, 0), (1, 1), (1, 1)))
    around = lambda mask: mask[:, :-2, 1:-1] | mask[:, 2:, 1:-1] | mask[:, 1:-1, :-2] | mask[:, 1:-1, 2:]

    # The state is the mask and the mask before it: the loop ends when a turn adds nothing.
    def spread(reached: tuple[Array, Array]) -> tuple[Array, Array]:
        before = reached[0]
        return before | (black & around(jnp.pad(before, ((0, 0), (1, 1), (1, 1))))), before

    at_edge = black & around(~inside)
    reached = jax.lax.while_loop(lambda state: jnp.any(state[0] != state[1]), spread, (at_edge, jnp.zeros_like(black)))
    return black & ~reached[0]


def _read_lines(lines: Int8[Array, "N L A"]) -> Int8[Array, "N 4 L A"]:
    inside = lines > PADDING
    colored = lines > 0
    index = jnp.arange(lines.shape[-1], dtype=jnp.int32)[None, None]
    # The row 0 3 0 5: before = 0 0 1 1 and after = 1 1 0 0 colored cells. The first reading takes for n = 0 the colored
    # cell with before = 0, which is 3, and for n = 1 the one with before = 1, which is 5: 3 5 0 0. Read at the
    # distances from the right, 3 2 1 0, it is 0 0 5 3.
    from_end = jnp.where(inside, inside.sum(axis=-1, keepdims=True, dtype=jnp.int32) - 1 - index, 0)
    before = jnp.cumsum(colored, axis=-1, dtype=jnp.int32) - colored.astype(jnp.int32)
    after = colored.sum(axis=-1, keepdims=True, dtype=jnp.int32) - before - 1
    readings = []
    for rank in (before, after):
        is_nth = (rank[..., None, :] == index[..., None]) & colored[..., None, :]
        nth = jnp.where(is_nth, lines[..., None, :], jnp.int8(0)).max(axis=-1)  # [N, L, n]
        readings += [nth, jnp.take_along_axis(nth, from_end, axis=-1)]
    return jnp.where(inside[:, None], jnp.stack(readings, axis=1), jnp.int8(PADDING))
