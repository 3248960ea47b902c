"""Policies, and how they learn."""

from jaxarc.agents.edits import Edit
from jaxarc.agents.policy import EditPolicy, PolicyOutput
from jaxarc.agents.ppo import LearnerState, Trajectories, make_optimizer, update

__all__ = ["Edit", "EditPolicy", "LearnerState", "PolicyOutput", "Trajectories", "make_optimizer", "update"]
