"""Rules that move things: an object, or everything that falls."""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32, UInt32

from jaxarc.constants import NUM_COLORS
from jaxarc.fusion import materialize
from jaxarc.prng import to_randint
from jaxarc.tasks.procedural.drawing import (
    FlatMask,
    Number,
    Word,
    between,
    box_mask,
    crop_canvas,
    draw_bits,
    draw_sides,
    draw_words,
    look_up,
    random_colors,
    split_key,
)
from jaxarc.tasks.procedural.rule import GridShape, PairKey, Rule
from jaxarc.types import FlatGrid, cell_columns, cell_rows

OBJECT_SIDE = 3  # an object fits a box of 3x3
REACH = 2  # a task's vector has rows and columns in -2 .. 2


class MoveObject(Rule):
    """Moves an object of one color by the vector of the task, or in the direction of the task until the wall.

    The object always moves by at least a cell, and all of it stays on the grid.
    """

    smallest_side: ClassVar[int] = OBJECT_SIDE + REACH
    to_wall: bool = eqx.field(static=True, default=False)
    min_side: int = eqx.field(static=True, default=OBJECT_SIDE + REACH, kw_only=True)

    def draw(self, key: PairKey) -> Int32[Array, "2"]:
        """Draw rows and columns to move by, not both 0; until the wall, one of the four unit vectors."""
        word = draw_words(key, 1)[0]
        if self.to_wall:
            return jnp.array([[-1, 0], [1, 0], [0, -1], [0, 1]], jnp.int32)[to_randint(word, jnp.int32(4))]
        side = 2 * REACH + 1
        # The 25 vectors are numbered row by row; 24 are drawn, and those from the middle on, (0, 0), move up by one.
        index = to_randint(word, jnp.int32(side * side - 1))
        index = index + (index >= side * side // 2).astype(jnp.int32)
        return jnp.stack([index // side - REACH, index % side - REACH])

    def make_pair(self, key: PairKey, drawn: Int32[Array, "2"], grid_shape: GridShape) -> tuple[FlatGrid, FlatGrid]:
        """Draw an object on black where it has room to move."""
        words = draw_words(key, 8)
        sides = draw_sides(words[:2], self, grid_shape)
        lengths = between(words[2], 1, OBJECT_SIDE), between(words[3], 1, OBJECT_SIDE)
        color = between(words[4], 1, NUM_COLORS - 1).astype(jnp.int8)
        cells = _object_cells(words[5], *lengths)
        top, new_top = self._start_and_end(words[6], sides[0], lengths[0], drawn[0])
        left, new_left = self._start_and_end(words[7], sides[1], lengths[1], drawn[1])
        pair_input, output = (
            jnp.where(_object_mask(cells, *corner, *lengths, grid_shape), color, jnp.int8(0))
            for corner in ((top, left), (new_top, new_left))
        )
        return crop_canvas(pair_input, *sides, grid_shape), crop_canvas(output, *sides, grid_shape)

    def _start_and_end(self, word: Word, side: Number, length: Number, step: Number) -> tuple[Number, Number]:
        """Draw where the object starts along one side of the grid, and find where it ends.

        An object of length 2 on a side of 6 starts in 0..4; with a step of -2 it starts in 2..4 and stays inside.
        """
        # The start range is cut on the side that the step leads to: side 6, length 2
        # and step 3 leave the starts 0 .. 1.
        room = side - length
        start = between(word, jnp.maximum(-step, 0), room - jnp.maximum(step, 0))
        wall = jnp.where(step == 0, start, jnp.where(step > 0, room, 0))
        return start, wall if self.to_wall else start + step


class Gravity(Rule):
    """Lets every colored cell fall as far as it can, in the direction of the task; cells keep their order.

    At least one cell falls.
    """

    smallest_side: ClassVar[int] = 2

    def draw(self, key: PairKey) -> Int32[Array, ""]:
        """Draw the direction: 0 up, 1 down, 2 left, 3 right."""
        return to_randint(draw_words(key, 1)[0], jnp.int32(4))

    def make_pair(self, key: PairKey, drawn: Int32[Array, ""], grid_shape: GridShape) -> tuple[FlatGrid, FlatGrid]:
        """Draw stacks of colors, one for each line of falling, and the gaps between the colors in the input.

        A line has a word, whose bit ``n`` says whether there is a color ``n`` cells above the floor. The number of set
        bits below it is the color's index in the stack, and the stack alone is the output. With the word ``0b1010`` and
        the stack 5, 7 the input has, from the floor up, black, 5, black, 7; the output has 5, 7. Cells fall without a
        loop over steps, and their order is kept by construction.
        """
        key_words, key_colors, key_lines = split_key(key, 3)
        words = draw_words(key_words, 5)
        height, width = draw_sides(words[:2], self, grid_shape)
        # All four directions by one computation: ``line`` numbers the lines along which cells fall, and ``above`` is a
        # cell's distance from the floor, 0 on it. Falling down on 5 rows, row 4 has distance 0.
        is_sideways = drawn >= 2
        is_to_end = drawn % 2 == 1
        length = jnp.where(is_sideways, width, height)
        num_lines = jnp.where(is_sideways, height, width)
        rows = jnp.asarray(cell_rows(grid_shape))
        columns = jnp.asarray(cell_columns(grid_shape))
        line = jnp.where(is_sideways, rows, columns)
        above = jnp.where(is_sideways, columns, rows)
        above = jnp.where(is_to_end, (length - 1).astype(jnp.int8) - above, above)

        longest = max(grid_shape)
        loose_line = between(words[2], 0, num_lines - 1)
        gap = between(words[3], 0, length - 2)
        bits = materialize(_line_bits(key_lines, longest, words[4], loose_line, gap))[line]
        stacks = random_colors(key_colors, (longest, longest), NUM_COLORS - 1) + jnp.int8(1)
        # Counting the set bits below a cell's own gives its place in the stack: of the bits 0b1101 the cell at distance
        # 3 has two below it. After the fall the cells at distances 0, 1, 2 are filled, the number of bits in the line.
        bit = jnp.uint32(1) << jnp.maximum(above, jnp.int8(0)).astype(jnp.uint32)
        below_it = jax.lax.population_count(bits & (bit - jnp.uint32(1))).astype(jnp.int8)
        in_line = jax.lax.population_count(bits & ((jnp.uint32(1) << length.astype(jnp.uint32)) - jnp.uint32(1)))
        black = jnp.int8(0)
        pair_input = jnp.where((bits & bit) != 0, look_up(stacks, line, below_it, (longest, longest)), black)
        settled = look_up(stacks, line, above, (longest, longest))
        output = jnp.where(above < in_line.astype(jnp.int8), settled, black)
        return crop_canvas(pair_input, height, width, grid_shape), crop_canvas(output, height, width, grid_shape)


def _object_cells(word: Word, height: Number, width: Number) -> Word:
    """Draw which cells of a box are colored, bit ``3 * row + column``; they touch all four sides of the box.

    Two opposite corners are always colored, which touch all sides: falling is top left and bottom right, bits 0 and 8
    of a 3x3 box; rising is bottom left and top right, bits 6 and 2. One bit of the word chooses, the bits from 8 on
    color more cells.
    """
    # A box of 2 rows and 3 columns has its last row at bit 3 and its last column at 2: falling is 1 |
    # 1 << 5, and rising is 1 << 3 | 1 << 2.
    last_row = OBJECT_SIDE * (height - 1)
    last_column = width - 1
    falling = jnp.uint32(1) | (jnp.uint32(1) << (last_row + last_column).astype(jnp.uint32))
    rising = (jnp.uint32(1) << last_row.astype(jnp.uint32)) | (jnp.uint32(1) << last_column.astype(jnp.uint32))
    return (word >> jnp.uint32(8)) | jnp.where((word & jnp.uint32(1)) == 0, falling, rising)


def _object_mask(cells: Word, top: Number, left: Number, height: Number, width: Number, shape: GridShape) -> FlatMask:
    bit = (cell_rows(shape) - top.astype(jnp.int8)) * jnp.int8(OBJECT_SIDE)
    bit = bit + (cell_columns(shape) - left.astype(jnp.int8))
    # Outside the box the bit means nothing; ``& 15`` keeps the shift in range there, and the box mask drops the cell.
    is_set = (cells >> (bit & jnp.int8(15)).astype(jnp.uint32)) & jnp.uint32(1) != 0
    return box_mask(top, left, height, width, shape) & is_set


def _line_bits(key: PairKey, count: int, share: Word, line: Number, gap: Number) -> UInt32[Array, " L"]:
    """Draw the words of the lines, half or a quarter of the bits set, with one gap below a color.

    In one line bit ``gap`` is cleared and the bit above it is set, so that at least one color falls.
    """
    # The *and* of two random words has a quarter of its bits set.
    dense = draw_bits(key, 2 * count).reshape(2, count)
    bits = jnp.where(share < jnp.uint32(2**31), dense[0], dense[0] & dense[1])
    loose = jnp.uint32(1) << gap.astype(jnp.uint32)
    return jnp.where(jnp.arange(count, dtype=jnp.int32) == line, (bits & ~loose) | (loose << jnp.uint32(1)), bits)
