"""The rule that completes a symmetric picture."""

from typing import ClassVar, Final, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32

from jaxarc.constants import NUM_COLORS
from jaxarc.prng import to_randint
from jaxarc.tasks.procedural.drawing import (
    between,
    box_mask,
    cell_columns,
    cell_rows,
    crop_canvas,
    draw_sides,
    draw_words,
    look_up,
    random_colors,
    skip_color,
    split_key,
)
from jaxarc.tasks.procedural.rule import GridShape, PairKey, Rule
from jaxarc.types import FlatGrid

LEFT_RIGHT: Final = 1
UP_DOWN: Final = 2
BOTH: Final = 3
HALF_TURN: Final = 4  # the picture looks the same upside down


class Completion(NamedTuple):
    """What the pairs of a task share."""

    symmetry: Int32[Array, ""]  # LEFT_RIGHT .. HALF_TURN
    color: Int32[Array, ""]  # of the patch, 0..9; no picture has it


class CompleteSymmetry(Rule):
    """Hides a patch of a symmetric picture; the output is the whole picture.

    Symmetry and the patch's color belong to the task. The patch has at least one cell and lies in one quarter of the
    picture, clear of the middle, so what it hides can be seen elsewhere.
    """

    smallest_side: ClassVar[int] = 2

    def draw(self, key: PairKey) -> Completion:
        """Draw the symmetry and the color of the patch."""
        words = draw_words(key, 2)
        return Completion(between(words[0], LEFT_RIGHT, HALF_TURN), to_randint(words[1], jnp.int32(NUM_COLORS)))

    def make_pair(self, key: PairKey, drawn: Completion, grid_shape: GridShape) -> tuple[FlatGrid, FlatGrid]:
        """Draw a symmetric picture of the nine other colors and a patch on it."""
        key_words, key_colors = split_key(key, 2)
        words = draw_words(key_words, 8)
        height, width = draw_sides(words[:2], self, grid_shape)
        colors = skip_color(random_colors(key_colors, grid_shape, NUM_COLORS - 1), drawn.color)
        rows, columns = jnp.asarray(cell_rows(grid_shape)), jnp.asarray(cell_columns(grid_shape))
        mirrored_rows, mirrored_columns = (
            (height - 1).astype(jnp.int8) - rows,
            (width - 1).astype(jnp.int8) - columns,
        )
        is_second = (rows > mirrored_rows) | ((rows == mirrored_rows) & (columns > mirrored_columns))
        flips_rows = _flips(drawn.symmetry, UP_DOWN, rows > mirrored_rows, is_second)
        flips_columns = _flips(drawn.symmetry, LEFT_RIGHT, columns > mirrored_columns, is_second)
        picture = look_up(
            colors,
            jnp.where(flips_rows, mirrored_rows, rows),
            jnp.where(flips_columns, mirrored_columns, columns),
            grid_shape,
        )
        patch = _patch_side(words[2:5], height), _patch_side(words[5:8], width)
        hidden = box_mask(patch[0][0], patch[1][0], patch[0][1], patch[1][1], grid_shape)
        pair_input = jnp.where(hidden, drawn.color.astype(jnp.int8), picture)
        return crop_canvas(pair_input, height, width, grid_shape), crop_canvas(picture, height, width, grid_shape)


def _flips(
    symmetry: Int32[Array, ""], flag: int, is_past_middle: Bool[Array, " HW"], is_second: Bool[Array, " HW"]
) -> Bool[Array, " HW"]:
    """Tell which cells repeat a cell on the other side of the middle."""
    mirrors, turns = (symmetry == flag) | (symmetry == BOTH), symmetry == HALF_TURN
    return (mirrors & is_past_middle) | (turns & is_second)


def _patch_side(words: Array, side: Int32[Array, ""]) -> tuple[Int32[Array, ""], Int32[Array, ""]]:
    """Draw where a patch starts, in the first or the second half of a side, and how long it is."""
    half = side // 2
    length = between(words[0], 1, half)
    start = between(words[1], 0, half - length)
    return jnp.where(words[2] < jnp.uint32(2**31), start, side - half + start), length
