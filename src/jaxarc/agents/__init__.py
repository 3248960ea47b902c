"""Policies, and the algorithms that train them."""

from jaxarc.agents.algorithms import ALGORITHMS, update
from jaxarc.agents.edits import Edit
from jaxarc.agents.learner import LearnerState, Losses, TrainConfig, Trajectories, make_optimizer
from jaxarc.agents.policy import EditPolicy, PolicyOutput

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
