"""``make``: from the name of a dataset to an environment and its params."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jax.numpy as jnp

from jaxarc.config import JaxArcConfig
from jaxarc.envs.environment import ArcEnvironment, EnvParams
from jaxarc.tasks.catalogue import load_tasks
from jaxarc.tasks.sampling import task_weights, uniform_weights
from jaxarc.tasks.task_set import TaskSet


def make(
    dataset: str | Path | TaskSet,
    config: JaxArcConfig | None = None,
    *,
    tasks: Iterable[str] | Mapping[str, float] | None = None,
    **fields: Any,
) -> tuple[ArcEnvironment, EnvParams]:
    """Make an environment that plays the tasks of a dataset, and the params that hold them.

    ``make("arc-agi-1/training", selection_format="bbox", max_episode_steps=100)`` plays 400 real tasks.

    Args:
        dataset: a name (see :func:`jaxarc.tasks.dataset_names`), a file or folder of ARC JSON, or a task set.
        config: where to start from; the defaults otherwise.
        tasks: ids to play, or a weight for each; only these are loaded. Every task alike when left out.
        **fields: config fields by their own name, whichever topic they belong to.

    Returns:
        The environment and its params; a curriculum changes ``params.weights`` without a recompilation.

    Raises:
        UnknownDatasetError, UnknownTaskError: with near matches.
        ConfigValidationError: a field is unknown or breaks a rule.
        ValueError: a task is larger than the canvas.
    """
    settings = (config or JaxArcConfig()).with_fields(**fields)
    task_set = dataset if isinstance(dataset, TaskSet) else load_tasks(dataset)
    if tasks is not None:
        tasks = tasks if isinstance(tasks, str | Mapping) else list(tasks)
        task_set = task_set.select(ids=tasks)
    buffer = task_set.buffer(settings.grid_shape)
    weights = uniform_weights(len(task_set)) if tasks is None else task_weights(task_set, tasks)
    return ArcEnvironment(), EnvParams(buffer, jnp.asarray(weights), settings)
