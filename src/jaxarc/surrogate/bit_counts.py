"""Count the cells of a color in many boxes of one canvas, with bits: a few words instead of all cells.

A 32-bit word holds as many whole rows as fit, so a 10x10 canvas has four words of three rows and a 30x30 one thirty of
one row. Bit ``row * width + column`` of a word is a cell; bit 0 is the top left. The row 1 0 1
is the bits 0b101.

A color 0 .. 9 has four bits, so a grid is four planes of bits: plane 1 holds the cells whose color has bit 1 set. The
colors 3 = 0b0011 and 1 = 0b0001 in two neighboring cells are the planes 0b11, 0b01, 0, 0. To find the cells of a color,
each plane is kept where the color's bit is 1 and inverted where it is 0, and the four are combined by *and*: four
exclusive ors a word for each box, and no lookup table, though every box may name another color.
"""

from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Int32, UInt32

from jaxarc.constants import NUM_COLORS

_WORD: Final = 32
_PLANES: Final = 4  # bits of a color; -1, outside of the grid, has all of them
_NO_COLOR: Final = 14  # no cell has it: colors are 0 .. 9, and -1 has all four bits, 15
_ALL: Final = 0xFFFFFFFF


class Boxes(NamedTuple):
    """k boxes, both corners inclusive."""

    top: Int32[Array, " k"]
    left: Int32[Array, " k"]
    bottom: Int32[Array, " k"]
    right: Int32[Array, " k"]


def pack_colors(grid: Int[Array, "N d"]) -> UInt32[Array, "words 4"]:
    """Turn colors -1 .. 9 into planes of bits; the last word is padded by -1."""
    height, width = grid.shape
    if width > _WORD:
        raise ValueError(f"a row must fit a word of {_WORD} bits, got {width} columns; use another model")
    # On 10x10 a word has 32 // 10 = 3 rows, so there are 4 words, and the last one has row 9 and two rows of -1.
    rows = _rows_per_word(width)
    words = -(-height // rows)  # rounded up
    padded = jnp.pad(grid.astype(jnp.int32), ((0, words * rows - height), (0, 0)), constant_values=-1)
    # As an unsigned number -1 has all bits set, so its four lowest bits are 1 1 1 1.
    cells = padded.astype(jnp.uint32).reshape(words, rows * width)
    # Each plane takes one bit of every color and moves it to the cell's place; the sum joins them, since no two cells
    # share a place. The colors 3 and 1 give plane 0 = 1 << 0 | 1 << 1 = 0b11 and plane 1 = 1 << 0 = 0b01.
    bit = jnp.arange(rows * width, dtype=jnp.uint32)[None]
    planes = [(((cells >> plane) & 1) << bit).sum(axis=-1, dtype=jnp.uint32) for plane in range(_PLANES)]
    return jnp.stack(planes, axis=-1)


def active_cells(packed: UInt32[Array, "words 4"], width: int) -> UInt32[Array, " words"]:
    """Return the cells inside of the grid: not all four planes are set, and the bit belongs to a row of the word."""
    outside = packed[:, 0] & packed[:, 1] & packed[:, 2] & packed[:, 3]
    # Rows of 10 cells fill 30 of the 32 bits; the shift by 2 clears the two bits that belong to no cell.
    return ~outside & jnp.uint32(_ALL >> (_WORD - _rows_per_word(width) * width))


def covering_area(cells: UInt32[Array, " words"], width: int) -> Int32[Array, ""]:
    """Return rows times columns of the smallest rectangle around areas that begin at the top left.

    Such areas cover column 0 of each of their rows and row 0 of each of their columns, so counting the first column
    and the first row is enough.
    """
    # A 2x3 area on a canvas of 4 columns has the bits 0, 1, 2 and 4, 5, 6. Bits 0 and 4 start rows, so there are 2
    # rows; bits 0 .. 2 are in row 0, so there are 3 columns, and the area is 6.
    first_column = cells & jnp.uint32(_row_starts(_WORD // width, width))
    first_row = cells[0] & jnp.uint32((1 << width) - 1)
    return count_cells(first_column).sum(dtype=jnp.int32) * count_cells(first_row)


def equal_cells(one: UInt32[Array, "words 4"], other: UInt32[Array, "words 4"]) -> UInt32[Array, " words"]:
    """Return the cells of equal color, those outside of both grids too."""
    # Two colors are equal where no plane differs: 3 = 0b0011 and 1 = 0b0001 differ in plane 1.
    differ = one ^ other
    return ~(differ[:, 0] | differ[:, 1] | differ[:, 2] | differ[:, 3])


def cells_of_color(packed: UInt32[Array, "words 4"], color: Int32[Array, "*B"], word: int) -> UInt32[Array, "*B"]:
    """Return the cells of one word that have a color 0 .. 9; none for another number."""
    color = jnp.where((color >= 0) & (color < NUM_COLORS), color, _NO_COLOR).astype(jnp.uint32)
    # A cell stays only if all four of its bits agree with the color's: for color 1 = 0b0001 plane 0 is kept as it
    # is, and planes 1, 2 and 3 are inverted.
    cells = jnp.uint32(_ALL)
    for plane in range(_PLANES):
        is_set = (color >> plane) & 1
        cells = cells & (packed[word, plane] ^ (is_set - 1))  # 1 - 1 = 0 keeps the plane, 0 - 1 = 0xFFFFFFFF inverts it
    return cells


def cells_of_boxes(boxes: Boxes, shape: tuple[int, ...], word: int) -> UInt32[Array, " k"]:
    """Return the cells of one word that each box covers: the bits of its columns, times the bits that start its rows.

    For a box of rows 1 .. 2 and columns 1 .. 2 of a canvas of 4 columns, the columns are 0b0110. The starts of all rows
    are 0b...0001_0001_0001, of which the box covers bits 4 and 8. Their product puts a copy of the columns at each
    start: 0b0110 * (1 << 4 | 1 << 8) = 0b0110_0110_0000. Copies never overlap, since columns are fewer than a row's.
    """
    width = shape[1]
    # The last word may have fewer rows: on 10x10 the words 0 .. 2 have three rows each, and word 3 has one.
    rows = min(_rows_per_word(width), shape[0] - word * _rows_per_word(width))
    above = word * _rows_per_word(width)
    # The box's rows as a range of bits of this word, clipped to the word. Rows 2 .. 4 on 10x10 are bits 20 .. 29 of
    # word 0 and bits 0 .. 19 of word 1; in words 2 and 3 first equals end, so the range is empty.
    first = jnp.clip((boxes.top - above) * width, 0, rows * width).astype(jnp.uint32)
    end = jnp.clip((boxes.bottom + 1 - above) * width, 0, rows * width).astype(jnp.uint32)
    one = jnp.uint32(1)
    covered = (one << end) - (one << first)  # bits first .. end - 1
    starts = covered & jnp.uint32(_row_starts(rows, width))
    # Columns 1 .. 2 are the bits 0 .. 2 without bit 0: 0b111 ^ 0b001 = 0b110.
    columns = _up_to(boxes.right) ^ (_up_to(boxes.left) >> 1)  # bits left .. right
    return starts * columns


def count_cells(bits: UInt32[Array, "*B"]) -> Int32[Array, "*B"]:
    """Count the cells of each word."""
    return jax.lax.population_count(bits).astype(jnp.int32)


def _up_to(end: Int32[Array, " k"]) -> UInt32[Array, " k"]:
    """Return the bits 0 .. end."""
    return (jnp.uint32(2) << end.astype(jnp.uint32)) - jnp.uint32(1)


def _row_starts(rows: int, width: int) -> int:
    """Return the first bit of each row."""
    return sum(1 << row * width for row in range(rows))


def _rows_per_word(width: int) -> int:
    return _WORD // width
