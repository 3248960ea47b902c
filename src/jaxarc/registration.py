"""``make``: from the name of a dataset to an environment and its params."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from jaxarc.config import JaxArcConfig
from jaxarc.datasets.catalogue import load_tasks
from jaxarc.datasets.task_set import TaskSet, task_weights
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.tasks.buffer import TaskGenerator
from jaxarc.tasks.procedural import procedural_tasks
from jaxarc.tasks.procedural.names import PREFIX
from jaxarc.tasks.sampling import uniform_weights


def make(
    dataset: str | Path | TaskSet | TaskGenerator,
    config: JaxArcConfig | None = None,
    *,
    tasks: Iterable[str] | Mapping[str, float] | None = None,
    **fields: Any,
) -> tuple[ArcEnvironment, EnvParams]:
    """Make an environment that plays the tasks of a dataset, and the params that hold them.

    ``make("arc-agi-1/training", selection_format="bbox", max_episode_steps=100)`` plays 400 real tasks;
    ``make("procedural/gravity", max_grid_height=10, max_grid_width=10)`` a new task in every episode.

    Args:
        dataset: a name (see :func:`jaxarc.datasets.load_tasks`), a file or folder of ARC JSON, a task set, or a
            generator (see :func:`jaxarc.tasks.procedural.procedural_tasks`).
        config: the config that ``fields`` change; by default the defaults.
        tasks: ids to play, or a weight for each; only these are loaded. By default every task, with equal weights.
        **fields: config fields by their own name, of any topic.

    Returns:
        The environment and its params; a curriculum changes ``params.weights`` without a recompilation.

    Raises:
        UnknownDatasetError, UnknownTaskError, UnknownRuleError: with near matches.
        ConfigValidationError: a field is unknown or breaks a rule.
        TypeError: the config is of another type.
        ValueError: a task is larger than the canvas, or ``tasks`` are given with a generator, which has none.

    Warns:
        TooLargeWarning: with ``too_large="report"``, tasks were left out because they do not fit the canvas.
    """
    if config is not None and not isinstance(config, JaxArcConfig):
        raise TypeError(f"config must be a JaxArcConfig, got {type(config).__name__}; see JaxArcConfig.from_hydra")
    settings = (config or JaxArcConfig()).with_fields(**fields)
    if isinstance(dataset, str) and dataset.startswith(PREFIX):
        dataset = procedural_tasks(dataset, settings.grid_shape)
    if isinstance(dataset, TaskGenerator):
        if tasks is not None:
            raise ValueError("a generator has no tasks to choose from, got tasks=...; name the rules when making it")
        return ArcEnvironment(), EnvParams(dataset, uniform_weights(dataset.num_tasks), settings)
    task_set = dataset if isinstance(dataset, TaskSet) else load_tasks(dataset)
    chosen = None if tasks is None else (tasks if isinstance(tasks, str | Mapping) else list(tasks))
    if chosen is not None:
        task_set = task_set.select(ids=chosen)
    task_set = task_set.fit(settings.grid_shape, settings.dataset.too_large)
    if isinstance(chosen, Mapping):
        weights = task_weights(task_set, {name: weight for name, weight in chosen.items() if name in task_set})
    else:
        weights = uniform_weights(len(task_set))
    buffer = task_set.buffer(settings.grid_shape).with_symmetries(settings.augmentation.num_symmetries)
    return ArcEnvironment(), EnvParams(buffer, weights, settings)
