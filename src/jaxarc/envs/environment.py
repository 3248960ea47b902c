"""The agent API: an environment that many tasks share, for loops that reset and step millions of times."""

import abc
import dataclasses
from typing import Generic, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int, Int32

from jaxarc.envs.compilation import compiled
from jaxarc.envs.observations import make_info, observation_space, observe
from jaxarc.envs.pairs import PairSource, generate_pairs, pairs_in_play
from jaxarc.envs.params import EnvParams
from jaxarc.envs.spaces import Space, action_space
from jaxarc.envs.start import EpisodeKeys, split_for_episode, start_episode
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.envs.transition import require_single, take_step
from jaxarc.prng import from_key_data, to_uniform
from jaxarc.tasks.augmentation import draw_augmentation
from jaxarc.tasks.sampling import next_task_index, sample_task_index
from jaxarc.types import Info, Observation, PRNGKey

State = TypeVar("State")
Step = tuple[State, Observation, Float32[Array, ""], Bool[Array, ""], Info]


class Environment(abc.ABC, Generic[State]):
    """The interface of agents and wrappers; every method is pure and works under jit, vmap and scan.

    Every kind is a frozen dataclass that is a pytree, and no ``eqx.Module``: looking up a method of one takes longer
    than a step.

    Class data sheet:
        state: :class:`ArcEnvState`, a few kilobytes at 30x30.
        observation: int8[H, W] working grid, -1 as padding; more by ``config.observation``.
        action: :class:`PointAction`, :class:`BboxAction` or :class:`MaskAction` by ``config.action.selection_format``.
        reward: float32, see :func:`jaxarc.envs.scoring.compute_reward`.
        done: ``terminated | truncated``; both are in ``info``.
    """

    @abc.abstractmethod
    def reset(
        self,
        key: PRNGKey,
        params: EnvParams,
        task_index: Int[Array, ""] | int | None = None,
        pair_index: Int[Array, ""] | int | None = None,
    ) -> tuple[State, Observation]:
        """Start an episode on a task drawn by the params' weights, or on the task and the pair that are given."""

    @abc.abstractmethod
    def reset_next(self, state: State, params: EnvParams) -> tuple[State, Observation]:
        """Start the episode that follows the one of a state, as auto-reset does.

        It draws with the state's key, or with ``episode.task_order="in_turn"`` goes on to the next task.
        """

    @abc.abstractmethod
    def step(self, state: State, action: StructuredAction, params: EnvParams) -> Step[State]:
        """Take one step; see :func:`jaxarc.envs.functional.arc_step`."""

    @abc.abstractmethod
    def observe(self, state: State, params: EnvParams) -> Observation:
        """Show a state as ``reset`` and ``step`` do."""

    @abc.abstractmethod
    def info(self, state: State, params: EnvParams) -> Info:
        """Metrics of a state, with the keys, shapes and dtypes of a step's info."""

    def action_space(self, params: EnvParams) -> Space:
        """The legal actions."""
        _require_params(params)
        return action_space(params.config)

    def observation_space(self, params: EnvParams) -> Space:
        """A space that holds every observation."""
        _require_params(params)
        return observation_space(params.config, params.tasks.num_slots)


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class ArcEnvironment(Environment[ArcEnvState]):
    """The environment itself, without wrappers; it has no fields."""

    def reset(
        self,
        key: PRNGKey,
        params: EnvParams,
        task_index: Int[Array, ""] | int | None = None,
        pair_index: Int[Array, ""] | int | None = None,
    ) -> tuple[ArcEnvState, Observation]:
        """Start an episode on a task drawn by the params' weights, or on the task and the pair that are given.

        Args:
            key: random key, typed or raw.
            params: tasks, weights and rules.
            task_index: index of a task in ``params.tasks``, 0 .. T - 1; drawn by weight when left out.
            pair_index: index of a pair among those that the mode plays; chosen as the params say when left out.

        Returns:
            The state and the first observation.

        Raises:
            IndexError: there is no such task or pair. Inside ``jit`` and ``vmap`` no error can be raised, and the
                nearest one is played.
        """
        # Checked here, on the host: in the compiled function below indices are traced, and no error can be raised for
        # them.
        if not (task_index is None and pair_index is None):
            _require_params(params)
            params.require_index(task_index, pair_index)
        return _reset(key, params, _index(task_index), _index(pair_index))

    def reset_next(self, state: ArcEnvState, params: EnvParams) -> tuple[ArcEnvState, Observation]:
        """Start the episode that follows; see :meth:`Environment.reset_next`."""
        return _reset_next(state, params)

    def step(self, state: ArcEnvState, action: StructuredAction, params: EnvParams) -> Step[ArcEnvState]:
        """Take one step; see :func:`jaxarc.envs.functional.arc_step`."""
        return _step(state, action, params)

    def observe(self, state: ArcEnvState, params: EnvParams) -> Observation:
        """Show a state as ``reset`` and ``step`` do; see :func:`jaxarc.envs.observations.observe`."""
        return observe(state, _pairs_of(state, params), params.config)

    def info(self, state: ArcEnvState, params: EnvParams) -> Info:
        """Metrics of a state, with the keys, shapes and dtypes of a step's info."""
        return make_info(state, _pairs_of(state, params), jnp.zeros_like(state.terminated), params.config)


@compiled()
def _reset(
    key: PRNGKey, params: EnvParams, task_index: Int32[Array, ""] | None, pair_index: Int32[Array, ""] | None
) -> tuple[ArcEnvState, Observation]:
    _require_params(params)
    keys = split_for_episode(key)
    if task_index is None:
        task_index = sample_task_index(to_uniform(keys.task), params.weights)
    return _start(keys, params, jnp.clip(task_index, 0, params.tasks.num_tasks - 1), pair_index)


@compiled()
def _reset_next(state: ArcEnvState, params: EnvParams) -> tuple[ArcEnvState, Observation]:
    # Everything the next episode draws comes from the state's key, which this episode has not used, so that a stored
    # state goes on with the same episodes.
    keys = split_for_episode(state.key)
    if params.config.episode.task_order == "in_turn":
        task_index = next_task_index(state.task_index, params.weights)
    else:
        task_index = sample_task_index(to_uniform(keys.task), params.weights)
    return _start(keys, params, task_index, None)


def _start(
    keys: EpisodeKeys, params: EnvParams, task_index: Int32[Array, ""], pair_index: Int32[Array, ""] | None
) -> tuple[ArcEnvState, Observation]:
    tasks = params.tasks
    config = params.config
    # 1. How the task is changed, if at all; 2. its pairs, made anew by a generator or found in the buffer; 3. the first
    # state on one of them. Demonstrations to show are pairs of train mode, whichever mode is played.
    augmentation = None
    if config.augmentation.is_active:
        key = from_key_data(keys.augmentation)
        num_train = tasks.num_train_of(task_index)
        augmentation = draw_augmentation(key, num_train, tasks.num_slots, config.augmentation)
    generated = generate_pairs(from_key_data(keys.generation), tasks, task_index, augmentation)
    source = pairs_in_play(tasks, generated, task_index, augmentation, config.episode.mode)
    state = start_episode(
        keys,
        source,
        task_index,
        config,
        pair_index=params.pair_index if pair_index is None else pair_index,
        augmentation=augmentation,
        pairs=generated,
        demonstrations=pairs_in_play(tasks, generated, task_index, augmentation, "train"),
        num_slots=tasks.num_slots,
    )
    return state, observe(state, source, config)


def _pairs_of(state: ArcEnvState, params: EnvParams) -> PairSource:
    return pairs_in_play(params.tasks, state.pairs, state.task_index, state.augmentation, params.config.episode.mode)


@compiled(may_raise=lambda state, action, params: checks_actions(params))
def _step(state: ArcEnvState, action: StructuredAction, params: EnvParams) -> Step[ArcEnvState]:
    _require_params(params)
    if not isinstance(state, ArcEnvState) or state.task_data is not None:
        raise TypeError("env.step takes a state made by env.reset; states of arc_reset are stepped by arc_step")
    require_single(state, action)
    source = _pairs_of(state, params)
    state, reward, invalid = take_step(state, action, source, params.config)
    return (
        state,
        observe(state, source, params.config),
        reward,
        state.done,
        make_info(state, source, invalid, params.config),
    )


def checks_actions(params: EnvParams) -> bool:
    """Whether a step raises on an invalid action."""
    return isinstance(params, EnvParams) and params.config.action.invalid_action_policy == "raise"


def _index(index: Int[Array, ""] | int | None) -> Int32[Array, ""] | None:
    return None if index is None else jnp.asarray(index, jnp.int32)


def _require_params(params: EnvParams) -> None:
    if not isinstance(params, EnvParams):
        raise TypeError(
            f"params must be the EnvParams that jaxarc.make returns, got {type(params).__name__}; "
            "the guide API, arc_reset and arc_step, takes a config"
        )
