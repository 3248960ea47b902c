"""Where a run writes, and who else hears of it."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig


@dataclass(frozen=True)
class LoggingConfig(CheckedConfig):
    run_root: str = "runs"  # the folder that holds the run folders
    run_name: str = "ppo"  # ends the run folder's name, after date and time

    def validate(self) -> list[str]:
        if not self.run_name or set(self.run_name) & set('/\\:*?"<>|'):
            return [f"run_name must be part of a folder's name: not empty, no path; got {self.run_name!r}"]
        return []
