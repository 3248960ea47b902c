"""Which tasks are drawn more often than others while an agent learns."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least, in_range, one_of

CURRICULUM_KINDS = ("uniform", "learnability", "replay")


@dataclass(frozen=True)
class CurriculumConfig(CheckedConfig):
    kind: str = "uniform"  # base weights as they are; learnability: solved half of the time; replay: by score and age
    uniform_share: float = 0.2  # share of draws by base weights, so that no task starves; not of kind uniform
    temperature: float = 1.0  # of learnability or rank: weight ** (1 / temperature); low is greedy, high is even
    staleness_share: float = 0.1  # replay: share of draws by the time since a task was last played
    decay: float = 0.9  # of the recent success rate, per episode: it remembers about 1 / (1 - decay) episodes
    prior_success: float = 0.5  # recent success rate of a task that was never played; 0.5 is the most learnable

    def validate(self) -> list[str]:
        return [
            *one_of("kind", self.kind, CURRICULUM_KINDS),
            *in_range("uniform_share", self.uniform_share, 0.0, 1.0),
            *at_least("temperature", self.temperature, 0.01),
            *in_range("staleness_share", self.staleness_share, 0.0, 1.0),
            *in_range("decay", self.decay, 0.0, 0.9999),
            *in_range("prior_success", self.prior_success, 0.01, 0.99),
        ]
