"""Rules about whole pictures: map their colors, turn them, complete their symmetry."""

from typing import ClassVar, Final, NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int8, Int32

from jaxarc.constants import NUM_COLORS
from jaxarc.prng import to_randint
from jaxarc.tasks.procedural.drawing import (
    Number,
    between,
    box_mask,
    cell_mask,
    crop_canvas,
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


class RandomGrids(Rule):
    """Pairs a grid of random colors with an unrelated one of another size, as ARCLE's random tasks do.

    No rule can be inferred: an agent that sees the target learns to edit. ARCLE's grids are 5x5. Input and output
    differ in their top-left cell.
    """

    smallest_side: ClassVar[int] = 1
    min_side: int = eqx.field(static=True, default=1, kw_only=True)
    num_colors: int = eqx.field(static=True, default=NUM_COLORS, kw_only=True)  # 2 .. 10, the colors 0 and on

    def draw(self, key: PairKey) -> None:
        """Draw nothing: the pairs of a task have nothing in common."""

    def make_pair(self, key: PairKey, drawn: None, grid_shape: GridShape) -> tuple[FlatGrid, FlatGrid]:
        """Draw both grids."""
        # Both canvases are filled whole and then cropped to drawn sizes, since shapes are static. The first cell of the
        # output is moved on by 1 .. 9 colors from that of the input, modulo ten, so the two always differ; with fewer
        # colors accordingly.
        key_words, key_input, key_output = split_key(key, 3)
        words = draw_words(key_words, 5)
        pair_input = random_colors(key_input, grid_shape, self.num_colors)
        output = random_colors(key_output, grid_shape, self.num_colors)
        other = (pair_input[0] + between(words[4], 1, self.num_colors - 1).astype(jnp.int8)) % jnp.int8(self.num_colors)
        output = jnp.where(cell_mask(jnp.int32(0), jnp.int32(0), grid_shape), other, output)
        return (
            crop_canvas(pair_input, *draw_sides(words[0:2], self, grid_shape), grid_shape),
            crop_canvas(output, *draw_sides(words[2:4], self, grid_shape), grid_shape),
        )


class MapColors(Rule):
    """Exchanges the colors 1..9 for one another, by one map per task; black stays.

    The map is a cycle through all nine, so every colored cell changes, and a picture has at least one.
    """

    smallest_side: ClassVar[int] = 1

    def draw(self, key: PairKey) -> Int8[Array, "10"]:
        """Draw the new color of each color.

        Ranking nine random words gives a random order of the colors, and each becomes the next one in it. With three
        colors, the words 50, 90, 20 have the ranks 1, 2, 0: the order is 3, 1, 2, so 3 -> 1, 1 -> 2 and 2 -> 3.
        """
        count = NUM_COLORS - 1
        words = draw_words(key, count)
        index = jnp.arange(count, dtype=jnp.int32)
        is_equal = words[:, None] == words[None, :]
        comes_later = (words[:, None] > words[None, :]) | (is_equal & (index[:, None] > index[None, :]))
        rank = comes_later.sum(axis=1, dtype=jnp.int32)  # of color 1 + index
        # Row i of ``follows`` marks the color whose rank is one above that of color 1 + i, the first after the last; a
        # sum over the row reads it off without a lookup.
        follows = rank[None, :] == ((rank + 1) % count)[:, None]
        after = jnp.where(follows, index[None, :] + 1, 0).sum(axis=1, dtype=jnp.int32)
        return jnp.concatenate([jnp.zeros(1, jnp.int32), after]).astype(jnp.int8)

    def make_pair(self, key: PairKey, drawn: Int8[Array, "10"], grid_shape: GridShape) -> tuple[FlatGrid, FlatGrid]:
        """Scatter colors over a picture and map them."""
        key_words, key_colors = split_key(key, 2)
        words = draw_words(key_words, 6)
        height, width = draw_sides(words[:2], self, grid_shape)
        row = between(words[2], 0, height - 1)
        column = between(words[3], 0, width - 1)
        picture = jnp.where(
            cell_mask(row, column, grid_shape),
            between(words[4], 1, NUM_COLORS - 1).astype(jnp.int8),
            scattered_colors(key_colors, grid_shape, words[5]),
        )
        # Nine selects on the whole picture; a lookup per cell would be slower.
        mapped = picture
        for color in range(1, NUM_COLORS):
            mapped = jnp.where(picture == jnp.int8(color), drawn[color], mapped)
        return crop_canvas(picture, height, width, grid_shape), crop_canvas(mapped, height, width, grid_shape)


TRANSPOSE: Final = 1  # swap rows and columns, before the flips
FLIP_ROWS: Final = 2
FLIP_COLUMNS: Final = 4
SYMMETRIES: Final = {  # name -> which of the three make it up
    "flip-left-right": FLIP_COLUMNS,
    "flip-up-down": FLIP_ROWS,
    "rotate-90": TRANSPOSE | FLIP_COLUMNS,
    "rotate-180": FLIP_ROWS | FLIP_COLUMNS,
    "rotate-270": TRANSPOSE | FLIP_ROWS,
    "transpose": TRANSPOSE,
    "transpose-other-diagonal": TRANSPOSE | FLIP_ROWS | FLIP_COLUMNS,
}


class TurnPicture(Rule):
    """Turns or mirrors the whole picture, by one symmetry per task; rotations are clockwise.

    The top-left corner has another color than the other three corners, and these two differ that the diagonal joins, so
    no picture looks the same after it is turned.
    """

    smallest_side: ClassVar[int] = 2
    symmetries: tuple[str, ...] = eqx.field(static=True)  # of SYMMETRIES; a task draws one

    def draw(self, key: PairKey) -> Int32[Array, ""]:
        """Draw the symmetry, as a sum of the three flags."""
        flags = jnp.array([SYMMETRIES[name] for name in self.symmetries], jnp.int32)
        return flags[to_randint(draw_words(key, 1)[0], jnp.int32(len(self.symmetries)))]

    def make_pair(self, key: PairKey, drawn: Int32[Array, ""], grid_shape: GridShape) -> tuple[FlatGrid, FlatGrid]:
        """Scatter colors over a picture and turn it; both sizes fit the canvas, also where rows become columns."""
        key_words, key_colors = split_key(key, 2)
        words = draw_words(key_words, 7)
        height, width = draw_sides(words[:2], self, self._largest_shape(grid_shape))
        picture = scattered_colors(key_colors, grid_shape, words[2])
        first = to_randint(words[3], jnp.int32(NUM_COLORS))
        right = between(words[4], 1, NUM_COLORS - 1)
        down = 1 + (right - 1 + between(words[5], 1, NUM_COLORS - 2)) % (NUM_COLORS - 1)
        across = between(words[6], 1, NUM_COLORS - 1)
        # Corner colors are steps from the top-left one, modulo ten: the three others step by 1..9, so they differ from
        # it, and ``down`` differs from ``right``, so the picture differs from its mirror image on the diagonal.
        zero = jnp.int32(0)
        for row, column, step in (
            (zero, zero, zero),
            (zero, width - 1, right),
            (height - 1, zero, down),
            (height - 1, width - 1, across),
        ):
            color = ((first + step) % NUM_COLORS).astype(jnp.int8)
            picture = jnp.where(cell_mask(row, column, grid_shape), color, picture)
        return crop_canvas(picture, height, width, grid_shape), turn(picture, drawn, height, width, grid_shape)

    def _largest_shape(self, grid_shape: GridShape) -> GridShape:
        swaps = any(SYMMETRIES[name] & TRANSPOSE for name in self.symmetries)
        return (min(grid_shape), min(grid_shape)) if swaps else grid_shape


def turn(picture: FlatGrid, flags: Number, height: Number, width: Number, shape: GridShape) -> FlatGrid:
    """Apply a symmetry to the top-left area of the given size; where rows become columns it must fit turned too.

    Every cell of the output looks up its color: flips count the row or column from the end, then a transposition swaps
    both. ``rotate-90`` of a 2x3 picture has 3 rows and 2 columns; its cell (0, 0) counts its column from the end,
    (0, 1), and swaps to (1, 0), the bottom-left cell of the picture.
    """
    swap = (flags & TRANSPOSE) != 0
    new_height = jnp.where(swap, width, height)
    new_width = jnp.where(swap, height, width)
    rows = jnp.asarray(cell_rows(shape))
    columns = jnp.asarray(cell_columns(shape))
    # From each new cell to the old one: undo the flips in the new size, then the transposition.
    rows = jnp.where((flags & FLIP_ROWS) != 0, (new_height - 1).astype(jnp.int8) - rows, rows)
    columns = jnp.where((flags & FLIP_COLUMNS) != 0, (new_width - 1).astype(jnp.int8) - columns, columns)
    old_rows = jnp.where(swap, columns, rows)
    old_columns = jnp.where(swap, rows, columns)
    return crop_canvas(look_up(picture, old_rows, old_columns, shape), new_height, new_width, shape)


LEFT_RIGHT: Final = 1
UP_DOWN: Final = 2
BOTH: Final = 3
HALF_TURN: Final = 4  # the picture looks the same upside down


class Completion(NamedTuple):
    """The draws that all pairs of a task share."""

    symmetry: Int32[Array, ""]  # LEFT_RIGHT .. HALF_TURN
    color: Int32[Array, ""]  # of the patch, 0..9; no picture has it


class CompleteSymmetry(Rule):
    """Hides a patch of a symmetric picture; the output is the whole picture.

    Symmetry and the patch's color belong to the task. The patch has at least one cell and stays within one quarter of
    the picture, clear of the middle, so the hidden cells can be seen elsewhere.
    """

    smallest_side: ClassVar[int] = 2

    def draw(self, key: PairKey) -> Completion:
        """Draw the symmetry and the color of the patch."""
        words = draw_words(key, 2)
        return Completion(between(words[0], LEFT_RIGHT, HALF_TURN), to_randint(words[1], jnp.int32(NUM_COLORS)))

    def make_pair(self, key: PairKey, drawn: Completion, grid_shape: GridShape) -> tuple[FlatGrid, FlatGrid]:
        """Draw a symmetric picture of the nine other colors and a patch on it.

        Cells past the middle look up their mirror image: in a row of width 5 with the colors 1 2 3 4 5 the columns 3
        and 4 repeat columns 1 and 0, which gives 1 2 3 2 1. A half turn has no middle line; there the second half of
        the cells, row by row, repeats the first.
        """
        key_words, key_colors = split_key(key, 2)
        words = draw_words(key_words, 8)
        height, width = draw_sides(words[:2], self, grid_shape)
        colors = skip_color(random_colors(key_colors, grid_shape, NUM_COLORS - 1), drawn.color)
        rows = jnp.asarray(cell_rows(grid_shape))
        columns = jnp.asarray(cell_columns(grid_shape))
        mirrored_rows = (height - 1).astype(jnp.int8) - rows
        mirrored_columns = (width - 1).astype(jnp.int8) - columns
        # Under a half turn a cell and its partner are mirrored in both axes; the one further down is the second, or
        # in the middle row the one further right.
        is_second = (rows > mirrored_rows) | ((rows == mirrored_rows) & (columns > mirrored_columns))
        flips_rows = _flips(drawn.symmetry, UP_DOWN, rows > mirrored_rows, is_second)
        flips_columns = _flips(drawn.symmetry, LEFT_RIGHT, columns > mirrored_columns, is_second)
        picture = look_up(
            colors,
            jnp.where(flips_rows, mirrored_rows, rows),
            jnp.where(flips_columns, mirrored_columns, columns),
            grid_shape,
        )
        top, tall = _patch_side(words[2:5], height)
        left, wide = _patch_side(words[5:8], width)
        hidden = box_mask(top, left, tall, wide, grid_shape)
        pair_input = jnp.where(hidden, drawn.color.astype(jnp.int8), picture)
        return crop_canvas(pair_input, height, width, grid_shape), crop_canvas(picture, height, width, grid_shape)


def _flips(
    symmetry: Int32[Array, ""], flag: int, is_past_middle: Bool[Array, " HW"], is_second: Bool[Array, " HW"]
) -> Bool[Array, " HW"]:
    """Return the cells that repeat a cell on the other side of the middle."""
    mirrors = (symmetry == flag) | (symmetry == BOTH)
    turns = symmetry == HALF_TURN
    return (mirrors & is_past_middle) | (turns & is_second)


def _patch_side(words: Array, side: Int32[Array, ""]) -> tuple[Int32[Array, ""], Int32[Array, ""]]:
    """Draw start and length of a patch, in the first or the second half of a side."""
    # Within one half, so the middle line of an odd side stays free: a side of 5 has starts 0 .. 1 or 3 .. 4.
    half = side // 2
    length = between(words[0], 1, half)
    start = between(words[1], 0, half - length)
    return jnp.where(words[2] < jnp.uint32(2**31), start, side - half + start), length
