"""Where a run writes, and who else hears of it."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig


@dataclass(frozen=True)
class LoggingConfig(CheckedConfig):
    run_root: str = "runs"  # the folder that holds the run folders
    run_name: str = "ppo"  # ends the run folder's name, after date and time
    tensorboard: bool = False  # also write the run folder's tensorboard/, one curve a seed; needs jaxarc[tensorboard]
    wandb: bool = False  # also send reports to Weights & Biases, where WANDB_MODE says; needs jaxarc[wandb]
    wandb_project: str = "jaxarc"  # the project there

    def validate(self) -> list[str]:
        problems = []
        if not self.run_name or set(self.run_name) & set('/\\:*?"<>|'):
            problems.append(f"run_name must be part of a folder's name: not empty, no path; got {self.run_name!r}")
        if not self.wandb_project:
            problems.append("wandb_project must not be empty")
        return problems
