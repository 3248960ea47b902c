"""How many cells of a box are of some kind, for many boxes of one canvas: a few words of bits instead of all cells.

A word holds as many whole rows as fit 32 bits, so that a 10x10 canvas is four words and a 30x30 one thirty. Colors are
kept as four planes of bits. Whether cells are of a color, of which every box may name another, is then four exclusive
ors a word, with no table to look anything up in.
"""

from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Int32, UInt32

from jaxarc.constants import NUM_COLORS

_WORD: Final = 32
_PLANES: Final = 4  # bits of a color; -1, outside of the grid, has all of them
_NO_COLOR: Final = 14  # neither a color nor outside of the grid
_ALL: Final = 0xFFFFFFFF


class Boxes(NamedTuple):
    """k boxes, both corners inclusive."""

    top: Int32[Array, " k"]
    left: Int32[Array, " k"]
    bottom: Int32[Array, " k"]
    right: Int32[Array, " k"]


def pack_colors(grid: Int[Array, "N d"]) -> UInt32[Array, "words 4"]:
    """Turn colors -1 .. 9 into planes of bits.

    Raises:
        ValueError: a row has more than 32 cells.
    """
    height, width = grid.shape
    if width > _WORD:
        raise ValueError(f"a row must fit a word of {_WORD} bits, got {width} columns; use another model")
    rows = _rows_per_word(width)
    words = -(-height // rows)
    padded = jnp.pad(grid.astype(jnp.int32), ((0, words * rows - height), (0, 0)), constant_values=-1)
    cells = padded.astype(jnp.uint32).reshape(words, rows * width)
    place = jnp.arange(rows * width, dtype=jnp.uint32)[None]
    planes = [(((cells >> plane) & 1) << place).sum(axis=-1, dtype=jnp.uint32) for plane in range(_PLANES)]
    return jnp.stack(planes, axis=-1)


def active_cells(packed: UInt32[Array, "words 4"], width: int) -> UInt32[Array, " words"]:
    """Return the cells inside of the grid."""
    outside = packed[:, 0] & packed[:, 1] & packed[:, 2] & packed[:, 3]
    return ~outside & jnp.uint32(_ALL >> (_WORD - _rows_per_word(width) * width))


def covering_area(cells: UInt32[Array, " words"], width: int) -> Int32[Array, ""]:
    """Return rows times columns of the smallest rectangle around areas that begin at the top left."""
    rows, first_row = cells & jnp.uint32(_row_starts(_WORD // width, width)), cells[0] & jnp.uint32((1 << width) - 1)
    return count_cells(rows).sum(dtype=jnp.int32) * count_cells(first_row)


def equal_cells(one: UInt32[Array, "words 4"], other: UInt32[Array, "words 4"]) -> UInt32[Array, " words"]:
    """Return the cells that are alike, those outside of both grids too."""
    differ = one ^ other
    return ~(differ[:, 0] | differ[:, 1] | differ[:, 2] | differ[:, 3])


def cells_of_color(packed: UInt32[Array, "words 4"], color: Int32[Array, "*B"], word: int) -> UInt32[Array, "*B"]:
    """Return the cells of one word that have a color 0 .. 9; of another number, none."""
    color = jnp.where((color >= 0) & (color < NUM_COLORS), color, _NO_COLOR).astype(jnp.uint32)
    cells = jnp.uint32(_ALL)
    for plane in range(_PLANES):
        is_set = (color >> plane) & 1
        cells = cells & (packed[word, plane] ^ (is_set - 1))  # 1 leaves the plane as it is, 0 turns it round
    return cells


def cells_of_boxes(boxes: Boxes, shape: tuple[int, ...], word: int) -> UInt32[Array, " k"]:
    """Return the cells of one word that each box covers: its columns, once for each covered row by one product."""
    width = shape[1]
    rows = min(_rows_per_word(width), shape[0] - word * _rows_per_word(width))
    above = word * _rows_per_word(width)
    first, end = (
        jnp.clip((row - above) * width, 0, rows * width).astype(jnp.uint32) for row in (boxes.top, boxes.bottom + 1)
    )
    one = jnp.uint32(1)
    starts = ((one << end) - (one << first)) & jnp.uint32(_row_starts(rows, width))
    return starts * (_up_to(boxes.right) ^ (_up_to(boxes.left) >> 1))


def count_cells(bits: UInt32[Array, "*B"]) -> Int32[Array, "*B"]:
    """Count the cells of each word."""
    return jax.lax.population_count(bits).astype(jnp.int32)


def _up_to(end: Int32[Array, " k"]) -> UInt32[Array, " k"]:
    return (jnp.uint32(2) << end.astype(jnp.uint32)) - jnp.uint32(1)


def _row_starts(rows: int, width: int) -> int:
    return sum(1 << row * width for row in range(rows))


def _rows_per_word(width: int) -> int:
    return _WORD // width
