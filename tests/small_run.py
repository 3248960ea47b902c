"""A training run on 2x2 grids whose update takes milliseconds, its rules, and what two runs of it must agree in."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import jax
import numpy as np
from small_tasks import tasks_of, write_json

from jaxarc.agents import read_metrics
from jaxarc.config import JaxArcConfig
from jaxarc.datasets import TaskSet
from jaxarc.runs import RunFolder

LEARNABLE: Final = JaxArcConfig().with_fields(selection_format="bbox", reveal_target=True, include_step_count=True)
"""The least that an agent which edits needs of the rules."""
RULES_2X2: Final = LEARNABLE.with_fields(
    max_grid_height=2, max_grid_width=2, max_episode_steps=3, invalid_action_policy="noop", history_enabled=False
)
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
_CLOCKS: Final = ("seconds", "steps_per_second", "examples_per_second")


def small_run(tasks: Path, updates: int, *choices: str) -> list[str]:
    """Return the choices of such a run, for ``jaxarc train``."""
    length = f"training.total_steps={updates * STEPS_PER_UPDATE}"
    data = (f"task.train_dataset={tasks}", f"task.evaluation_dataset={write_measured_tasks(tasks)}")
    return [*SMALL, *choices, length, *data]


def write_small_tasks(folder: Path) -> Path:
    """Write three tasks that such a run can learn, and return their folder."""
    for color in (1, 2, 3):
        pair, test = ({"input": [[0, 0]], "output": [[color, color]]}, {"input": [[0], [0]], "output": [[color]] * 2})
        write_json(folder / f"task{color}.json", {"train": [pair], "test": [test]})
    return folder


def write_measured_tasks(tasks: Path) -> Path:
    """Write three other tasks beside those that a run learns, and return their folder; it may be there."""
    folder = tasks.with_name(f"{tasks.name}-measured")
    for color in (1, 2, 3):
        pair, test = ({"input": [[0, color]], "output": [[color, 0]]}, {"input": [[color]], "output": [[color], [0]]})
        write_json(folder / f"task{color}.json", {"train": [pair], "test": [test]})
    return folder


def only_folder(root: Path) -> RunFolder:
    (path,) = root.iterdir()
    return RunFolder(path)


def painted(*targets: list[list[int]]) -> TaskSet:
    """Return tasks that such a run can learn: each starts black, and these are the outputs."""
    return tasks_of(*((np.zeros_like(target), target) for target in map(np.asarray, targets)))


def reports_of(folder: RunFolder) -> list[dict[str, Any]]:
    """Return what the metrics of a run tell besides the clocks."""
    return without_clocks(read_metrics(folder.metrics))


def without_clocks(reports: Iterable[Any]) -> list[dict[str, Any]]:
    return [{name: value for name, value in vars(report).items() if name not in _CLOCKS} for report in reports]


def same(first: Any, second: Any) -> bool:
    """Return whether two trees have the same arrays, bit for bit."""
    leaves = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in leaves)


class Ready:
    """Stands for a function, or for its lowered program, that is compiled already; a call traces it."""

    def __init__(self, program: Any, traced: Callable[..., Any] | None = None):
        self.program = program
        self.traced = traced

    def __call__(self, *args: Any) -> Any:
        assert self.traced is not None
        return self.traced(*args)

    def lower(self, *_: Any) -> "Ready":
        return self

    def compile(self, _: Any = None) -> Any:
        return self.program
