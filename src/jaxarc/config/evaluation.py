"""How an agent is evaluated: attempts, votes, and how much at once."""

from dataclasses import dataclass, field

from jaxarc.config.augmentation import AugmentationConfig
from jaxarc.config.build import CheckedConfig, at_least, in_range


def _augmentation_of_voters() -> AugmentationConfig:
    return AugmentationConfig(symmetries="all", recolor="keep_black", shuffle_demos=True)


@dataclass(frozen=True)
class EvaluationConfig(CheckedConfig):
    attempts: int = 2  # k, grids handed in for each test input: 2 in the ARC Prize, 3 in the rules of 2019
    votes: int = 0  # augmented episodes of each test input whose grids vote for the attempts; 0: an episode an attempt
    augmentation: AugmentationConfig = field(default_factory=_augmentation_of_voters)  # of the episodes that vote
    batch_size: int = 1024  # episodes side by side on the device
    seed: int = 0

    def validate(self) -> list[str]:
        problems = [
            *in_range("attempts", self.attempts, 1, 1000),
            *at_least("votes", self.votes, 0),
            *at_least("batch_size", self.batch_size, 1),
            *in_range("seed", self.seed, 0, 2**31 - 1),
        ]
        if 0 < self.votes < self.attempts:
            problems.append(f"votes must be 0, or at least attempts={self.attempts}, got {self.votes}")
        return problems
