"""What an agent sees, and the report beside it."""

import jax.numpy as jnp
from jaxtyping import Array, Bool

from jaxarc.config import JaxArcConfig
from jaxarc.envs.ending import discount
from jaxarc.envs.state import ArcEnvState
from jaxarc.types import Info, Observation


def observe(state: ArcEnvState, config: JaxArcConfig) -> Observation:
    """Show the working grid, int8[H, W] with -1 as padding; as an entry of a dictionary when more is asked for."""
    more: dict[str, Array] = {}
    if config.observation.reveal_target:
        more["target_grid"] = state.target_grid
    if config.observation.include_step_count:
        more["step_count"] = state.step_count
    return {"working_grid": state.working_grid, **more} if more else state.working_grid


def report(state: ArcEnvState, invalid_action: Bool[Array, "*B"], config: JaxArcConfig) -> Info:
    """Tell how the episode stands, with the same keys on every step and at reset.

    In test mode ``similarity`` is 0, and ``success`` false unless ``reward.score_on_submit``: both depend on the hidden
    target.
    """
    trains = config.episode.mode == "train"
    return {
        "terminated": state.terminated,
        "truncated": state.truncated,
        "discount": discount(state.terminated),
        "success": state.is_solved if config.scores_submissions else jnp.zeros_like(state.is_solved),
        "similarity": state.similarity_score if trains else jnp.zeros_like(state.similarity_score),
        "invalid_action": invalid_action,
        "step_count": state.step_count,
        "submission_count": state.submission_count,
        "task_index": state.task_index,
        "pair_index": state.pair_index,
    }
