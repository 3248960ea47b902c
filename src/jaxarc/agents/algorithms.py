"""The algorithms that train a policy: a loss each, and the update that minimizes it.

To add one, write its loss here like :func:`reinforce_loss`, add it to :data:`ALGORITHMS` and its name to
``AgentConfig.algorithm``.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float32

from jaxarc.agents.learner import (
    LearnerState,
    Losses,
    LossFunction,
    TrainConfig,
    Trajectories,
    UpdateBatch,
    minimize,
)
from jaxarc.agents.policy import EditPolicy
from jaxarc.config import AgentConfig
from jaxarc.parallel.shards import UNSHARDED, DataShard
from jaxarc.types import PRNGKey


def update(
    learner: LearnerState,
    key: PRNGKey,
    trajectories: Trajectories,
    train_config: TrainConfig,
    optimizer: optax.GradientTransformation,
    shard: DataShard = UNSHARDED,
) -> tuple[LearnerState, Losses]:
    """Improve the policy on its trajectories with the algorithm of the config; see :func:`minimize`."""
    loss = ALGORITHMS[train_config.agent.algorithm]
    return minimize(loss, learner, key, trajectories, train_config, optimizer, shard)


def ppo_loss(
    policy: EditPolicy, samples: UpdateBatch, config: AgentConfig, entropy_weight: Float32[Array, ""]
) -> tuple[Float32[Array, ""], Losses]:
    """Return the loss of proximal policy optimization (Schulman et al. 2017, https://arxiv.org/abs/1707.06347).

    It weighs the clipped policy loss, the value's squared error and the entropy.

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


def reinforce_loss(
    policy: EditPolicy, samples: UpdateBatch, config: AgentConfig, entropy_weight: Float32[Array, ""]
) -> tuple[Float32[Array, ""], Losses]:
    """Return the loss of REINFORCE with a learned baseline (Williams 1992, https://doi.org/10.1007/BF00992696).

    It weighs the log-probabilities by their advantages, and adds the baseline's squared error and the entropy. With
    ``agent.gae_lambda=1`` the advantage is the discounted reward of the rest of the trajectory minus the baseline.

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


ALGORITHMS: Final[Mapping[str, LossFunction]] = MappingProxyType({"ppo": ppo_loss, "reinforce": reinforce_loss})
"""The loss that an update minimizes, by ``agent.algorithm``."""
