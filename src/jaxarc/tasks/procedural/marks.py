"""Rules about single colored cells: stamp a pattern at each, count them."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32, UInt32

from jaxarc.constants import NUM_COLORS
from jaxarc.fusion import materialize
from jaxarc.prng import to_randint
from jaxarc.tasks.procedural.drawing import (
    FlatMask,
    Number,
    between,
    cell_columns,
    cell_rows,
    crop_canvas,
    draw_bits,
    draw_sides,
    draw_words,
    scattered_colors,
    split_key,
)
from jaxarc.tasks.procedural.rule import GridShape, PairKey, Rule
from jaxarc.types import FlatGrid

STAMP = tuple((row, column) for row in (-1, 0, 1) for column in (-1, 0, 1))  # offsets of a pattern's cells
MIDDLE = STAMP.index((0, 0))
MAX_COUNT = 9


class StampPattern(Rule):
    """Copies the 3x3 pattern of the task to every mark, its middle on the mark and in the color of the mark.

    A pattern has a cell beside its middle, what falls off the grid is cut, and at least one cell changes. The marks of
    a pair share one color.
    """

    smallest_side: ClassVar[int] = 3
    min_side: int = eqx.field(static=True, default=5, kw_only=True)

    def draw(self, key: PairKey) -> Bool[Array, "9"]:
        """Draw the cells of the pattern, row by row; the middle is one of them."""
        around = between(draw_words(key, 1)[0], 1, 2 ** (len(STAMP) - 1) - 1)
        cells = [(around >> place) & 1 for place in range(len(STAMP) - 1)]
        return jnp.stack([*cells[:MIDDLE], jnp.int32(1), *cells[MIDDLE:]]) == 1

    def make_pair(self, key: PairKey, drawn: Bool[Array, "9"], grid_shape: GridShape) -> tuple[FlatGrid, FlatGrid]:
        """Scatter marks, as bits of one word for each row, and shift them by the pattern's offsets."""
        key_words, key_rows = split_key(key, 2)
        words = draw_words(key_words, 5)
        height, width = draw_sides(words[:2], self, grid_shape)
        row, column = between(words[2], 1, height - 2), between(words[3], 1, width - 2)
        row_change, column_change = _first_offset(drawn)
        bits = draw_bits(key_rows, 3 * grid_shape[0]).reshape(3, grid_shape[0])
        rows = jnp.arange(grid_shape[0], dtype=jnp.int32)
        marks = jnp.where(rows < height, bits[0] & bits[1] & bits[2], jnp.uint32(0))
        marks = jnp.where(rows == row, marks | _bit(column), marks)
        marks = jnp.where(rows == row + row_change, marks & ~_bit(column + column_change), marks)
        marks = marks & (_bit(width) - jnp.uint32(1))
        stamped = jnp.zeros_like(marks)
        for (down, right), is_set in zip(STAMP, drawn, strict=True):
            stamped = stamped | jnp.where(is_set, _shift(marks, down, right), jnp.uint32(0))
        color = between(words[4], 1, NUM_COLORS - 1).astype(jnp.int8)
        pair_input, output = (
            crop_canvas(jnp.where(_row_bits(bits, grid_shape), color, jnp.int8(0)), height, width, grid_shape)
            for bits in materialize((marks, stamped))
        )
        return pair_input, output


class CountCells(Rule):
    """Counts the cells of the task's color: the output is one row, as long as the count, of this color.

    The count is in 1 .. min(9, columns of the canvas). Other colors, also touching ones, do not matter.
    """

    smallest_side: ClassVar[int] = 3

    def draw(self, key: PairKey) -> Int32[Array, ""]:
        """Draw the color that counts, 1..9."""
        return between(draw_words(key, 1)[0], 1, NUM_COLORS - 1)

    def make_pair(self, key: PairKey, drawn: Int32[Array, ""], grid_shape: GridShape) -> tuple[FlatGrid, FlatGrid]:
        """Deal the cells out to as many groups as can be counted, like cards, and mark a cell in some groups."""
        key_words, key_colors, key_places = split_key(key, 3)
        words = draw_words(key_words, 5)
        height, width = draw_sides(words[:2], self, grid_shape)
        groups = min(MAX_COUNT, grid_shape[1])
        count, first = between(words[2], 1, groups), between(words[3], 0, groups - 1)
        rows, columns = cell_rows(grid_shape), cell_columns(grid_shape)
        place = rows.astype("int16") * width.astype(jnp.int16) + columns.astype("int16")
        is_counted = jnp.zeros(place.shape, jnp.bool_)
        for group, word in enumerate(draw_bits(key_places, groups)):
            drawn_place = group + groups * to_randint(word, (height * width - group + groups - 1) // groups)
            is_counted = is_counted | ((place == drawn_place.astype(jnp.int16)) & ((group + first) % groups < count))
        others = scattered_colors(key_colors, grid_shape, words[4])
        color = drawn.astype(jnp.int8)
        others = jnp.where(others == color, jnp.int8(0), others)
        picture = jnp.where(is_counted, color, others)
        bar = jnp.full_like(picture, 0) + color
        return crop_canvas(picture, height, width, grid_shape), crop_canvas(bar, jnp.int32(1), count, grid_shape)


def _bit(place: Number) -> UInt32[Array, ""]:
    return jnp.uint32(1) << place.astype(jnp.uint32)


def _first_offset(pattern: Bool[Array, "9"]) -> tuple[Number, Number]:
    """Row and column of the pattern's first cell beside the middle."""
    place = jnp.argmax(pattern.at[MIDDLE].set(False)).astype(jnp.int32)
    return place // 3 - 1, place % 3 - 1


def _shift(rows: UInt32[Array, " H"], down: int, right: int) -> UInt32[Array, " H"]:
    """Shift marks on the grid; what leaves it at the top, the bottom or the left is gone."""
    nothing = jnp.zeros(1, jnp.uint32)
    if down:
        rows = jnp.concatenate([nothing, rows[:-1]] if down > 0 else [rows[1:], nothing])
    return rows << jnp.uint32(right) if right >= 0 else rows >> jnp.uint32(-right)


def _row_bits(rows: UInt32[Array, " H"], shape: GridShape) -> FlatMask:
    """Turn a word for each row into a cell for each bit."""
    return ((jnp.repeat(rows, shape[1]) >> cell_columns(shape).astype("uint32")) & jnp.uint32(1)) != 0
