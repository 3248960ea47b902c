"""What a run reports while it goes on, one line of JSON each."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Report:
    """How a run stands. Rates are shares of 0 .. 1; None where nothing was measured since the last report."""

    update: int  # updates so far
    environment_steps: int  # so far, over all environments
    seconds: float  # since learning began, without compilation
    steps_per_second: float | None = None  # of environments, with learning
    episodes: int = 0  # training episodes that ended
    mean_return: float | None = None  # of those episodes, undiscounted
    mean_length: float | None = None  # their steps
    episode_solve_rate: float | None = None  # of those episodes: sampled edits, some starts partly solved
    train_solve_rate: float | None = None  # of the training pairs, each played once by the greedy policy
    evaluation_solve_rate: float | None = None  # of the unseen pairs, each played once by the greedy policy
    policy_loss: float | None = None
    value_loss: float | None = None
    entropy: float | None = None
    divergence: float | None = None
    clipped: float | None = None
    tasks_played: int | None = None  # tasks on which an episode ended, since learning began
    effective_tasks: float | None = None  # equally likely tasks that would be as hard to guess as the next one drawn


class MetricsFile:
    """Reports as lines of JSON; each line is on its way to the disk before the next one begins."""

    def __init__(self, path: Path):
        self.path = path

    def append(self, report: Report) -> None:
        line = json.dumps(dataclasses.asdict(report))
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")


def read_metrics(path: Path) -> list[Report]:
    """Read the reports of a metrics file, in order.

    Raises:
        ValueError: a line is not a report.
    """
    reports = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            reports.append(Report(**json.loads(line)))
        except (json.JSONDecodeError, TypeError) as error:
            raise ValueError(f"{path}, line {number} is not a report of a training run: {error}") from error
    return reports
