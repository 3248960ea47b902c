"""A training run on 2x2 grids whose update takes milliseconds, and what two runs of it must agree in."""

import json
from pathlib import Path
from typing import Any, Final

from jaxarc.agents import read_metrics
from jaxarc.runs import RunFolder

STEPS_PER_UPDATE: Final = 32
SMALL: Final = (
    "experiment=small_grids",
    "agent.num_envs=8",
    "agent.rollout_steps=4",
    "agent.num_minibatches=2",
    "dataset.max_grid_height=2",
    "dataset.max_grid_width=2",
    "environment.max_episode_steps=3",
    "task.max_side=2",
    "training.updates_per_report=1",
)
_CLOCKS: Final = ("seconds", "steps_per_second")


def small_run(tasks: Path, updates: int, *choices: str) -> list[str]:
    """Return the choices of such a run, for ``jaxarc train``."""
    length = f"training.total_steps={updates * STEPS_PER_UPDATE}"
    data = (f"task.train_dataset={tasks}", f"task.evaluation_dataset={write_measured_tasks(tasks)}")
    return [*SMALL, *choices, length, *data]


def write_small_tasks(folder: Path) -> Path:
    """Write three tasks that such a run can learn, and return their folder."""
    for color in (1, 2, 3):
        pair, test = ({"input": [[0, 0]], "output": [[color, color]]}, {"input": [[0], [0]], "output": [[color]] * 2})
        (folder / f"task{color}.json").write_text(json.dumps({"train": [pair], "test": [test]}))
    return folder


def write_measured_tasks(tasks: Path) -> Path:
    """Write three other tasks beside those that a run learns, and return their folder; it may be there."""
    folder = tasks.with_name(f"{tasks.name}-measured")
    folder.mkdir(exist_ok=True)
    for color in (1, 2, 3):
        pair, test = ({"input": [[0, color]], "output": [[color, 0]]}, {"input": [[color]], "output": [[color], [0]]})
        (folder / f"task{color}.json").write_text(json.dumps({"train": [pair], "test": [test]}))
    return folder


def reports_of(folder: RunFolder) -> list[dict[str, Any]]:
    """Return what the metrics of a run tell besides the clocks."""
    reports = [vars(report) for report in read_metrics(folder.metrics)]
    return [{name: value for name, value in report.items() if name not in _CLOCKS} for report in reports]
