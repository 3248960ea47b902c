"""REINFORCE with a learned baseline: the loss. Collecting, advantages and minibatches are those of ``ppo.py``."""

import functools

import jax.numpy as jnp
from jaxtyping import Array, Float32

from jaxarc.agents.policy import ActorCritic
from jaxarc.agents.ppo import Losses, UpdateBatch
from jaxarc.agents.ppo import update as minimize
from jaxarc.config import AgentConfig


def reinforce_loss(
    policy: ActorCritic, samples: UpdateBatch, config: AgentConfig, entropy_weight: Float32[Array, ""]
) -> tuple[Float32[Array, ""], Losses]:
    """Return the loss of REINFORCE with a learned baseline (Williams 1992, https://doi.org/10.1007/BF00992696).

    It weighs the log-probabilities by their advantages, and adds the baseline's squared error and the entropy. With
    ``agent.gae_lambda=1`` the advantage is the discounted reward of the rest of the trajectory minus the baseline.

    A choice with advantage 2 pulls its log-probability up twice as hard as one with advantage 1; one with a negative
    advantage becomes less likely. There is no correction for an older policy, so each sample is used once.
    """
    # The gradient of -(log p * advantage) moves p up where the choice did better than
    # the value said, and down where worse.
    output = policy.evaluate(samples.observation, samples.choice)
    losses = Losses(
        policy_loss=-(output.log_prob * samples.advantage).mean(),
        value_loss=jnp.square(output.value - samples.value_target).mean(),
        entropy=output.entropy.mean(),
        approx_kl=None,
        clip_fraction=None,
        gradient_norm=jnp.float32(0),  # filled in when the gradient is there
    )
    total = losses.policy_loss + config.value_weight * losses.value_loss - entropy_weight * losses.entropy
    return total, losses


update = functools.partial(minimize, loss=reinforce_loss)
"""See :func:`jaxarc.agents.ppo.update`."""
