"""How an agent imitates an expert before it learns by itself."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least, in_range


@dataclass(frozen=True)
class CloningConfig(CheckedConfig):
    num_updates: int = 0  # of imitation, each of as many steps and minibatches as one of the agent's; 0: none
    learning_rate: float = 4e-3  # of Adam, at the start; falls to 0 in a straight line
    traces: str = ""  # a file of `jaxarc traces export` whose actions are imitated, instead of the greedy painter's
    learner_share: float = 0.5  # share of environments that the learner plays, the expert only saying what it would do

    def validate(self) -> list[str]:
        problems = [
            *at_least("num_updates", self.num_updates, 0),
            *in_range("learning_rate", self.learning_rate, 0.0, 1.0),
            *in_range("learner_share", self.learner_share, 0.0, 1.0),
        ]
        if self.traces and not self.num_updates:
            problems.append(
                f"traces={self.traces!r} is imitated in num_updates updates, got 0; choose some, such as 200"
            )
        return problems
