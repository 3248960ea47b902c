"""How far a model that goes on from its own predictions drifts away from the environment."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32

from jaxarc.surrogate.train_step import Model
from jaxarc.surrogate.transition_model import TransitionBatch, predict_steps


class Drift(NamedTuple):
    """Of walks with one operation, after each of S steps; shares of 0 .. 1."""

    operation: int
    exact: tuple[float, ...]  # of walks: every cell of the grid is right
    wrong_cells: tuple[float, ...]  # of the canvas
    kept: tuple[float, ...]  # of walks: the grid is still that of the start, so that doing nothing is right


def measure_drift(model: Model, walks: TransitionBatch) -> Drift:
    """Let a model take the walks that were taken in the environment, from the same starts, and compare each step.

    The model sees its own last grid in place of the working grid. It never sees the clipboard.

    Args:
        model: of transitions.
        walks: with one operation, leaves [S, B, ...]; what was seen before each step, and what came of it.
    """
    is_right, is_kept = map(np.asarray, _compare(model, walks))
    exact = is_right.all(axis=(2, 3)).mean(axis=1)
    wrong = 1 - is_right.mean(axis=(1, 2, 3))
    parts = (tuple(each.tolist()) for each in (exact, wrong, is_kept.mean(axis=1)))
    return Drift(int(walks.operation[0, 0]), *parts)


@eqx.filter_jit
def _compare(model: Model, walks: TransitionBatch) -> tuple[Bool[Array, "S B N d"], Bool[Array, "S B"]]:
    start = walks.data[0, ..., 0]

    def dream_on(grid: Float32[Array, "B N d"], step: TransitionBatch) -> tuple[Array, tuple[Array, Array]]:
        imagined = predict_steps(model, step.data.at[..., 0].set(grid), step.action).grid.astype(jnp.float32)
        return imagined, (imagined == step.next_grid, (step.next_grid == start).all(axis=(1, 2)))

    return jax.lax.scan(dream_on, start, walks)[1]
