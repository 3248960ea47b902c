"""How long a training run lasts, and how often it reports."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least, in_range


@dataclass(frozen=True)
class TrainingConfig(CheckedConfig):
    seed: int = 0
    total_steps: int = 1_000_000  # environment steps; the learning rate decays over them
    max_seconds: float | None = None  # stop earlier, counted without compilation
    updates_per_report: int = 4  # updates in one compiled call, after which metrics are reported
    reports_per_evaluation: int = 1  # every pair of both sets is played after so many reports
    compilation_cache: bool = False  # keep compiled programs in the user's cache folder for the next run

    def validate(self) -> list[str]:
        problems = [
            *in_range("seed", self.seed, 0, 2**31 - 1),
            *at_least("total_steps", self.total_steps, 1),
            *at_least("updates_per_report", self.updates_per_report, 1),
            *at_least("reports_per_evaluation", self.reports_per_evaluation, 1),
        ]
        if self.max_seconds is not None:
            problems += at_least("max_seconds", self.max_seconds, 0)
        return problems
