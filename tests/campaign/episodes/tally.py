"""What a fuzzing campaign has compared."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class Tally:
    """What was compared."""

    steps: int = 0  # of running episodes
    idle_steps: int = 0  # of episodes that are done already
    episodes: int = 0  # that ended
    solved: int = 0  # submits that solved a pair
    invalid: int = 0  # invalid or illegal actions that were taken
    raised: int = 0  # batches with a wrong action that were refused
    histories: int = 0  # comparisons of whole histories
    exact_rewards: int = 0  # with the very bits of the reference; the others differ by rounding

    def add(self, other: Tally) -> None:
        for name, number in asdict(other).items():
            setattr(self, name, getattr(self, name) + number)
