"""How long an episode lasts and how its operations are executed."""

from dataclasses import dataclass

from jaxarc.config.build import CheckedConfig, at_least, fits_int32, one_of

EXECUTORS = ("auto", "compact", "dense")


@dataclass(frozen=True)
class EnvironmentConfig(CheckedConfig):
    max_episode_steps: int = 100  # an episode that reaches it is truncated
    max_submissions: int = 1  # the last one ends the episode
    executor: str = "auto"  # compact on CPU, dense on accelerators; the results are the same bit for bit

    def validate(self) -> list[str]:
        return [
            *at_least("max_episode_steps", self.max_episode_steps, 1),
            *fits_int32("max_episode_steps", self.max_episode_steps),
            *at_least("max_submissions", self.max_submissions, 1),
            *fits_int32("max_submissions", self.max_submissions),
            *one_of("executor", self.executor, EXECUTORS),
        ]
