"""How long a training run lasts, and how often it reports."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least, in_range


@dataclass(frozen=True)
class TrainingConfig(CheckedConfig):
    seed: int = 0  # of the first agent; the others take the numbers after it
    num_seeds: int = 1  # K, agents that learn side by side in one compiled program, each from a seed of its own
    total_steps: int = 1_000_000  # environment steps of each seed; the learning rate decays over them
    max_seconds: float | None = None  # stop earlier, counted without compilation
    updates_per_report: int = 4  # updates in one compiled call, after which metrics are reported
    reports_per_evaluation: int = 1  # every pair of both sets is played after so many reports
    compilation_cache: bool = False  # keep compiled programs in the user's cache folder for the next run

    @property
    def seeds(self) -> range:
        """One for each agent."""
        return range(self.seed, self.seed + self.num_seeds)

    def validate(self) -> list[str]:
        problems = [
            *at_least("num_seeds", self.num_seeds, 1),
            *in_range("seed", self.seed, 0, 2**31 - self.num_seeds),  # the last seed fits 31 bits
            *at_least("total_steps", self.total_steps, 1),
            *at_least("updates_per_report", self.updates_per_report, 1),
            *at_least("reports_per_evaluation", self.reports_per_evaluation, 1),
        ]
        if self.max_seconds is not None:
            problems += at_least("max_seconds", self.max_seconds, 0)
        return problems
