"""Proximal policy optimization (Schulman et al. 2017, https://arxiv.org/abs/1707.06347)."""

import jax.numpy as jnp
from jaxtyping import Array, Float32

from jaxarc.agents.learner import Losses, UpdateBatch
from jaxarc.agents.policy import EditPolicy
from jaxarc.config import AgentConfig


def ppo_loss(
    policy: EditPolicy, samples: UpdateBatch, config: AgentConfig, entropy_weight: Float32[Array, ""]
) -> tuple[Float32[Array, ""], Losses]:
    """Weigh the clipped policy loss, the value's squared error and the entropy.

    The ratio says how much likelier the policy makes an edit than the policy that drew it. Of the loss with the ratio
    and the loss with the clipped ratio the larger one counts, so nothing is gained beyond the range, but a step in the
    wrong direction is always taken back. With ``clip_range=0.2`` and an advantage of 1:

        ratio    clipped   policy loss   gradient
        0.5      0.8       -0.5          towards a larger ratio: the edit was good and became less likely
        1.0      1.0       -1.0          towards a larger ratio
        1.5      1.2       -1.2          none: likely enough
    """
    # The same edits under the policy as it is now: ratio = new probability / old, from the difference of logarithms.
    output = policy.evaluate(samples.observation, samples.edit)
    log_ratio = output.log_prob - samples.log_prob
    ratio = jnp.exp(log_ratio)
    clipped_ratio = jnp.clip(ratio, 1 - config.clip_range, 1 + config.clip_range)
    losses = Losses(
        policy_loss=-jnp.minimum(ratio * samples.advantage, clipped_ratio * samples.advantage).mean(),
        value_loss=jnp.square(output.value - samples.value_target).mean(),
        entropy=output.entropy.mean(),
        approx_kl=(ratio - 1 - log_ratio).mean(),  # the k3 estimator, http://joschu.net/blog/kl-approx.html
        clip_fraction=(ratio != clipped_ratio).astype(jnp.float32).mean(),
        gradient_norm=jnp.float32(0),  # filled in when the gradient is there
    )
    # The entropy is subtracted: a policy that still tries several edits has a smaller loss.
    total = losses.policy_loss + config.value_weight * losses.value_loss - entropy_weight * losses.entropy
    return total, losses
