"""The ids under which other libraries know our environments, and what is made for one."""

from pathlib import Path
from typing import Any

from jaxarc.datasets import dataset_names
from jaxarc.datasets.task_set import TaskSet
from jaxarc.envs.environment import Environment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.versions import ENVIRONMENT_VERSION
from jaxarc.registration import make
from jaxarc.tasks.buffer import TaskGenerator
from jaxarc.wrappers.flat_actions import FlatActions


def environment_id(dataset: str) -> str:
    """Return the id of a dataset; an id has one slash: ``jaxarc/arc-agi-1-training-v1`` for ``arc-agi-1/training``."""
    return f"jaxarc/{dataset.replace('/', '-')}-v{ENVIRONMENT_VERSION}"


def environment_ids() -> dict[str, str]:
    """Return the dataset of every id, installed or not."""
    return {environment_id(name): name for name in dataset_names()}


def make_chosen(
    dataset: str | Path | TaskSet | TaskGenerator, *, flat_actions: bool = False, **choice: Any
) -> tuple[Environment[Any], EnvParams]:
    """Make an environment as :func:`jaxarc.make` does.

    Args:
        dataset: what ``jaxarc.make`` takes.
        flat_actions: one integer per action, see :class:`~jaxarc.wrappers.FlatActions`.
        **choice: the other arguments of ``jaxarc.make``.
    """
    env, params = make(dataset, **choice)
    return (FlatActions(env) if flat_actions else env), params
