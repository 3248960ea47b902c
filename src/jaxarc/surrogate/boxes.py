"""Actions on boxes of a canvas, as models see them."""

from typing import Final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int

from jaxarc.constants import NUM_GRID_OPERATIONS
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.surrogate.candidates import CandidateSet

NUM_ACTION_FEATURES: Final = NUM_GRID_OPERATIONS  # which operation it is


def describe_boxes(actions: BboxAction, is_real: Bool[Array, "*B"], grid_shape: tuple[int, int]) -> CandidateSet:
    """Describe actions to a model: the rows and the columns of each box, and which operation it is.

    Args:
        actions: with any leading axes, one for k candidates or none for a single action.
        is_real: of the actions.
        grid_shape: (H, W) of the canvas.
    """
    height, width = grid_shape
    return CandidateSet(
        rows=_between(actions.r1, actions.r2, height),
        columns=_between(actions.c1, actions.c2, width),
        features=jax.nn.one_hot(actions.operation, NUM_ACTION_FEATURES, dtype=jnp.float32),
        is_real=is_real,
    )


def describe_grids(
    working: Int[Array, "H W"], target: Int[Array, "H W"], source: Int[Array, "H W"]
) -> Float32[Array, "H W 3"]:
    """Put working grid, target and input beside each other, as colors -1 (outside of the grid) .. 9."""
    return jnp.stack([working, target, source], axis=-1).astype(jnp.float32)


def _between(one: Array, other: Array, side: int) -> Float32[Array, "*B side"]:
    places = jnp.arange(side, dtype=jnp.int32).reshape(*[1] * one.ndim, side)
    first, last = (end[..., None] for end in (jnp.minimum(one, other), jnp.maximum(one, other)))
    return ((places >= first) & (places <= last)).astype(jnp.float32)
