"""How much better each step went than expected."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32


def estimate_advantages(
    rewards: Float32[Array, "S B"],
    values: Float32[Array, "S B"],
    next_values: Float32[Array, "S B"],
    dones: Bool[Array, "S B"],
    gamma: float,
    gae_lambda: float,
) -> Float32[Array, "S B"]:
    """Estimate advantages by GAE (Schulman et al. 2016, https://arxiv.org/abs/1506.02438).

    Args:
        rewards: of each step.
        values: expected from the observation that the step was taken on.
        next_values: expected after the step; see :func:`bootstrap_values`.
        dones: the episode ended with this step, so later rewards belong to another one.
        gamma: discount.
        gae_lambda: 0 trusts the values, 1 the rewards.
    """

    def back(later: Float32[Array, " B"], step: tuple[Array, Array]) -> tuple[Array, Array]:
        error, goes_on = step
        advantage = error + gamma * gae_lambda * goes_on * later
        return advantage, advantage

    errors = rewards + gamma * next_values - values
    goes_on = (~dones).astype(jnp.float32)
    return jax.lax.scan(back, jnp.zeros_like(values[0]), (errors, goes_on), reverse=True)[1]


def bootstrap_values(
    values: Float32[Array, "S B"],
    last_values: Float32[Array, " B"],
    final_values: Float32[Array, "S B"],
    terminated: Bool[Array, "S B"],
    truncated: Bool[Array, "S B"],
) -> Float32[Array, "S B"]:
    """Return what is expected after each step.

    Nothing after an episode that terminated; the value of its final observation after one that was only cut off; else
    the value of the next observation.

    Args:
        values: of the observations of each step.
        last_values: of the observations after the last step.
        final_values: of the final observations; read only where an episode was truncated.
        terminated: the episode ended by its rules.
        truncated: the episode reached its step limit.
    """
    following = jnp.concatenate([values[1:], last_values[None]])
    following = jnp.where(truncated, final_values, following)
    return jnp.where(terminated, jnp.float32(0), following)
