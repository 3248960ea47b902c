"""Policies, the algorithms that train them, and their runs."""

from jaxarc.agents.edits import Edit, Network
from jaxarc.agents.experiment import Experiment, Report, read_metrics
from jaxarc.agents.games.game_agent import GameAgent, load_game_agent
from jaxarc.agents.games.levels import load_levels
from jaxarc.agents.own_parts import OwnPartError, register_network, register_reward
from jaxarc.agents.policy import EditPolicy, PolicyOutput
from jaxarc.agents.ppo import LearnerState, Losses, TrainConfig, Trajectories, make_optimizer
from jaxarc.agents.saved_agent import EditAgent, TrainedAgent, load_agent, load_policy
from jaxarc.agents.updates import ALGORITHMS, TrainingState
from jaxarc.datasets.training_pairs import TrainingPairs, load_pairs

__all__ = [
    "ALGORITHMS",
    "Edit",
    "EditAgent",
    "EditPolicy",
    "Experiment",
    "GameAgent",
    "LearnerState",
    "Losses",
    "Network",
    "OwnPartError",
    "PolicyOutput",
    "Report",
    "TrainConfig",
    "TrainedAgent",
    "TrainingPairs",
    "TrainingState",
    "Trajectories",
    "load_agent",
    "load_game_agent",
    "load_levels",
    "load_pairs",
    "load_policy",
    "make_optimizer",
    "read_metrics",
    "register_network",
    "register_reward",
]
