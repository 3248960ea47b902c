"""Policies, and the algorithms that train them.

To add an algorithm, write a file like ``reinforce.py``, add its ``update`` to :data:`ALGORITHMS` and its name to
``AgentConfig.algorithm``.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from jaxarc.agents import ppo, reinforce
from jaxarc.agents.edits import Edit
from jaxarc.agents.learner import LearnerState, Losses, TrainConfig, Trajectories, make_optimizer
from jaxarc.agents.policy import EditPolicy, PolicyOutput
from jaxarc.agents.ppo import update

ALGORITHMS: Final[Mapping[str, Callable[..., tuple[LearnerState, Losses]]]] = MappingProxyType(
    {"ppo": ppo.update, "reinforce": reinforce.update}
)
"""The function that makes one update, by ``agent.algorithm``."""

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
