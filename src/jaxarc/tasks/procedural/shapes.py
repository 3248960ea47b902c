"""Rules about frames and about single cells: fill, crop, stamp, count."""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32, UInt32

from jaxarc.constants import NUM_COLORS
from jaxarc.fusion import materialize
from jaxarc.prng import mixed_radix_ints, to_randint
from jaxarc.tasks.procedural.drawing import (
    FlatMask,
    Number,
    between,
    box_mask,
    cell_mask,
    crop_canvas,
    draw_bits,
    draw_sides,
    draw_words,
    look_up,
    random_colors,
    scattered_colors,
    skip_color,
    split_key,
)
from jaxarc.tasks.procedural.rule import GridShape, PairKey, Rule
from jaxarc.types import FlatGrid, cell_columns, cell_rows

FRAME_SIDE = 3  # the smallest frame that encloses a cell
TWO_FRAMES = 8  # a side of this length has room for two frames and a line beside each


class _Border(NamedTuple):
    """The outline of a rectangle, one cell thick."""

    top: Number
    left: Number
    height: Number
    width: Number

    def room_mask(self, shape: GridShape) -> FlatMask:
        """Mark the cells inside the outline."""
        return box_mask(self.top + 1, self.left + 1, self.height - 2, self.width - 2, shape)

    def wall_mask(self, shape: GridShape) -> FlatMask:
        """Mark the outline."""
        return box_mask(self.top, self.left, self.height, self.width, shape) & ~self.room_mask(shape)

    def gap_mask(self, word: UInt32[Array, ""], shape: GridShape) -> FlatMask:
        """Mark one cell of the outline that is not a corner.

        One word gives three numbers: whether the gap is in an upright side, whether in the far one (right or bottom),
        and how far along it. A frame of height 5 has upright gaps in rows 1..3: ``1 + along % 3``.
        """
        is_upright, is_far, along = mixed_radix_ints(word, (2, 2, 2**14))
        along_rows = 1 + along % (self.height - 2)
        along_columns = 1 + along % (self.width - 2)
        row = jnp.where(is_upright == 1, along_rows, is_far * (self.height - 1))
        column = jnp.where(is_upright == 1, is_far * (self.width - 1), along_columns)
        return cell_mask(self.top + row, self.left + column, shape)


class FillEnclosed(Rule):
    """Fills the areas that walls enclose with the color of the task; the edge of the grid is no wall.

    Walls are the outlines of one to four rectangles, at least a cell apart. Some have a gap and enclose nothing; at
    least one is closed. Neighbors are the cells above, below, left and right.
    """

    smallest_side: ClassVar[int] = FRAME_SIDE
    min_side: int = eqx.field(static=True, default=5, kw_only=True)

    def draw(self, key: PairKey) -> Int32[Array, ""]:
        """Draw the color, 1..9; no wall has it."""
        return between(draw_words(key, 1)[0], 1, NUM_COLORS - 1)

    def make_pair(self, key: PairKey, drawn: Int32[Array, ""], grid_shape: GridShape) -> tuple[FlatGrid, FlatGrid]:
        """Draw a frame into each of up to four parts of the grid; a part may stay empty.

        A side of 8 or more is cut in two, so a grid has 1, 2 or 4 parts: ``down`` times ``across``. The loop runs over
        all four on every grid, and ``exists`` drops those that the grid lacks: shapes are static, sizes are not.
        """
        key_words, key_frames = split_key(key, 2)
        words = draw_words(key_words, 3)
        height, width = draw_sides(words[:2], self, grid_shape)
        down, across = ((side >= TWO_FRAMES).astype(jnp.int32) + 1 for side in (height, width))
        closed_part = to_randint(words[2], down * across)
        pair_input = output = jnp.zeros_like(cell_rows(grid_shape))
        for part, frame_words in enumerate(draw_bits(key_frames, 4 * 6).reshape(4, 6)):
            row, column = divmod(part, 2)
            top, tall = _place_in_part(frame_words[0:2], row, down, height)
            left, wide = _place_in_part(frame_words[2:4], column, across, width)
            frame = _Border(top, left, tall, wide)
            # Three of four parts have a frame, every second frame a gap; ``paint`` counts the eight colors that are
            # neither black nor the fill color: with fill color 3, paint 0, 1, 2, 3 is color 1, 2, 4, 5.
            presence, openness, paint = mixed_radix_ints(frame_words[4], (4, 2, NUM_COLORS - 2))
            must_close = closed_part == row * across + column
            exists = (row < down) & (column < across) & (must_close | (presence > 0))
            is_open = (openness == 1) & ~must_close
            wall = frame.wall_mask(grid_shape) & exists & ~(frame.gap_mask(frame_words[5], grid_shape) & is_open)
            color = (1 + paint + (1 + paint >= drawn).astype(jnp.int32)).astype(jnp.int8)
            fills = frame.room_mask(grid_shape) & exists & ~is_open
            pair_input = jnp.where(wall, color, pair_input)
            output = jnp.where(wall, color, jnp.where(fills, drawn.astype(jnp.int8), output))
        return crop_canvas(pair_input, height, width, grid_shape), crop_canvas(output, height, width, grid_shape)


class CropFrame(Rule):
    """Cuts out the area of a frame of the task's color, frame included; no other cell has the color.

    The frame is smaller than the grid, so output and input have different sizes.
    """

    smallest_side: ClassVar[int] = FRAME_SIDE
    min_side: int = eqx.field(static=True, default=4, kw_only=True)

    def draw(self, key: PairKey) -> Int32[Array, ""]:
        """Draw the color of the frame, 0..9."""
        return to_randint(draw_words(key, 1)[0], jnp.int32(NUM_COLORS))

    def make_pair(self, key: PairKey, drawn: Int32[Array, ""], grid_shape: GridShape) -> tuple[FlatGrid, FlatGrid]:
        """Draw a grid of the nine other colors and a frame on it."""
        key_words, key_colors = split_key(key, 2)
        words = draw_words(key_words, 6)
        sides = draw_sides(words[:2], self, grid_shape)
        top, tall = _draw_span(words[2:6:2], sides[0])
        left, wide = _draw_span(words[3:6:2], sides[1])
        frame = _Border(top, left, tall, wide)
        noise = skip_color(random_colors(key_colors, grid_shape, NUM_COLORS - 1), drawn)
        picture = jnp.where(frame.wall_mask(grid_shape), drawn.astype(jnp.int8), noise)
        # The cell (0, 0) of the output looks up the frame's corner (top, left), and the rest is cropped.
        rows = cell_rows(grid_shape) + top.astype(jnp.int8)
        columns = cell_columns(grid_shape) + left.astype(jnp.int8)
        output = look_up(picture, rows, columns, grid_shape)
        return crop_canvas(picture, *sides, grid_shape), crop_canvas(output, tall, wide, grid_shape)


def _draw_span(words: UInt32[Array, "2"], side: Number) -> tuple[Number, Number]:
    """Draw start and length of a frame that is shorter than the side of the grid."""
    # On a side of 6 a length of 3 .. 5 and a start that keeps it inside: length 5 starts at 0 or 1.
    length = between(words[0], jnp.minimum(FRAME_SIDE, side - 1), side - 1)
    return between(words[1], 0, side - length), length


def _place_in_part(words: UInt32[Array, "2"], index: int, parts: Number, side: Number) -> tuple[Number, Number]:
    """Draw start and length of a frame in one of the parts of a side.

    The last line of each of two parts stays free, so that frames are a cell apart: a side of 9 has parts of 4, rooms of
    3, and frames in 0..2 and 4..6.
    """
    part = side // parts
    room = part - (parts - 1)
    length = between(words[0], FRAME_SIDE, room)
    return index * part + between(words[1], 0, room - length), length


STAMP = tuple((row, column) for row in (-1, 0, 1) for column in (-1, 0, 1))  # offsets of a pattern's cells
MIDDLE = STAMP.index((0, 0))
MAX_COUNT = 9


class StampPattern(Rule):
    """Copies the 3x3 pattern of the task to every mark, its middle on the mark and in the color of the mark.

    A pattern has a cell beside its middle. Cells that fall off the grid are cut, and at least one cell changes. The
    marks of a pair share one color.
    """

    smallest_side: ClassVar[int] = 3
    min_side: int = eqx.field(static=True, default=5, kw_only=True)

    def draw(self, key: PairKey) -> Bool[Array, "9"]:
        """Draw the cells of the pattern, row by row; the middle is one of them."""
        # 1 .. 255: the bits of the eight cells around the middle, at least one of them set.
        around = between(draw_words(key, 1)[0], 1, 2 ** (len(STAMP) - 1) - 1)
        cells = [(around >> bit) & 1 for bit in range(len(STAMP) - 1)]
        return jnp.stack([*cells[:MIDDLE], jnp.int32(1), *cells[MIDDLE:]]) == 1

    def make_pair(self, key: PairKey, drawn: Bool[Array, "9"], grid_shape: GridShape) -> tuple[FlatGrid, FlatGrid]:
        """Scatter marks, as bits of one word for each row, and shift them by the pattern's offsets.

        Bit ``c`` of a row's word is column ``c``. Marks in columns 1 and 4 are ``0b10010``; a pattern cell one to the
        right adds ``0b100100``, one below adds the word to the next row. So a stamp costs nine shifts per row instead
        of nine lookups per cell.
        """
        key_words, key_rows = split_key(key, 2)
        words = draw_words(key_words, 5)
        height, width = draw_sides(words[:2], self, grid_shape)
        row = between(words[2], 1, height - 2)
        column = between(words[3], 1, width - 2)
        row_change, column_change = _first_offset(drawn)
        bits = draw_bits(key_rows, 3 * grid_shape[0]).reshape(3, grid_shape[0])
        rows = jnp.arange(grid_shape[0], dtype=jnp.int32)
        # A bit of three words at once: one cell in eight has a mark. One mark is certain, and the cell of its first
        # pattern offset is empty, so that the stamp changes at least this cell.
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
        """Deal the cells out to as many groups as can be counted, like cards, and mark a cell in some groups.

        With 3 groups cell 0 goes to group 0, cell 1 to group 1, cell 2 to group 2, cell 3 to group 0 again. Groups
        share no cell, so a cell drawn in each of ``count`` groups makes exactly ``count`` different cells, without
        sorting.
        """
        key_words, key_colors, key_cells = split_key(key, 3)
        words = draw_words(key_words, 5)
        height, width = draw_sides(words[:2], self, grid_shape)
        # Group g holds the cells g, g + groups, g + 2 groups, ...: of 10 cells and 3 groups group 0 has (10 - 0 + 2) //
        # 3 = 4. ``first`` rotates which groups are used, so no cell is preferred.
        groups = min(MAX_COUNT, grid_shape[1])
        count = between(words[2], 1, groups)
        first = between(words[3], 0, groups - 1)
        row_starts = cell_rows(grid_shape).astype("int16") * width.astype(jnp.int16)
        cell = row_starts + cell_columns(grid_shape).astype("int16")
        is_counted = jnp.zeros(cell.shape, jnp.bool_)
        for group, word in enumerate(draw_bits(key_cells, groups)):
            drawn_cell = group + groups * to_randint(word, (height * width - group + groups - 1) // groups)
            is_counted = is_counted | ((cell == drawn_cell.astype(jnp.int16)) & ((group + first) % groups < count))
        others = scattered_colors(key_colors, grid_shape, words[4])
        color = drawn.astype(jnp.int8)
        others = jnp.where(others == color, jnp.int8(0), others)
        picture = jnp.where(is_counted, color, others)
        bar = jnp.full_like(picture, 0) + color
        return crop_canvas(picture, height, width, grid_shape), crop_canvas(bar, jnp.int32(1), count, grid_shape)


def _bit(index: Number) -> UInt32[Array, ""]:
    return jnp.uint32(1) << index.astype(jnp.uint32)


def _first_offset(pattern: Bool[Array, "9"]) -> tuple[Number, Number]:
    """Row and column of the pattern's first cell beside the middle."""
    # The pattern's cells are numbered row by row: index 5 is row 5 // 3 - 1 = 0 and
    # column 5 % 3 - 1 = 1, right of the middle.
    index = jnp.argmax(pattern.at[MIDDLE].set(False)).astype(jnp.int32)
    return index // 3 - 1, index % 3 - 1


def _shift(rows: UInt32[Array, " H"], down: int, right: int) -> UInt32[Array, " H"]:
    """Shift marks on the grid; those that leave it at the top, the bottom or the left are lost."""
    empty_row = jnp.zeros(1, jnp.uint32)
    # Rows move by whole words, columns by bits; bit 0 is the leftmost column, so a shift to the
    # left of the word moves marks to the right.
    if down:
        rows = jnp.concatenate([empty_row, rows[:-1]] if down > 0 else [rows[1:], empty_row])
    return rows << jnp.uint32(right) if right >= 0 else rows >> jnp.uint32(-right)


def _row_bits(rows: UInt32[Array, " H"], shape: GridShape) -> FlatMask:
    """Turn a word for each row into a cell for each bit."""
    return ((jnp.repeat(rows, shape[1]) >> cell_columns(shape).astype("uint32")) & jnp.uint32(1)) != 0
