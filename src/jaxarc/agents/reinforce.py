"""REINFORCE with a learned baseline (Williams 1992, https://doi.org/10.1007/BF00992696).

The whole algorithm is the loss below. It is chosen by ``agent.algorithm=reinforce``; with ``agent.gae_lambda=1`` the
advantage is the discounted reward of the rest of the trajectory minus the baseline.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float32

from jaxarc.agents.learner import Losses, UpdateBatch
from jaxarc.agents.policy import EditPolicy
from jaxarc.config import AgentConfig


def reinforce_loss(
    policy: EditPolicy, samples: UpdateBatch, config: AgentConfig, entropy_weight: Float32[Array, ""]
) -> tuple[Float32[Array, ""], Losses]:
    """Weigh the log-probabilities by their advantages, and add the baseline's squared error and the entropy.

    An edit with advantage 2 pulls its log-probability up twice as hard as one with advantage 1; one with a negative
    advantage becomes less likely. There is no correction for an older policy, so each sample is used once.
    """
    # The gradient of -(log p * advantage) moves p up where the edit did better than
    # the value said, and down where worse.
    output = policy.evaluate(samples.observation, samples.edit)
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
