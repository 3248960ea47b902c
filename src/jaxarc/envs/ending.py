"""When an episode ends: decided here and read everywhere else."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32

from jaxarc.config import EnvironmentConfig


class Ending(NamedTuple):
    terminated: Bool[Array, "*B"]
    truncated: Bool[Array, "*B"]


def decide_ending(
    submitted: Bool[Array, ""],
    all_solved: Bool[Array, ""],
    submission_count: Int32[Array, ""],
    step_count: Int32[Array, ""],
    config: EnvironmentConfig,
) -> Ending:
    """Decide after a step: the last submit or a submit that solves the last pair terminates, the step limit truncates.

    Args:
        submitted: this step handed in the grid.
        all_solved: this step's submit left no pair unsolved, and the agent may know it.
        submission_count: submits so far, this one included.
        step_count: steps so far, this one included.
        config: the limits.
    """
    terminated = submitted & (all_solved | (submission_count >= config.max_submissions))
    return Ending(terminated, ~terminated & (step_count >= config.max_episode_steps))


def discount(terminated: Bool[Array, "*B"]) -> Float32[Array, "*B"]:
    """0 where the episode terminated, 1 elsewhere, truncation included."""
    return jnp.where(terminated, jnp.float32(0), jnp.float32(1))
