"""Random sizes, colors and shapes on flat grids, and the cells of a grid by row and column.

A canvas of H x W cells is a flat array of H * W colors. Cell 7 of a canvas with 5 columns is row 1, column 2. Sizes and
coordinates are int32 scalars; they become int8 where they meet the cells, which is the fastest on a CPU.
"""

import math
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int8, Int32, UInt32

from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.fusion import materialize
from jaxarc.prng import fast_bits, from_key_data, random_bits, split_words, to_randint
from jaxarc.tasks.procedural.rule import GridShape, PairKey, Rule
from jaxarc.types import FlatGrid, cell_columns, cell_rows

FlatMask = Bool[Array, " HW"]
Number = Int32[Array, ""]
Word = UInt32[Array, ""]


def split_key(key: PairKey, count: int) -> list[PairKey]:
    """Split a key like ``jax.random.split``, into a list of ``count`` keys."""
    return [from_key_data(words) for words in split_words(key, count)]


def draw_words(key: PairKey, count: int) -> UInt32[Array, " count"]:
    """Draw random words, each for one number; before any cell is drawn, so that no cell draws them again."""
    return materialize(random_bits(key, count))


def draw_bits(key: PairKey, count: int) -> UInt32[Array, " count"]:
    """Draw many random words, one for each cell or so; before anything that uses them."""
    return materialize(fast_bits(key, count))


def between(word: Word, low: int | Number, high: int | Number) -> Number:
    """Turn a random word into a number in ``low .. high``, both included."""
    # Both ends belong to the range, so it has high - low + 1 numbers: 1 .. 9 are nine.
    low = jnp.asarray(low, jnp.int32)
    high = jnp.asarray(high, jnp.int32)
    return low + to_randint(word, high - low + 1)


def draw_sides(words: UInt32[Array, "2"], rule: Rule, shape: GridShape) -> tuple[Number, Number]:
    """Draw rows and columns of a grid: from the rule's smallest side to its largest, or to the canvas's."""
    height, width = (between(words[axis], rule.min_side, min(rule.max_side, shape[axis])) for axis in (0, 1))
    return height, width


def random_colors(key: PairKey, shape: GridShape, count: int = NUM_COLORS) -> FlatGrid:
    """Draw a color in ``0 .. count - 1`` for every cell of the canvas."""
    return _digit(draw_bits(key, math.prod(shape)), count)


def scattered_colors(key: PairKey, shape: GridShape, share: Word) -> FlatGrid:
    """Color a share of the cells with 1..9 and leave the others black.

    Args:
        key: of the cells.
        shape: rows and columns of the canvas.
        share: a random word; the chance of a cell to be colored is uniform in 1/8 .. 5/8.
    """
    bits = draw_bits(key, math.prod(shape))
    # The low byte, 0..255, decides whether the cell is colored: the threshold is 32 plus the top 7 bits of ``share``,
    # 32..159. The upper half of the word is left for the color.
    is_colored = (bits & jnp.uint32(255)) < jnp.uint32(32) + (share >> jnp.uint32(25))
    return jnp.where(is_colored, _digit(bits, NUM_COLORS - 1) + jnp.int8(1), jnp.int8(0))


def skip_color(colors: FlatGrid, color: Number) -> FlatGrid:
    """Turn colors 0..8 into the nine colors other than ``color``, keeping their order: for 3, 2 -> 2 and 3 -> 4."""
    return colors + (colors >= color.astype(jnp.int8)).astype(jnp.int8)


def box_mask(top: Number, left: Number, height: Number, width: Number, shape: GridShape) -> FlatMask:
    """Mark the cells of a rectangle; a side of 0 or less marks nothing."""
    rows = cell_rows(shape)
    columns = cell_columns(shape)
    top, left, bottom, right = (x.astype(jnp.int8) for x in (top, left, top + height, left + width))
    return (top <= rows) & (bottom > rows) & (left <= columns) & (right > columns)


def cell_mask(row: Number, column: Number, shape: GridShape) -> FlatMask:
    """Mark one cell."""
    return (row.astype(jnp.int8) == cell_rows(shape)) & (column.astype(jnp.int8) == cell_columns(shape))


def crop_canvas(colors: FlatGrid, height: Number, width: Number, shape: GridShape) -> FlatGrid:
    """Keep the top-left area of the given size and make padding of the rest."""
    # Everything is drawn on the whole canvas and cropped here, since the size of a
    # grid is not known when it is compiled.
    inside = (cell_rows(shape) < height.astype(jnp.int8)) & (cell_columns(shape) < width.astype(jnp.int8))
    return jnp.where(inside, colors, jnp.int8(PADDING))


def look_up(grid: FlatGrid, rows: Any, columns: Any, shape: GridShape) -> FlatGrid:
    """Take for every cell the color at a row and a column, both int8[HW]; outside the canvas it is any color."""
    # int8 holds a row or a column, but not the product of two: 29 * 30 = 870.
    index = rows.astype(jnp.int32) * jnp.int32(shape[1]) + columns.astype(jnp.int32)
    return materialize(grid).at[index].get(mode="clip")


def _digit(bits: UInt32[Array, " HW"], count: int) -> Int8[Array, " HW"]:
    """Turn the upper half of each word into a number in ``0 .. count - 1``.

    The half is a fraction of 2**16, and multiplying scales it: 0xC000 is three quarters, of ten colors that is
    ``0xC000 * 10 >> 16 = 7``.
    """
    return (((bits >> jnp.uint32(16)) * jnp.uint32(count)) >> jnp.uint32(16)).astype(jnp.int8)
