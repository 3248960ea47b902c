"""From which steps of the environment a model of it learns, and on how many it is measured."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least, in_range


@dataclass(frozen=True)
class EditStepsConfig(CheckedConfig):
    num_examples: int = 128  # steps in a batch
    walk_steps: int = 4  # consecutive steps that are taken from an episode; divides num_examples and num_measured
    num_measured: int = 2048  # steps on pairs that are never learned from
    learning_rate: float = 2e-3  # highest, of this model; all else of its training is as surrogate_training says
    final_learning_rate: float = 2e-5
    drift_steps: int = 5  # for which a model goes on from its own predictions when it is judged
    drift_walks: int = 128  # of each operation

    def validate(self) -> list[str]:
        problems = [
            *at_least("num_examples", self.num_examples, 1),
            *at_least("walk_steps", self.walk_steps, 1),
            *at_least("num_measured", self.num_measured, 1),
            *in_range("learning_rate", self.learning_rate, 0.0, 1.0),
            *in_range("final_learning_rate", self.final_learning_rate, 0.0, self.learning_rate),
            *at_least("drift_steps", self.drift_steps, 1),
            *at_least("drift_walks", self.drift_walks, 1),
        ]
        for name in ("num_examples", "num_measured"):
            if not problems and getattr(self, name) % self.walk_steps:
                problems.append(f"walk_steps must divide {name}, got {self.walk_steps} and {getattr(self, name)}")
        return problems
