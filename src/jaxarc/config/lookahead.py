"""What a surrogate of the lookahead expert learns from: how many candidates, how sharp an opinion, which states."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least, in_range, one_of

SCORERS = ("counts", "attention")


@dataclass(frozen=True)
class LookaheadConfig(CheckedConfig):
    scorer: str = "counts"  # linear in counts of cells, and quick; attention: the network of surrogate_network
    num_candidates: int = 256  # k, drawn in each state
    temperature: float = 0.01  # of the expert's opinion, in similarity; a cell of a 10x10 grid is worth 0.01
    num_examples: int = 256  # B, of a batch
    episode_steps: int = 8  # consecutive states that are taken from an episode; divides num_examples
    random_share: float = 0.25  # chance that an episode goes on with any candidate, not one that the expert likes
    num_measured: int = 4096  # examples on pairs that are never learned from

    def validate(self) -> list[str]:
        problems = [
            *one_of("scorer", self.scorer, SCORERS),
            *at_least("num_candidates", self.num_candidates, 1),
            *in_range("temperature", self.temperature, 1e-4, 10.0),
            *at_least("num_examples", self.num_examples, 1),
            *at_least("episode_steps", self.episode_steps, 1),
            *in_range("random_share", self.random_share, 0.0, 1.0),
            *at_least("num_measured", self.num_measured, 1),
        ]
        for name in ("num_examples", "num_measured"):
            if not problems and getattr(self, name) % self.episode_steps:
                problems.append(f"episode_steps must divide {name}, got {self.episode_steps} and {getattr(self, name)}")
        return problems
