"""How often a run is saved, and which of its checkpoints stay."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least


@dataclass(frozen=True)
class CheckpointConfig(CheckedConfig):
    min_seconds: float = 10.0  # of learning between two checkpoints; 0 saves at each report. The end is always saved
    keep_last: int = 2  # the newest; one more than is needed, should the newest be damaged
    keep_best: int = 1  # those with the highest evaluation_solve_rate (of a surrogate: agreement), mean over seeds

    def validate(self) -> list[str]:
        return [
            *at_least("min_seconds", self.min_seconds, 0.0),
            *at_least("keep_last", self.keep_last, 1),
            *at_least("keep_best", self.keep_best, 0),
        ]
