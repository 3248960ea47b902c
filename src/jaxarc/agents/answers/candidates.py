"""Where the color of an answer's cell may come from: copies of the input, turned, recolored or read along its lines."""

from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int8, Int32

from jaxarc.constants import NUM_COLORS, PADDING

NUM_SYMBOLS: Final = NUM_COLORS + 1  # the colors, and "outside"
OUTSIDE: Final = NUM_COLORS
NUM_COPIES: Final = 16  # 8 symmetries, 8 readings of lines


class ColorTables(NamedTuple):
    """What becomes of a color, by the demonstrations; rows sum to 1, or to 0 where nothing is known."""

    becomes: Float32[Array, "B 10 11"]  # at the same place of the output
    changes: Float32[Array, "B 10 11"]  # the same, of the cells that change


def symbols_of(grids: Int8[Array, "*N H W"]) -> Int32[Array, "*N H W"]:
    """Number the colors 0 .. 9, and what is outside 10."""
    return jnp.where(grids > PADDING, grids, jnp.int8(OUTSIDE)).astype(jnp.int32)


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
) -> ColorTables:
    """Count which color becomes which at the same place, over all demonstrations of a task."""
    batch = inputs.shape[0]
    both = (inputs > PADDING) & (outputs > PADDING) & shown[..., None, None]
    flat = lambda grids: symbols_of(grids).reshape(batch, -1)
    before = jax.nn.one_hot(flat(inputs), NUM_SYMBOLS, dtype=jnp.float32)[..., :NUM_COLORS]
    before = before * both.reshape(batch, -1, 1).astype(jnp.float32)
    counts = jnp.einsum("bna,bns->bas", before, jax.nn.one_hot(flat(outputs), NUM_SYMBOLS, dtype=jnp.float32))
    off_diagonal = 1 - jnp.eye(NUM_COLORS, NUM_SYMBOLS, dtype=jnp.float32)
    share = lambda table: table / jnp.maximum(table.sum(axis=-1, keepdims=True), 1)
    return ColorTables(share(counts), share(counts * off_diagonal[None]))


def look_up(table: Float32[Array, "B 10 11"], grids: Int8[Array, "B H W"]) -> Float32[Array, "B H W 11"]:
    """Say what the colors of a grid become; outside stays outside."""
    outside = jnp.zeros((1, 1, NUM_SYMBOLS), jnp.float32).at[..., OUTSIDE].set(1)
    whole = jnp.concatenate([table, jnp.broadcast_to(outside, (table.shape[0], 1, NUM_SYMBOLS))], axis=1)
    place = symbols_of(grids).reshape(grids.shape[0], -1, 1)
    return jnp.take_along_axis(whole, place, axis=1).reshape(*grids.shape, NUM_SYMBOLS)


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
