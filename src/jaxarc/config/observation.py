"""What an agent is shown beside the working grid."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig


@dataclass(frozen=True)
class ObservationConfig(CheckedConfig):
    reveal_target: bool = False  # adds "target_grid"; refused in test mode
    include_step_count: bool = False  # adds "step_count"
