"""Every choice a user can make, as frozen dataclasses: one file a topic, the only home of a default."""

from jaxarc.config.action import ActionConfig
from jaxarc.config.agent import AgentConfig
from jaxarc.config.answer import AnswerConfig
from jaxarc.config.augmentation import AugmentationConfig
from jaxarc.config.build import ConfigValidationError, build
from jaxarc.config.checkpoint import CheckpointConfig
from jaxarc.config.cloning import CloningConfig
from jaxarc.config.curriculum import CurriculumConfig
from jaxarc.config.dataset import DatasetConfig
from jaxarc.config.environment import EnvironmentConfig
from jaxarc.config.episode import EpisodeConfig
from jaxarc.config.history import HistoryConfig
from jaxarc.config.logging import LoggingConfig
from jaxarc.config.main import JaxArcConfig
from jaxarc.config.network import NetworkConfig
from jaxarc.config.observation import ObservationConfig
from jaxarc.config.parallel import ParallelConfig
from jaxarc.config.reward import RewardConfig
from jaxarc.config.schedule import ScheduleConfig
from jaxarc.config.surrogate import StructuralModelConfig, SurrogateNetworkConfig, SurrogateTrainingConfig
from jaxarc.config.task import TaskConfig
from jaxarc.config.training import TrainingConfig

__all__ = [
    "ActionConfig",
    "AgentConfig",
    "AnswerConfig",
    "AugmentationConfig",
    "CheckpointConfig",
    "CloningConfig",
    "ConfigValidationError",
    "CurriculumConfig",
    "DatasetConfig",
    "EnvironmentConfig",
    "EpisodeConfig",
    "HistoryConfig",
    "JaxArcConfig",
    "LoggingConfig",
    "NetworkConfig",
    "ObservationConfig",
    "ParallelConfig",
    "RewardConfig",
    "ScheduleConfig",
    "StructuralModelConfig",
    "SurrogateNetworkConfig",
    "SurrogateTrainingConfig",
    "TaskConfig",
    "TrainingConfig",
    "build",
]
