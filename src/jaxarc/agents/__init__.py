"""Policies, and the algorithms that train them.

To add an algorithm, write its loss into a file like ``reinforce.py``, add it to :data:`ALGORITHMS` and its name to
``AgentConfig.algorithm``.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import optax

from jaxarc.agents.edits import Edit
from jaxarc.agents.learner import (
    LearnerState,
    Losses,
    LossFunction,
    TrainConfig,
    Trajectories,
    make_optimizer,
    minimize,
)
from jaxarc.agents.policy import EditPolicy, PolicyOutput
from jaxarc.agents.ppo import ppo_loss
from jaxarc.agents.reinforce import reinforce_loss
from jaxarc.parallel.shards import UNSHARDED, DataShard
from jaxarc.types import PRNGKey

ALGORITHMS: Final[Mapping[str, LossFunction]] = MappingProxyType({"ppo": ppo_loss, "reinforce": reinforce_loss})
"""The loss that an update minimizes, by ``agent.algorithm``."""

__all__ = [
    "ALGORITHMS",
    "Edit",
    "EditPolicy",
    "LearnerState",
    "Losses",
    "PolicyOutput",
    "TrainConfig",
    "Trajectories",
    "make_optimizer",
    "update",
]


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
