"""One training run, said completely: the rules, the learning, the data and their order."""

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

from jaxarc.agents.policy import missing_for_editing
from jaxarc.config import CurriculumConfig, JaxArcConfig, PPOConfig, TrainingConfig
from jaxarc.config.build import CheckedConfig


@dataclass(frozen=True)
class Experiment(CheckedConfig):
    """Everything that a run depends on; equal experiments give equal results on equal machines."""

    environment: JaxArcConfig = field(default_factory=JaxArcConfig)
    ppo: PPOConfig = field(default_factory=PPOConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    curriculum: CurriculumConfig = field(default_factory=CurriculumConfig)

    @property
    def num_updates(self) -> int:
        """Updates of the whole run, whole reports of them."""
        each = self.training.updates_per_report
        return each * math.ceil(self.training.total_steps / (self.ppo.samples_per_update * each))

    def as_dict(self) -> dict[str, Any]:
        """Return nested dictionaries of plain values, for JSON."""
        return dataclasses.asdict(self)

    def validate(self) -> list[str]:
        problems = missing_for_editing(self.environment)
        height, width = self.environment.grid_shape
        if self.training.max_side > min(height, width):
            problems.append(
                f"training.max_side must fit the canvas, dataset.max_grid_height x dataset.max_grid_width = "
                f"{height}x{width}, got {self.training.max_side}"
            )
        return problems
