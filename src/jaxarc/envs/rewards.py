"""What a step pays: decided here and read everywhere else."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32

from jaxarc.config import JaxArcConfig


class RewardInputs(NamedTuple):
    """What happened in a step, as far as rewards depend on it."""

    similarity_before: Float32[Array, ""]
    similarity_after: Float32[Array, ""]
    newly_solved: Bool[Array, ""]  # a submit solved a pair that was not solved before
    wrong_submission: Bool[Array, ""]
    invalid: Bool[Array, ""]  # an invalid or illegal action
    is_hidden: Bool[Array, ""] | None = None  # the pair hides its output; None: the mode says it of all pairs


def compute_reward(outcome: RewardInputs, config: JaxArcConfig) -> Float32[Array, ""]:
    """Pay a step. On a hidden target only the submit depends, and only with ``reward.score_on_submit``."""
    rule, zero, hidden = config.reward, jnp.float32(0), outcome.is_hidden
    weigh = lambda value, happened: jnp.where(happened, jnp.float32(value), zero)
    reward = zero
    if config.episode.mode != "test":
        shaping = jnp.float32(rule.gamma) * outcome.similarity_after - outcome.similarity_before
        reward = jnp.float32(rule.similarity_weight) * shaping
        reward = reward if hidden is None else jnp.where(hidden, zero, reward)
    reward = reward + jnp.float32(rule.step_penalty)
    if config.scores_submissions or hidden is not None:
        is_told = True if hidden is None else ~hidden | rule.score_on_submit
        reward = reward + weigh(rule.success_bonus, outcome.newly_solved & is_told)
        reward = reward + weigh(rule.unsolved_submission_penalty, outcome.wrong_submission & is_told)
    return reward + weigh(rule.invalid_action_penalty, outcome.invalid)
