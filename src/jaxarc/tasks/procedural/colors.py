"""Rules about colors alone."""

from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Int8

from jaxarc.constants import NUM_COLORS
from jaxarc.tasks.procedural.drawing import (
    between,
    cell_mask,
    crop_canvas,
    draw_sides,
    draw_words,
    random_colors,
    scattered_colors,
    split_key,
)
from jaxarc.tasks.procedural.rule import GridShape, PairKey, Rule
from jaxarc.types import FlatGrid


class RandomGrids(Rule):
    """Pairs a grid of random colors with an unrelated one of another size, as ARCLE's random tasks do.

    There is nothing to infer: an agent that sees the target learns to edit. ARCLE's grids are 5x5. Input and output
    differ in their top-left cell.
    """

    smallest_side: ClassVar[int] = 1
    min_side: int = eqx.field(static=True, default=1, kw_only=True)

    def draw(self, key: PairKey) -> None:
        """Draw nothing: the pairs of a task have nothing in common."""

    def make_pair(self, key: PairKey, drawn: None, grid_shape: GridShape) -> tuple[FlatGrid, FlatGrid]:
        """Draw both grids."""
        key_words, key_input, key_output = split_key(key, 3)
        words = draw_words(key_words, 5)
        pair_input = random_colors(key_input, grid_shape)
        output = random_colors(key_output, grid_shape)
        other = (pair_input[0] + between(words[4], 1, NUM_COLORS - 1).astype(jnp.int8)) % jnp.int8(NUM_COLORS)
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
        """Draw the color that each color becomes."""
        count = NUM_COLORS - 1
        words = draw_words(key, count)
        place = jnp.arange(count, dtype=jnp.int32)
        before = (words[:, None] > words[None, :]) | (
            (words[:, None] == words[None, :]) & (place[:, None] > place[None, :])
        )
        turn = before.sum(axis=1, dtype=jnp.int32)  # when the cycle comes to color 1 + place
        follows = turn[None, :] == ((turn + 1) % count)[:, None]
        after = jnp.where(follows, place[None, :] + 1, 0).sum(axis=1, dtype=jnp.int32)
        return jnp.concatenate([jnp.zeros(1, jnp.int32), after]).astype(jnp.int8)

    def make_pair(self, key: PairKey, drawn: Int8[Array, "10"], grid_shape: GridShape) -> tuple[FlatGrid, FlatGrid]:
        """Scatter colors over a picture and map them."""
        key_words, key_colors = split_key(key, 2)
        words = draw_words(key_words, 6)
        height, width = draw_sides(words[:2], self, grid_shape)
        row, column = between(words[2], 0, height - 1), between(words[3], 0, width - 1)
        picture = jnp.where(
            cell_mask(row, column, grid_shape),
            between(words[4], 1, NUM_COLORS - 1).astype(jnp.int8),
            scattered_colors(key_colors, grid_shape, words[5]),
        )
        mapped = picture
        for color in range(1, NUM_COLORS):
            mapped = jnp.where(picture == jnp.int8(color), drawn[color], mapped)
        return crop_canvas(picture, height, width, grid_shape), crop_canvas(mapped, height, width, grid_shape)
