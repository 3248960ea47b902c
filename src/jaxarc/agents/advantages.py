"""Advantages: how much better each step went than the value function expected."""

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

    The scan runs from the last step to the first. Three steps of an episode that ends with the third, ``gamma=1`` and
    ``gae_lambda=0.5``:

        rewards      0     0     1
        values       0.2   0.4   0.8
        next_values  0.4   0.8   0      after the end nothing follows
        errors       0.2   0.4   0.2    reward + gamma * next value - value
        advantages   0.45  0.5   0.2    error + gamma * gae_lambda * advantage of the next step

    Args:
        rewards: of each step.
        values: expected from the observation that the step was taken on.
        next_values: expected after the step; see :func:`bootstrap_values`.
        dones: the episode ended with this step, so later rewards belong to another one.
        gamma: discount.
        gae_lambda: 0 trusts the values, 1 the rewards.
    """

    def step_back(
        next_advantage: Float32[Array, " B"], step: tuple[Float32[Array, " B"], Float32[Array, " B"]]
    ) -> tuple[Float32[Array, " B"], Float32[Array, " B"]]:
        # After an end ``continues`` is 0, so nothing of the next episode in the same environment comes through.
        error, continues = step
        advantage = error + gamma * gae_lambda * continues * next_advantage
        return advantage, advantage

    errors = rewards + gamma * next_values - values
    continues = (~dones).astype(jnp.float32)  # the next step belongs to the same episode
    _, advantages = jax.lax.scan(step_back, jnp.zeros_like(values[0]), (errors, continues), reverse=True)
    return advantages


def bootstrap_values(
    values: Float32[Array, "S B"],
    last_values: Float32[Array, " B"],
    final_values: Float32[Array, "S B"],
    terminated: Bool[Array, "S B"],
    truncated: Bool[Array, "S B"],
) -> Float32[Array, "S B"]:
    """Return the value after each step.

    It is 0 after an episode that terminated, the value of the final observation after one that was truncated, and the
    value of the next observation otherwise. With ``values=[0.2, 0.4]``, ``last_values=0.6`` and a final value of 0.9:

        step 0 terminated  [0.0, 0.6]
        step 0 truncated   [0.9, 0.6]
        neither            [0.4, 0.6]

    Args:
        values: of the observations of each step.
        last_values: of the observations after the last step.
        final_values: of the final observations; read only where an episode was truncated.
        terminated: the episode ended by its rules.
        truncated: the episode reached its step limit.
    """
    # The value of the next step is that of its own observation, which after an end is the first of a new episode; so
    # both kinds of ends replace it. Termination comes last, since no value follows it.
    following = jnp.concatenate([values[1:], last_values[None]])
    following = jnp.where(truncated, final_values, following)
    return jnp.where(terminated, jnp.float32(0), following)
