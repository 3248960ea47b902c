"""Policies, and how they learn."""

from jaxarc.agents.edits import Edit
from jaxarc.agents.policy import Decision, EditPolicy
from jaxarc.agents.ppo import Learner, Trajectories, make_optimizer, update

__all__ = ["Decision", "Edit", "EditPolicy", "Learner", "Trajectories", "make_optimizer", "update"]
