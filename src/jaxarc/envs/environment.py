"""The agent API: an environment that many tasks share, for loops that reset and step millions of times."""

import abc
import dataclasses
from typing import Generic, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Float32

from jaxarc.config import JaxArcConfig
from jaxarc.constants import MAX_TRACKED_PAIRS
from jaxarc.envs.boundary import compiled
from jaxarc.envs.episode_keys import split_for_episode
from jaxarc.envs.observations import observe, report
from jaxarc.envs.pairs import pairs_of_buffer
from jaxarc.envs.spaces import ActionSpace, Space, action_space, observation_space
from jaxarc.envs.start import start_episode
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.envs.transition import require_single, take_step
from jaxarc.prng import fraction
from jaxarc.tasks.buffer import TaskBuffer
from jaxarc.tasks.sampling import task_at
from jaxarc.types import Info, Observation, PRNGKey

State = TypeVar("State")
Step = tuple[State, Observation, Float32[Array, ""], Bool[Array, ""], Info]


class EnvParams(eqx.Module):
    """What an environment plays: the tasks, how often each, and the rules.

    Arrays may change from call to call without a recompilation; the config is static.

    Raises:
        ValueError: buffer, weights and config do not fit one another.
    """

    tasks: TaskBuffer
    weights: Float[Array, " T"]  # how often a reset draws each task, relative to their sum; 0 or more
    config: JaxArcConfig = eqx.field(static=True)

    def __check_init__(self) -> None:
        if self.tasks.grid_shape != self.config.grid_shape:
            raise ValueError(
                f"the buffer is packed for a canvas of {self.tasks.grid_shape}, but the config's canvas is "
                f"{self.config.grid_shape}; pack it with task_set.buffer(config.grid_shape)"
            )
        if self.weights.shape != (self.tasks.num_tasks,):
            raise ValueError(
                f"weights must have one entry per task, shape ({self.tasks.num_tasks},), got {self.weights.shape}"
            )
        if not isinstance(self.weights, Tracer):
            weights = np.asarray(self.weights)
            if not np.issubdtype(weights.dtype, np.floating):
                raise TypeError(f"weights must be floating-point numbers, got dtype {weights.dtype}")
            if not np.all(np.isfinite(weights)) or weights.min() < 0 or weights.max() <= 0:
                raise ValueError(
                    f"weights must be finite and 0 or more, one of them above 0; they lie in "
                    f"[{weights.min()}, {weights.max()}]"
                )
        counts = self.tasks.num_train if self.config.episode.mode == "train" else self.tasks.num_test
        if self.config.switches_pairs and not isinstance(counts, Tracer):
            most = int(counts.max())
            if most > MAX_TRACKED_PAIRS:
                raise ValueError(
                    f"pair switching tracks at most {MAX_TRACKED_PAIRS} pairs a task, but a task has {most}; "
                    "switch it off or leave the task out"
                )


class Environment(abc.ABC, Generic[State]):
    """What agents and wrappers hold; every method is pure and works under jit, vmap and scan.

    Every kind is a frozen dataclass that is a pytree, and no ``eqx.Module``: looking up a method of one takes longer
    than a step.

    Class data sheet:
        state: :class:`ArcEnvState`, a few kilobytes at 30x30.
        observation: int8[H, W] working grid, -1 as padding; more by ``config.observation``.
        action: :class:`PointAction`, :class:`BboxAction` or :class:`MaskAction` by ``config.action.selection_format``.
        reward: float32, see :func:`jaxarc.envs.rewards.compute_reward`.
        done: ``terminated | truncated``; both are in ``info``.
    """

    @abc.abstractmethod
    def reset(self, key: PRNGKey, params: EnvParams) -> tuple[State, Observation]:
        """Start an episode on a task drawn by the params' weights."""

    @abc.abstractmethod
    def step(self, state: State, action: StructuredAction, params: EnvParams) -> Step[State]:
        """Take one step; see :func:`jaxarc.envs.functional.arc_step`."""

    @abc.abstractmethod
    def observe(self, state: State, params: EnvParams) -> Observation:
        """Show a state as ``reset`` and ``step`` do."""

    @abc.abstractmethod
    def info(self, state: State, params: EnvParams) -> Info:
        """Report on a state with the keys, shapes and dtypes of a step's info."""

    def action_space(self, params: EnvParams) -> ActionSpace:
        """The legal actions."""
        return action_space(params.config)

    def observation_space(self, params: EnvParams) -> Space:
        """Every observation of this environment lies in it."""
        return observation_space(params.config)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ArcEnvironment(Environment[ArcEnvState]):
    """The environment itself, without wrappers; it holds nothing."""

    def reset(self, key: PRNGKey, params: EnvParams) -> tuple[ArcEnvState, Observation]:
        """Start an episode on a task drawn by the params' weights.

        Args:
            key: random key, typed or raw.
            params: tasks, weights and rules.

        Returns:
            The state and the first observation.
        """
        return _reset(key, params)

    def step(self, state: ArcEnvState, action: StructuredAction, params: EnvParams) -> Step[ArcEnvState]:
        """Take one step; see :func:`jaxarc.envs.functional.arc_step`."""
        return _step(state, action, params)

    def observe(self, state: ArcEnvState, params: EnvParams) -> Observation:
        """Show a state as ``reset`` and ``step`` do; see :func:`jaxarc.envs.observations.observe`."""
        return observe(state, params.config)

    def info(self, state: ArcEnvState, params: EnvParams) -> Info:
        """Report on a state with the keys, shapes and dtypes of a step's info."""
        return report(state, jnp.zeros_like(state.terminated), params.config)


@compiled()
def _reset(key: PRNGKey, params: EnvParams) -> tuple[ArcEnvState, Observation]:
    _require_params(params)
    keys = split_for_episode(key)
    task_index = task_at(fraction(keys.task), params.weights)
    source = pairs_of_buffer(params.tasks, task_index, params.config.episode)
    state = start_episode(keys, source, task_index, params.config)
    return state, observe(state, params.config)


@compiled(may_raise=lambda state, action, params: checks_actions(params))
def _step(state: ArcEnvState, action: StructuredAction, params: EnvParams) -> Step[ArcEnvState]:
    _require_params(params)
    if not isinstance(state, ArcEnvState) or state.task_data is not None:
        raise TypeError("env.step takes a state made by env.reset; states of arc_reset are stepped by arc_step")
    require_single(state, action)
    source = pairs_of_buffer(params.tasks, state.task_index, params.config.episode)
    state, reward, invalid = take_step(state, action, source, params.config)
    return state, observe(state, params.config), reward, state.done, report(state, invalid, params.config)


def checks_actions(params: EnvParams) -> bool:
    """Whether a step raises on an invalid action."""
    return isinstance(params, EnvParams) and params.config.action.invalid_action_policy == "raise"


def _require_params(params: EnvParams) -> None:
    if not isinstance(params, EnvParams):
        raise TypeError(
            f"params must be the EnvParams that jaxarc.make returns, got {type(params).__name__}; "
            "the guide API, arc_reset and arc_step, takes a config"
        )
