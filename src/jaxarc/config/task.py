"""Which tasks an agent learns from, and on which it is measured."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, in_range
from jaxarc.constants import MAX_GRID_SIZE, MAX_TRACKED_PAIRS


@dataclass(frozen=True)
class TaskConfig(CheckedConfig):
    train_dataset: str = "arc-agi-1/training"  # a name or a path; procedural/a+b draws new tasks of rules a and b
    evaluation_dataset: str = "arc-agi-1/evaluation"  # only played, never learned from
    min_side: int = 1  # rows and columns of the smallest grids that rules make
    max_side: int = 5  # tasks with a longer side, in any pair, are left out; rules make none
    num_demonstrations: int = 3  # that rules make beside the pair that is played
    num_unseen: int = 512  # tasks of each rule that are played to measure, where the evaluation dataset is procedural

    def validate(self) -> list[str]:
        return [
            *in_range("max_side", self.max_side, 1, MAX_GRID_SIZE),
            *in_range("min_side", self.min_side, 1, self.max_side),
            *in_range("num_demonstrations", self.num_demonstrations, 1, MAX_TRACKED_PAIRS - 1),
            *in_range("num_unseen", self.num_unseen, 1, 2**20),
        ]
