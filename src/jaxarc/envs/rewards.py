"""What a step pays: decided here and read everywhere else."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32

from jaxarc.config import JaxArcConfig


class Outcome(NamedTuple):
    """What happened in a step, as far as rewards depend on it."""

    similarity_before: Float32[Array, ""]
    similarity_after: Float32[Array, ""]
    newly_solved: Bool[Array, ""]  # a submit solved a pair that was not solved before
    wrong_submission: Bool[Array, ""]
    invalid: Bool[Array, ""]  # an invalid or illegal action


def compute_reward(outcome: Outcome, config: JaxArcConfig) -> Float32[Array, ""]:
    """Pay a step. In test mode only the submit depends on the target, and only with ``reward.score_on_submit``."""
    rule, zero = config.reward, jnp.float32(0)
    weigh = lambda value, happened: jnp.where(happened, jnp.float32(value), zero)
    reward = zero
    if config.episode.mode == "train":
        shaping = jnp.float32(rule.gamma) * outcome.similarity_after - outcome.similarity_before
        reward = jnp.float32(rule.similarity_weight) * shaping
    reward = reward + jnp.float32(rule.step_penalty)
    if config.scores_submissions:
        reward = reward + weigh(rule.success_bonus, outcome.newly_solved)
        reward = reward + weigh(rule.unsolved_submission_penalty, outcome.wrong_submission)
    return reward + weigh(rule.invalid_action_penalty, outcome.invalid)
