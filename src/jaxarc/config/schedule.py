"""What changes while an agent learns: the learning rate, and how much it is asked to try."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, in_range, one_of

DECAYS = ("linear", "cosine", "constant")


@dataclass(frozen=True)
class ScheduleConfig(CheckedConfig):
    learning_rate: float = 4e-3  # of Adam, at the start
    final_learning_rate: float = 2e-4  # reached at the end, except by "constant"; the decay avoids a late collapse
    decay: str = "linear"
    warmup_share: float = 0.0  # share of the run in which the learning rate first rises from 0 in a straight line
    entropy_weight: float = 0.01  # at the start; higher tries more
    final_entropy_weight: float = 0.01  # reached in a straight line at the end

    def validate(self) -> list[str]:
        return [
            *one_of("decay", self.decay, DECAYS),
            *in_range("learning_rate", self.learning_rate, 0.0, 1.0),
            *in_range("final_learning_rate", self.final_learning_rate, 0.0, self.learning_rate),
            *in_range("warmup_share", self.warmup_share, 0.0, 0.9),
            *in_range("entropy_weight", self.entropy_weight, 0.0, 1e6),
            *in_range("final_entropy_weight", self.final_entropy_weight, 0.0, 1e6),
        ]
