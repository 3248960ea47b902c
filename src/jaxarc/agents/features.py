"""What a policy sees of an observation: a few numbers per cell."""

from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int8

from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.types import Observation

NUM_EDGES: Final = 6
NUM_CELL_FEATURES: Final = 2 * NUM_COLORS + 1 + NUM_EDGES


class CellFeatures(NamedTuple):
    """A batch of observations, cell by cell, row by row."""

    working: Float32[Array, "B HW 10"]  # one-hot color; all 0 outside the working grid
    target: Float32[Array, "B HW 10"]  # one-hot color; all 0 outside the target
    equal: Float32[Array, "B HW"]  # 1 where both have the same color, or both end
    edges: Float32[Array, "B HW 6"]  # inside, in the last row, in the last column: of the working grid, of the target
    active: Bool[Array, "B HW"]  # inside the working grid
    in_target: Float32[Array, "B HW"]  # 1 inside the target
    time: Float32[Array, " B"]  # share of the episode's steps that are used, 0 .. 1


def cell_features(observation: Observation, max_episode_steps: int) -> CellFeatures:
    """Describe the cells of a batch of observations.

    Args:
        observation: ``working_grid`` and ``target_grid`` int8[B, H, W], ``step_count`` int32[B].
        max_episode_steps: what counts as the whole time.
    """
    grids = [observation["working_grid"], observation["target_grid"]]
    working, target = (_flat(grid) for grid in grids)
    return CellFeatures(
        working=jax.nn.one_hot(working, NUM_COLORS, dtype=jnp.float32),
        target=jax.nn.one_hot(target, NUM_COLORS, dtype=jnp.float32),
        equal=(working == target).astype(jnp.float32),
        edges=jnp.concatenate([_edges(grid) for grid in grids], axis=-1),
        active=working > PADDING,
        in_target=(target > PADDING).astype(jnp.float32),
        time=observation["step_count"].astype(jnp.float32) / max_episode_steps,
    )


def stack_features(seen: CellFeatures) -> Float32[Array, "B HW C"]:
    """Join the features of a cell: the input of a network that looks at one cell at a time."""
    return jnp.concatenate([seen.working, seen.target, seen.equal[..., None], seen.edges], axis=-1)


def _edges(grid: Int8[Array, "B H W"]) -> Float32[Array, "B HW 3"]:
    """Say where the grid is, and its last row and column: a cell alone could not tell how large the grid is."""
    inside = grid > PADDING
    beneath = jnp.pad(inside[:, 1:], ((0, 0), (0, 1), (0, 0)))
    beside = jnp.pad(inside[:, :, 1:], ((0, 0), (0, 0), (0, 1)))
    edges = [inside, inside & ~beneath, inside & ~beside]
    return jnp.stack([_flat(edge) for edge in edges], axis=-1).astype(jnp.float32)


def _flat(grid: Array) -> Array:
    return grid.reshape(grid.shape[0], -1)
