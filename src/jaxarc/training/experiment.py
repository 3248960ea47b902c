"""One training run, said completely: the rules, the learning, the data and their order."""

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

from jaxarc.agents.policy import missing_for_editing
from jaxarc.agents.recipe import Recipe
from jaxarc.config import (
    AgentConfig,
    CurriculumConfig,
    JaxArcConfig,
    LoggingConfig,
    NetworkConfig,
    ScheduleConfig,
    TaskConfig,
    TrainingConfig,
)
from jaxarc.config.build import CheckedConfig


@dataclass(frozen=True)
class Experiment(CheckedConfig):
    """Everything that a run depends on; equal experiments give equal results on equal machines."""

    environment: JaxArcConfig = field(default_factory=JaxArcConfig)
    agent: AgentConfig = field(default_factory=AgentConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    task: TaskConfig = field(default_factory=TaskConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    curriculum: CurriculumConfig = field(default_factory=CurriculumConfig)
    logging: LoggingConfig = field(default_factory=LoggingConfig)

    @property
    def num_updates(self) -> int:
        """Updates of the whole run, whole reports of them."""
        each = self.training.updates_per_report
        return each * math.ceil(self.training.total_steps / (self.agent.samples_per_update * each))

    @property
    def recipe(self) -> Recipe:
        """What the compiled part of learning depends on."""
        return Recipe(self.agent, self.network, self.schedule, self.num_updates)

    def as_dict(self) -> dict[str, Any]:
        """Return nested dictionaries of plain values, for JSON."""
        return dataclasses.asdict(self)

    def validate(self) -> list[str]:
        problems = missing_for_editing(self.environment)
        height, width = self.environment.grid_shape
        if self.task.max_side > min(height, width):
            problems.append(
                f"task.max_side must fit the canvas, dataset.max_grid_height x dataset.max_grid_width = "
                f"{height}x{width}, got {self.task.max_side}"
            )
        return problems
