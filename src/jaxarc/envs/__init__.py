"""The environment core: pure functions on arrays."""

from jaxarc.config import (
    ActionConfig,
    ConfigValidationError,
    DatasetConfig,
    EnvironmentConfig,
    EpisodeConfig,
    HistoryConfig,
    JaxArcConfig,
    ObservationConfig,
    RewardConfig,
)
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.functional import arc_reset, arc_step, batch_reset, batch_step
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction
from jaxarc.interface import Environment

# The names of the guide API.
UnifiedActionConfig = ActionConfig
UnifiedDatasetConfig = DatasetConfig
UnifiedRewardConfig = RewardConfig

__all__ = [
    "ActionConfig",
    "ArcEnvState",
    "ArcEnvironment",
    "BboxAction",
    "ConfigValidationError",
    "DatasetConfig",
    "EnvParams",
    "Environment",
    "EnvironmentConfig",
    "EpisodeConfig",
    "HistoryConfig",
    "JaxArcConfig",
    "MaskAction",
    "ObservationConfig",
    "PointAction",
    "RewardConfig",
    "UnifiedActionConfig",
    "UnifiedDatasetConfig",
    "UnifiedRewardConfig",
    "arc_reset",
    "arc_step",
    "batch_reset",
    "batch_step",
]
