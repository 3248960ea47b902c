"""The guide API: reset and step of one task, alone or in a batch, compiled.

A facade over the same core as :mod:`jaxarc.envs.environment`; here the task travels in the state.
"""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32

from jaxarc.compilation import require_own_jax, with_axes_of_xla
from jaxarc.config import JaxArcConfig
from jaxarc.device_arrays import own_arrays
from jaxarc.envs.executor import as_single, take_step
from jaxarc.envs.observations import make_info, observe
from jaxarc.envs.pairs import on_canvas, pairs_of_task
from jaxarc.envs.start import split_for_episode, start_episode
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.prng import from_key_data
from jaxarc.tasks.augmentation import augment_task, draw_augmentation
from jaxarc.tasks.task import create_mock_task
from jaxarc.types import Info, JaxArcTask, Observation, PRNGKey
from jaxarc.utils.error_handling import JAXErrorHandler, refuse_unstructured

Step = tuple[ArcEnvState, Observation, Float32[Array, "*B"], Bool[Array, "*B"], Info]
Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class _Compiled(Generic[Arguments, Result]):
    """A function compiled by ``eqx.filter_jit``, with its ``lower``; checks are compiled for one error mode."""

    def __init__(self, function: Callable[Arguments, Result]):
        def of_mode(mode: str, *args: Any, **named: Any) -> Result:  # the mode is a key of the cache
            with JAXErrorHandler.compiling(mode):
                return function(*args, **named)

        functools.update_wrapper(self, function)
        of_mode.__name__ = of_mode.__qualname__ = function.__name__
        self._jitted: Any = eqx.filter_jit(with_axes_of_xla(of_mode))

    def __call__(self, *args: Arguments.args, **named: Arguments.kwargs) -> Result:
        require_own_jax()
        args, named = own_arrays((args, named))
        return self._jitted(JAXErrorHandler.mode_to_compile(), *args, **named)

    def lower(self, *args: Arguments.args, **named: Arguments.kwargs) -> Any:
        """Lower it for arguments, as the method of ``eqx.filter_jit``."""
        return self._jitted.lower(JAXErrorHandler.mode_to_compile(), *args, **named)


@_Compiled
def arc_reset(
    key: PRNGKey, config: JaxArcConfig, task_data: JaxArcTask | None = None
) -> tuple[ArcEnvState, Observation]:
    """Start an episode on a pair of the task.

    Args:
        key: random key, typed or raw.
        config: fixes shapes and rules; equal configs share one compilation.
        task_data: the task to play; without one, a small mock task.

    Returns:
        The state, and the observation: by default the working grid, int8[H, W] with -1 as padding.

    Raises:
        TypeError: the config or the task is of another type.
        ValueError: the task is larger than the canvas.
    """
    _require_config(config)
    if task_data is None:
        task_data = create_mock_task(*config.grid_shape)
    if not isinstance(task_data, JaxArcTask):
        raise TypeError(f"task_data must be a JaxArcTask, got {type(task_data).__name__}; see jaxarc.tasks.create_task")
    # The task itself is turned and recolored and kept in the state, where env.reset keeps the augmentation alone and
    # applies it as it loads grids.
    keys = split_for_episode(key)
    augmentation = None
    if config.augmentation.is_active:
        key_augmentation = from_key_data(keys.augmentation)
        slots = task_data.input_grids_examples.shape[0]
        augmentation = draw_augmentation(key_augmentation, task_data.num_train_pairs, slots, config.augmentation)
        task_data = augment_task(on_canvas(task_data, config.grid_shape), augmentation)
    source = pairs_of_task(task_data, config.grid_shape, config.episode.mode)
    state = start_episode(
        keys,
        source,
        task_data.task_index,
        config,
        augmentation=augmentation,
        task_data=task_data,
        demonstrations=(
            pairs_of_task(task_data, config.grid_shape, "train") if config.observation.include_demonstrations else None
        ),
        num_slots=config.observation.max_demonstrations or task_data.input_grids_examples.shape[0],
    )
    return state, observe(state, source, config)


@_Compiled
def arc_step(state: ArcEnvState, action: StructuredAction, config: JaxArcConfig) -> Step:
    """Take one step of an episode; a state that is done stays as it is, with reward 0.

    Args:
        state: from :func:`arc_reset` or an earlier step.
        action: of the config's selection format.
        config: the one that the state was made with.

    Returns:
        State, observation, reward (float32), done (bool) and info; see :func:`jaxarc.envs.observations.make_info`.

    Raises:
        TypeError: the action is a dictionary or of another format.
        ValueError: a mask has the wrong shape, or the state was made with another config.
        RuntimeError: with policy ``"raise"``, an operation or coordinate is out of range or not allowed.
    """
    _require_config(config)
    _require_matching(state, config)
    state, action = as_single(state, action, config)
    assert state.task_data is not None
    source = pairs_of_task(state.task_data, config.grid_shape, config.episode.mode)
    state, reward, invalid = take_step(state, action, source, config)
    return state, observe(state, source, config), reward, state.done, make_info(state, source, invalid, config)


@_Compiled
def batch_reset(
    keys: PRNGKey, config: JaxArcConfig, task_data: JaxArcTask | None = None
) -> tuple[ArcEnvState, Observation]:
    """Start one episode per key, all on the same task; every leaf gets a leading batch axis.

    See :func:`arc_reset`; environment ``i`` depends on ``keys[i]`` alone.
    """
    _require_keys(keys)
    return jax.vmap(lambda key: arc_reset(key, config, task_data))(keys)


@_Compiled
def batch_step(states: ArcEnvState, actions: StructuredAction, config: JaxArcConfig) -> Step:
    """Take one step in every environment of a batch; see :func:`arc_step`.

    Raises:
        ValueError: states and actions are no batches of one size.
    """
    _require_config(config)
    refuse_unstructured(actions)
    _require_batches(states, actions)
    return jax.vmap(lambda state, action: arc_step(state, action, config))(states, actions)


def _require_config(config: JaxArcConfig) -> None:
    if not isinstance(config, JaxArcConfig):
        raise TypeError(f"config must be a JaxArcConfig, got {type(config).__name__}; see JaxArcConfig.from_hydra")


def _require_batches(states: ArcEnvState, actions: StructuredAction) -> None:
    if not isinstance(states, ArcEnvState):
        raise TypeError(f"batch_step takes the states that batch_reset made, got {type(states).__name__}")
    # One size of all leading axes, as {(8,)}: two sizes are batches that do not fit, and () is a single environment.
    sizes = {leaf.shape[:1] for leaf in jax.tree.leaves((states, actions))}
    if len(sizes) > 1 or () in sizes:
        shapes = ", ".join(
            f"{field.name} {getattr(actions, field.name).shape}" for field in dataclasses.fields(actions)
        )
        raise ValueError(
            f"batch_step takes as many actions as states, all with a leading batch axis, got states of shape "
            f"{states.counts.shape[:-1]} and an action with {shapes}; for one environment there is arc_step"
        )


def _require_keys(keys: PRNGKey) -> None:
    if not isinstance(keys, jax.Array | np.ndarray):
        raise TypeError(f"keys come from jax.random.split(key, batch_size), got {keys!r:.60}")
    # A typed key is a scalar and a raw one is a row of words, so a batch has one axis or two.
    typed = jnp.issubdtype(keys.dtype, jax.dtypes.prng_key)
    if keys.ndim != (1 if typed else 2):
        raise ValueError(
            f"batch_reset takes one key per environment, got an array of shape {keys.shape}; "
            "make them with jax.random.split(key, batch_size)"
        )


def _require_matching(state: ArcEnvState, config: JaxArcConfig) -> None:
    if not isinstance(state, ArcEnvState) or state.task_data is None:
        raise TypeError("arc_step takes a state made by arc_reset; states of jaxarc.make are stepped by env.step")
