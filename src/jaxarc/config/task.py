"""Which tasks an agent learns from, and on which it is measured."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, in_range
from jaxarc.constants import MAX_GRID_SIZE


@dataclass(frozen=True)
class TaskConfig(CheckedConfig):
    train_dataset: str = "arc-agi-1/training"  # a name or a path; its pairs are learned from
    evaluation_dataset: str = "arc-agi-1/evaluation"  # its pairs are only played, never learned from
    max_side: int = 5  # tasks with a longer side, in any pair, are left out

    def validate(self) -> list[str]:
        return in_range("max_side", self.max_side, 1, MAX_GRID_SIZE)
