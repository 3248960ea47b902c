"""What a plain network sees of a cell: the colors themselves."""

from typing import Final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int8

from jaxarc.agents.networks.network import PolicyInput
from jaxarc.constants import NUM_COLORS, PADDING

NUM_EDGES: Final = 6


def num_cell_features(equality_map: bool) -> int:
    return 2 * NUM_COLORS + NUM_EDGES + int(equality_map)


def cell_features(inputs: PolicyInput, equality_map: bool) -> Float32[Array, "B H W F"]:
    """Describe each cell: its color and that of the target, where the grids end, and perhaps whether it is right."""
    grids = inputs.working, inputs.target
    colors = [jax.nn.one_hot(grid, NUM_COLORS, dtype=jnp.float32) for grid in grids]
    parts = [*colors, *(_edges(grid) for grid in grids)]
    if equality_map:
        parts.append((inputs.working == inputs.target).astype(jnp.float32)[..., None])
    return jnp.concatenate(parts, axis=-1)


def _edges(grid: Int8[Array, "B H W"]) -> Float32[Array, "B H W 3"]:
    """Say where the grid is, and its last row and column: a cell alone could not tell how large the grid is."""
    inside = grid > PADDING
    beneath = jnp.pad(inside[:, 1:], ((0, 0), (0, 1), (0, 0)))
    beside = jnp.pad(inside[:, :, 1:], ((0, 0), (0, 0), (0, 1)))
    return jnp.stack([inside, inside & ~beneath, inside & ~beside], axis=-1).astype(jnp.float32)
