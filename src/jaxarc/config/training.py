"""What a training run plays, how long it lasts and where it writes."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least, in_range
from jaxarc.constants import MAX_GRID_SIZE


@dataclass(frozen=True)
class TrainingConfig(CheckedConfig):
    train_dataset: str = "arc-agi-1/training"  # a name or a path; its pairs are learned from
    evaluation_dataset: str = "arc-agi-1/evaluation"  # its pairs are only played, never learned from
    max_side: int = 5  # tasks with a longer side, in any pair, are left out
    seed: int = 0
    total_steps: int = 1_000_000  # environment steps; the learning rate decays over them
    max_seconds: float | None = None  # stop earlier, counted without compilation
    updates_per_report: int = 4  # updates in one compiled call, after which metrics are reported
    reports_per_evaluation: int = 1  # every pair of both sets is played after so many reports
    compilation_cache: bool = False  # keep compiled programs in the user's cache folder for the next run
    run_root: str = "runs"  # the folder that holds the run folders
    run_name: str = "ppo"  # ends the run folder's name, after date and time

    def validate(self) -> list[str]:
        problems = [
            *in_range("max_side", self.max_side, 1, MAX_GRID_SIZE),
            *in_range("seed", self.seed, 0, 2**31 - 1),
            *at_least("total_steps", self.total_steps, 1),
            *at_least("updates_per_report", self.updates_per_report, 1),
            *at_least("reports_per_evaluation", self.reports_per_evaluation, 1),
        ]
        if self.max_seconds is not None:
            problems += at_least("max_seconds", self.max_seconds, 0)
        if not self.run_name or set(self.run_name) & set('/\\:*?"<>|'):
            problems.append(f"run_name must be part of a folder's name: not empty, no path; got {self.run_name!r}")
        return problems
