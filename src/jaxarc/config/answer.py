"""Where a policy gets the answer from that it edits towards, and how it learns to imagine one."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least, in_range, one_of

ANSWER_SOURCES = ("shown", "imagined")


@dataclass(frozen=True)
class AnswerConfig(CheckedConfig):
    source: str = "shown"  # in the observation; imagined: predicted from the demonstrations, the answer stays hidden
    batch_size: int = 64  # puzzles in a batch of the predictor
    batches_per_update: int = 16  # batches that the predictor learns from beside each update of the policy
    learning_rate: float = 3e-3  # of the predictor, falls to 0 along a cosine
    hidden_size: int = 64  # hidden units of the predictor's layers

    def validate(self) -> list[str]:
        counts = ("batch_size", "batches_per_update", "hidden_size")
        return [
            *one_of("source", self.source, ANSWER_SOURCES),
            *[problem for name in counts for problem in at_least(name, getattr(self, name), 1)],
            *in_range("learning_rate", self.learning_rate, 0.0, 1.0),
        ]
