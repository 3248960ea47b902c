"""Rules about rectangular frames: fill what they enclose, cut out what they mark."""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Int32, UInt32

from jaxarc.constants import NUM_COLORS
from jaxarc.prng import mixed_radix_ints, to_randint
from jaxarc.tasks.procedural.drawing import (
    FlatMask,
    Number,
    between,
    box_mask,
    cell_columns,
    cell_mask,
    cell_rows,
    crop_canvas,
    draw_bits,
    draw_sides,
    draw_words,
    look_up,
    random_colors,
    skip_color,
    split_key,
)
from jaxarc.tasks.procedural.rule import GridShape, PairKey, Rule
from jaxarc.types import FlatGrid

FRAME_SIDE = 3  # the smallest frame that encloses a cell
TWO_FRAMES = 8  # a side of this length has room for two frames and a line beside each


class Border(NamedTuple):
    """The outline of a rectangle, one cell thick."""

    top: Number
    left: Number
    height: Number
    width: Number

    def room_mask(self, shape: GridShape) -> FlatMask:
        """Mark what the frame surrounds."""
        return box_mask(self.top + 1, self.left + 1, self.height - 2, self.width - 2, shape)

    def wall_mask(self, shape: GridShape) -> FlatMask:
        """Mark the outline."""
        return box_mask(self.top, self.left, self.height, self.width, shape) & ~self.room_mask(shape)

    def gap_mask(self, word: UInt32[Array, ""], shape: GridShape) -> FlatMask:
        """Mark one cell of the outline that is not a corner."""
        is_upright, is_far, place = mixed_radix_ints(word, (2, 2, 2**14))
        along_rows, along_columns = 1 + place % (self.height - 2), 1 + place % (self.width - 2)
        row = jnp.where(is_upright == 1, along_rows, is_far * (self.height - 1))
        column = jnp.where(is_upright == 1, is_far * (self.width - 1), along_columns)
        return cell_mask(self.top + row, self.left + column, shape)


class FillEnclosed(Rule):
    """Fills what walls enclose, the edge of the grid is none, with the color of the task.

    Walls are the frames of one to four rectangles, at least a cell apart. Some have a gap and enclose nothing; at least
    one is closed. Neighbors are the cells above, below, left and right.
    """

    smallest_side: ClassVar[int] = FRAME_SIDE
    min_side: int = eqx.field(static=True, default=5, kw_only=True)

    def draw(self, key: PairKey) -> Int32[Array, ""]:
        """Draw the color, 1..9; no wall has it."""
        return between(draw_words(key, 1)[0], 1, NUM_COLORS - 1)

    def make_pair(self, key: PairKey, drawn: Int32[Array, ""], grid_shape: GridShape) -> tuple[FlatGrid, FlatGrid]:
        """Draw a frame into each of up to four parts of the grid; a part may stay empty."""
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
            frame = Border(top, left, tall, wide)
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
    """Cuts out what a frame of the task's color marks, frame included; nothing else has the color.

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
        (top, tall), (left, wide) = (_draw_span(words[2 + axis : 6 : 2], side) for axis, side in enumerate(sides))
        frame = Border(top, left, tall, wide)
        noise = skip_color(random_colors(key_colors, grid_shape, NUM_COLORS - 1), drawn)
        picture = jnp.where(frame.wall_mask(grid_shape), drawn.astype(jnp.int8), noise)
        rows, columns = cell_rows(grid_shape) + top.astype(jnp.int8), cell_columns(grid_shape) + left.astype(jnp.int8)
        output = look_up(picture, rows, columns, grid_shape)
        return crop_canvas(picture, *sides, grid_shape), crop_canvas(output, tall, wide, grid_shape)


def _draw_span(words: UInt32[Array, "2"], side: Number) -> tuple[Number, Number]:
    """Draw start and length of a frame that is shorter than the side of the grid."""
    length = between(words[0], jnp.minimum(FRAME_SIDE, side - 1), side - 1)
    return between(words[1], 0, side - length), length


def _place_in_part(words: UInt32[Array, "2"], index: int, parts: Number, side: Number) -> tuple[Number, Number]:
    """Draw start and length of a frame in one of the parts of a side; the last line of each of two parts stays free."""
    part = side // parts
    room = part - (parts - 1)
    length = between(words[0], FRAME_SIDE, room)
    return index * part + between(words[1], 0, room - length), length
