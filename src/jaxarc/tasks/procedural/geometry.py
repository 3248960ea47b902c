"""Rules that turn or mirror a picture."""

from typing import ClassVar, Final

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Int32

from jaxarc.constants import NUM_COLORS
from jaxarc.prng import to_randint
from jaxarc.tasks.procedural.drawing import (
    Number,
    between,
    cell_columns,
    cell_mask,
    cell_rows,
    crop_canvas,
    draw_sides,
    draw_words,
    look_up,
    scattered_colors,
    split_key,
)
from jaxarc.tasks.procedural.rule import GridShape, PairKey, Rule
from jaxarc.types import FlatGrid

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
    """Apply a symmetry to the top-left area of the given size; where rows become columns it must fit turned too."""
    swap, flip_rows, flip_columns = ((flags & flag) != 0 for flag in (TRANSPOSE, FLIP_ROWS, FLIP_COLUMNS))
    new_height, new_width = jnp.where(swap, width, height), jnp.where(swap, height, width)
    rows, columns = jnp.asarray(cell_rows(shape)), jnp.asarray(cell_columns(shape))
    last_row, last_column = ((side - 1).astype(jnp.int8) for side in (new_height, new_width))
    rows = jnp.where(flip_rows, last_row - rows, rows)
    columns = jnp.where(flip_columns, last_column - columns, columns)
    old_rows, old_columns = jnp.where(swap, columns, rows), jnp.where(swap, rows, columns)
    return crop_canvas(look_up(picture, old_rows, old_columns, shape), new_height, new_width, shape)
