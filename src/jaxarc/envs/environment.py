"""The agent API: an environment that many tasks share, for loops that reset and step millions of times."""

import abc
import dataclasses
import functools
from collections.abc import Callable
from typing import Any, Generic, TypeAlias, TypeVar, final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int, Int32

from jaxarc.config import JaxArcConfig
from jaxarc.device_arrays import device_array
from jaxarc.envs.compilation import compiled
from jaxarc.envs.executor import as_single, start_where, step_and_start, steps_and_starts_natively, take_step
from jaxarc.envs.observations import make_info, make_info_in_branch, observation_space, observe
from jaxarc.envs.pairs import PairSource
from jaxarc.envs.params import EnvParams, declared_params, require_params
from jaxarc.envs.rows import reset_where
from jaxarc.envs.spaces import Discrete, Space, action_space
from jaxarc.envs.start import start_first, start_next
from jaxarc.envs.state import ArcEnvState, declared_state
from jaxarc.envs.step import StepOutcome, pairs_of
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.types import Info, Observation, PRNGKey

State = TypeVar("State")
Step = tuple[State, Observation, Float32[Array, ""], Bool[Array, ""], Info]
Action: TypeAlias = StructuredAction | Int[Array, ""] | int  # what step takes: a number with FlatActions only


@dataclasses.dataclass(frozen=True, eq=False)
class Defaults:
    """The name and the params that :func:`jaxarc.make` gives an environment; each is equal to itself alone."""

    name: str
    params: EnvParams


class Environment(abc.ABC, Generic[State]):
    """The interface of agents and wrappers; every method is pure and works under jit, vmap and scan.

    Every kind is a frozen dataclass that is a pytree, and no ``eqx.Module``: looking up a method of one takes longer
    than a step. A kind of your own derives from this class or from :class:`jaxarc.wrappers.Wrapper`. Those of this
    package are final: compiled programs take their parts as one, so that a part that is overridden would be left out.
    """

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        for base in cls.__mro__[1:]:
            if "__final__" in vars(base):  # of typing.final
                instead = "jaxarc.wrappers.Wrapper, and put it around one, or from jaxarc.Environment"
                raise TypeError(f"{base.__name__} is final; derive {cls.__name__} from {instead}")
        if "step" in cls.__dict__:
            cls.step = _explain_order(cls.step)

    @abc.abstractmethod
    def reset(
        self,
        key: PRNGKey,
        params: EnvParams,
        task_index: Int[Array, ""] | int | None = None,
        pair_index: Int[Array, ""] | int | None = None,
    ) -> tuple[State, Observation]:
        """Start an episode; see :meth:`jaxarc.ArcEnvironment.reset`."""

    @abc.abstractmethod
    def reset_next(self, state: State, params: EnvParams) -> tuple[State, Observation]:
        """Start the episode that follows the one of a state, as auto-reset does.

        It draws with the state's key, or with ``episode.task_order="in_turn"`` goes on to the next task.
        """

    @abc.abstractmethod
    def step(self, state: State, action: Action, params: EnvParams) -> Step[State]:
        """Take one step; see :meth:`jaxarc.ArcEnvironment.step`."""

    def step_and_reset(self, state: State, action: Action, params: EnvParams) -> Step[State]:
        """Take one step, and start the next episode where it ended: ``step``, then ``reset_next``.

        Returns:
            What ``step`` returns; where the episode ended, state and observation are the first ones of the next.
            ``info["final_observation"]`` is the observation before any reset, on every step, and
            ``info["action_mask"]``, where there is one, belongs to the observation that is returned.
        """
        return _step_and_reset(self, state, action, params)

    @abc.abstractmethod
    def observe(self, state: State, params: EnvParams) -> Observation:
        """Show a state as ``reset`` and ``step`` do."""

    @abc.abstractmethod
    def info(self, state: State, params: EnvParams) -> Info:
        """Metrics of a state, with the keys, shapes and dtypes of a step's info."""

    def action_space(self, params: EnvParams) -> Space:
        """The legal actions."""
        require_params(params)
        return action_space(params.config)

    def observation_space(self, params: EnvParams) -> Space:
        """A space that holds every observation."""
        require_params(params)
        return observation_space(params.config, params.num_slots)

    @property
    def defaults(self) -> Defaults | None:
        """What :func:`jaxarc.make` made the environment with; None of one that was made without it."""
        return None

    @property
    def name(self) -> str:
        """``jaxarc/`` and the dataset's name."""
        return "jaxarc" if self.defaults is None else f"jaxarc/{self.defaults.name}"

    @property
    def default_params(self) -> EnvParams:
        """The params that :func:`jaxarc.make` returned.

        Raises:
            AttributeError: the environment was made without ``jaxarc.make``, or is an argument of a compiled function:
                there the params are an argument of their own.
        """
        if self.defaults is None:
            raise AttributeError(
                "this environment has no default_params, because jaxarc.make did not make it or it is an argument of "
                "a compiled function; pass the params that jaxarc.make returned, and write env.action_space(params).n "
                "for env.num_actions"
            )
        return self.defaults.params

    @property
    def num_actions(self) -> int:
        """How many flat actions there are with the default params, as an agent with one logit for each needs it.

        Raises:
            ValueError: actions are structured.
            AttributeError: there are no default params; take ``env.action_space(params).n``.
        """
        space = self.action_space(self.default_params)
        if not isinstance(space, Discrete):
            raise ValueError(
                f"actions of format {self.default_params.config.action.selection_format!r} are structured and have no "
                "single number; make the environment with flat_actions=True (points on any canvas, boxes up to 9x9), "
                "or take env.action_space(params)"
            )
        return space.n


def _explain_order(step: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse a call in gymnax's order, which begins with a key; nothing in a step is random."""

    @functools.wraps(step)
    def call(self: Any, *args: Any, **named: Any) -> Any:
        if len(args) > 3:
            raise TypeError(
                f"env.step takes 3 arguments, (state, action, params), got {len(args)}; gymnax's order, "
                "(key, state, action, params), needs jaxarc.adapters.GymnaxEnvironment"
            )
        return step(self, *args, **named)

    return call


@final
@dataclasses.dataclass(frozen=True)
class ArcEnvironment(Environment[ArcEnvState]):
    """ARC as a Markov decision process: an agent edits a grid until it is the output that belongs to an input.

    An episode plays one pair of one task. The working grid begins as the pair's input, or as ``episode.start_grid``
    says. Each step applies one of 42 operations to a selection of cells (fill, flood fill, move, rotate, flip, copy,
    paste, resize, submit, ...); a submit that equals the target solves the pair. Tasks, weights and rules are in the
    params, so the environment itself has no arrays.

    Class data sheet:
        state: :class:`ArcEnvState`, a few kilobytes at 30x30; ``state.key`` is for the next episode.
        observation: int8[H, W] working grid, colors 0..9 and -1 as padding; with fields of ``config.observation`` a
            dictionary with ``working_grid`` and more.
        action: :class:`PointAction`, :class:`BboxAction` or :class:`MaskAction` by ``config.action.selection_format``.
        reward: float32; the gain in similarity, a penalty for each step, and the terms of a submit, see
            :func:`jaxarc.envs.step.compute_reward`.
        done: ``terminated`` (the last submit, or a submit that solves the last pair) ``| truncated`` (the step limit).
        auto-reset: none; a state that is done stays as it is, with reward 0. :class:`jaxarc.wrappers.AutoReset`.

    Example::

        env, params = jaxarc.make("arc-agi-1/training", selection_format="bbox")
        state, observation = env.reset(jax.random.key(0), params)
        action = jaxarc.BboxAction(3, 0, 0, 1, 1)  # fill rows 0-1 and columns 0-1 with color 3
        state, observation, reward, done, info = env.step(state, action, params)

    Source: ARC is of Chollet, "On the Measure of Intelligence" (arXiv:1911.01547). Editing by operations on selections
    is as in ARCLE (Lee et al., arXiv:2407.20806) and in JaxARC; ``docs/operations.md`` has the rules used here.
    """

    made_with: Defaults | None = None  # no part of the pytree

    def __repr__(self) -> str:
        return "ArcEnvironment()" if self.made_with is None else f"ArcEnvironment({self.name!r})"

    @property
    def defaults(self) -> Defaults | None:
        return self.made_with

    def reset(
        self,
        key: PRNGKey,
        params: EnvParams,
        task_index: Int[Array, ""] | int | None = None,
        pair_index: Int[Array, ""] | int | None = None,
    ) -> tuple[ArcEnvState, Observation]:
        """Start an episode on a task drawn by the params' weights, or on the task and the pair that are given.

        Many environments are ``jax.vmap(env.reset, (0, None))(jax.random.split(key, B), params)``.

        Args:
            key: random key, typed or raw; of one environment. Equal keys give equal episodes.
            params: tasks, weights and rules.
            task_index: index of a task in ``params.tasks``, 0 .. T - 1; drawn by weight when left out.
            pair_index: index of a pair among those that the mode plays; chosen as the params say when left out.

        Returns:
            The state and the first observation, int8[H, W] or a dictionary as ``config.observation`` says.

        Raises:
            IndexError: there is no such task or pair. Inside ``jit`` and ``vmap`` no error can be raised, and the
                nearest one is played.
            TypeError: the key or the params are of another type.
        """
        # Checked here, on the host: in the compiled function below indices are traced, and no error can be raised for
        # them.
        if not (task_index is None and pair_index is None):
            require_params(params)
            params.require_index(task_index, pair_index)
        return _reset(key, params, _index(task_index), _index(pair_index))

    def reset_next(self, state: ArcEnvState, params: EnvParams) -> tuple[ArcEnvState, Observation]:
        return _reset_next(state, params)

    def step(self, state: ArcEnvState, action: Action, params: EnvParams) -> Step[ArcEnvState]:
        """Apply an action to the working grid; the order is ``(state, action, params)``, and there is no key.

        A state that is done stays as it is, with reward 0: the environment does not reset itself. Wrap it in
        :class:`jaxarc.wrappers.AutoReset` for endless loops. B environments are
        ``jax.vmap(env.step, (0, 0, None))(states, actions, params)``.

        Args:
            state: of one environment, from ``reset`` or an earlier step.
            action: a :class:`PointAction`, :class:`BboxAction` or :class:`MaskAction`, as
                ``config.action.selection_format`` says.
            params: those of the reset, or others for a canvas of the same size.

        Returns:
            state: the next state.
            observation: as of ``reset``.
            reward: float32[], see :func:`jaxarc.envs.step.compute_reward`.
            done: bool[], the episode has ended.
            info: arrays of shape [], with the same keys on every step: ``terminated`` and ``truncated`` (bool),
                ``discount`` (float32: 0 where terminated, else 1), ``success`` (bool: a submit solved a pair; false on
                hidden pairs), ``similarity`` (float32: 0 .. 1; 0 on hidden pairs), ``invalid_action`` (bool),
                ``step_count``, ``submission_count``, ``task_index`` and ``pair_index`` (int32).

        Raises:
            RuntimeError: with ``action.invalid_action_policy="raise"``, an operation or coordinate is out of range or
                not allowed. The policies ``"noop"`` and ``"clip"`` report it in ``info["invalid_action"]``.
            TypeError: the action is a dictionary, a number or of another format, or the state is of ``arc_reset``.
            ValueError: state or action is a batch, a mask has the wrong shape, or the config has another canvas.

        Source: operations, endings and rewards are in ``docs/operations.md`` and ``docs/environment.md``; the five
        values are those of Gymnasium's ``step``, with both of its endings in ``info``.
        """
        return _step(state, action, params)

    def step_and_reset(self, state: ArcEnvState, action: Action, params: EnvParams) -> Step[ArcEnvState]:
        return _fused_step(self, state, action, params)

    def observe(self, state: ArcEnvState, params: EnvParams) -> Observation:
        require_params(params)
        return observe(state, pairs_of(state, params), params.config)

    def info(self, state: ArcEnvState, params: EnvParams) -> Info:
        require_params(params)
        return make_info(state, pairs_of(state, params), jnp.zeros_like(state.terminated), params.config)


# A pytree without leaves, whatever it was made with: programs are compiled for any tasks of one shape.
jax.tree_util.register_pytree_node(ArcEnvironment, lambda env: ((), None), lambda *_: ArcEnvironment())


@compiled()
def _reset(
    key: PRNGKey, params: EnvParams, task_index: Int32[Array, ""] | None, pair_index: Int32[Array, ""] | None
) -> tuple[ArcEnvState, Observation]:
    params = declared_params(params)
    state, source = start_first(key, params, task_index, pair_index)
    return state, observe(state, source, params.config)


@compiled()
def _reset_next(state: ArcEnvState, params: EnvParams) -> tuple[ArcEnvState, Observation]:
    params = declared_params(params)
    state, source = start_next(declared_state(state, ()), params)
    return state, observe(state, source, params.config)


def checks_actions(params: EnvParams) -> bool:
    """Whether a step raises on an invalid action."""
    return isinstance(params, EnvParams) and params.config.action.invalid_action_policy == "raise"


compiled_step = compiled(may_raise=lambda *args: checks_actions(args[-1]))
"""Compile a function whose last argument is params, and which takes a step."""


@compiled_step
def _step(state: ArcEnvState, action: StructuredAction, params: EnvParams) -> Step[ArcEnvState]:
    params = declared_params(params)
    if not isinstance(state, ArcEnvState) or state.task_data is not None:
        raise TypeError("env.step takes a state made by env.reset; states of arc_reset are stepped by arc_step")
    state, action = as_single(state, action, params.config)
    source = pairs_of(state, params)
    return _tell(take_step(state, action, source, params.config), source, params.config, make_info_in_branch)


@compiled_step
def _step_and_reset(env: Environment[State], state: State, action: Action, params: EnvParams) -> Step[State]:
    """Do both by the other methods of an environment."""
    stepped = env.step(state, action, params)
    reset = lambda state, _, params: env.reset_next(state, params)[0]
    return _go_on(env, stepped, reset_where(stepped[3], reset, stepped[0], (), params), params)


@compiled_step
def _fused_step(env: ArcEnvironment, state: ArcEnvState, action: Action, params: EnvParams) -> Step[ArcEnvState]:
    """Do both by one call of the C++ library where that can."""
    is_ours = isinstance(state, ArcEnvState) and isinstance(params, EnvParams)
    if is_ours and isinstance(action, StructuredAction):
        state, action = as_single(state, action, params.config)
        params = declared_params(params)
    if not (isinstance(action, StructuredAction) and steps_and_starts_natively(state, params)):
        stepped = env.step(state, action, params)
        return _go_on(env, stepped, start_where(stepped[3], stepped[0], params), params)
    outcome, source, after, shown = step_and_start(state, action, params)
    _, observation, reward, done, info = _tell(outcome, source, params.config)
    info = with_next_mask(env.info, {**info, "final_observation": observation}, after, params)
    return after, observe(shown, source, params.config), reward, done, info


def _go_on(env: Environment[State], stepped: Step[State], after: State, params: EnvParams) -> Step[State]:
    """Return a step from which an episode goes on, or the next one begins, in the state ``after`` it."""
    # What is returned about the step is still that of the old state.
    _, observation, reward, done, info = stepped
    info = with_next_mask(env.info, {**info, "final_observation": observation}, after, params)
    return after, env.observe(after, params), reward, done, info


def with_next_mask(show_info: Callable[[Any, EnvParams], Info], info: Info, after: Any, params: EnvParams) -> Info:
    """Put the action mask of the state after a reset, whose observation is returned, in place of the ended one's."""
    if not params.config.action.mask_in_info:
        return info
    return {**info, "action_mask": show_info(after, params)["action_mask"]}


def _tell(outcome: StepOutcome, source: PairSource, config: JaxArcConfig, tell: Any = make_info) -> Step[ArcEnvState]:
    state, reward, invalid = outcome
    return state, observe(state, source, config), reward, state.done, tell(state, source, invalid, config)


def _index(index: Int[Array, ""] | int | None) -> Int32[Array, ""] | None:
    return None if index is None else device_array(index, jnp.int32)
