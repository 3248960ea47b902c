"""The agent API: an environment that many tasks share, for loops that reset and step millions of times."""

import dataclasses
from typing import Any, TypeAlias, final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Int32

from jaxarc.compilation import compiled
from jaxarc.config import JaxArcConfig
from jaxarc.device_arrays import device_array
from jaxarc.envs.action_space import action_space
from jaxarc.envs.executor import as_single, start_where, step_and_start, steps_and_starts_natively, take_step
from jaxarc.envs.observations import make_info, make_info_in_branch, observation_space, observe
from jaxarc.envs.pairs import PairSource
from jaxarc.envs.params import EnvParams, declared_params, require_params
from jaxarc.envs.start import start_first, start_next
from jaxarc.envs.state import ArcEnvState, declared_state
from jaxarc.envs.step import StepOutcome, pairs_of
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.interface import Environment, Step, compiled_step, go_on
from jaxarc.spaces import Space
from jaxarc.types import Info, Observation, PRNGKey

Action: TypeAlias = StructuredAction | Int[Array, ""] | int  # what step takes: a number with FlatActions only


@dataclasses.dataclass(frozen=True, eq=False)
class Defaults:
    """The name and the params that :func:`jaxarc.make` gives an environment; each is equal to itself alone."""

    name: str
    params: EnvParams


@final
@dataclasses.dataclass(frozen=True)
class ArcEnvironment(Environment[ArcEnvState, EnvParams]):
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

    def action_space(self, params: EnvParams) -> Space:
        require_params(params)
        return action_space(params.config)

    def observation_space(self, params: EnvParams) -> Space:
        require_params(params)
        return observation_space(params.config, params.num_slots)

    def require(self, params: EnvParams) -> None:
        require_params(params)

    def checks_actions(self, params: EnvParams) -> bool:
        return params.config.action.invalid_action_policy == "raise"

    def executor(self, params: EnvParams) -> str:
        return params.config.environment.executor

    def info_of_observation(self, params: EnvParams) -> tuple[str, ...]:
        return ("action_mask",) if params.config.action.mask_in_info else ()

    @property
    def name(self) -> str:
        return "jaxarc" if self.made_with is None else f"jaxarc/{self.made_with.name}"

    @property
    def default_params(self) -> EnvParams:
        return super().default_params if self.made_with is None else self.made_with.params


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


@compiled(may_raise=lambda _state, _action, params: params.config.action.invalid_action_policy == "raise")
def _step(state: ArcEnvState, action: StructuredAction, params: EnvParams) -> Step[ArcEnvState]:
    params = declared_params(params)
    if not isinstance(state, ArcEnvState) or state.task_data is not None:
        raise TypeError("env.step takes a state made by env.reset; states of arc_reset are stepped by arc_step")
    state, action = as_single(state, action, params.config)
    source = pairs_of(state, params)
    return _tell(take_step(state, action, source, params.config), source, params.config, make_info_in_branch)


@compiled_step
def _fused_step(env: ArcEnvironment, state: ArcEnvState, action: Action, params: EnvParams) -> Step[ArcEnvState]:
    """Do both by one call of the C++ library where that can."""
    is_ours = isinstance(state, ArcEnvState) and isinstance(params, EnvParams)
    if is_ours and isinstance(action, StructuredAction):
        state, action = as_single(state, action, params.config)
        params = declared_params(params)
    if not (isinstance(action, StructuredAction) and steps_and_starts_natively(state, params)):
        stepped = env.step(state, action, params)
        return go_on(env, stepped, start_where(stepped[3], stepped[0], params), params)
    outcome, source, after, shown = step_and_start(state, action, params)
    _, observation, reward, done, info = _tell(outcome, source, params.config)
    info = {**info, "final_observation": observation}
    if params.config.action.mask_in_info:  # that of what is shown
        info["action_mask"] = env.info(after, params)["action_mask"]
    return after, observe(shown, source, params.config), reward, done, info


def _tell(outcome: StepOutcome, source: PairSource, config: JaxArcConfig, tell: Any = make_info) -> Step[ArcEnvState]:
    state, reward, invalid = outcome
    return state, observe(state, source, config), reward, state.done, tell(state, source, invalid, config)


def _index(index: Int[Array, ""] | int | None) -> Int32[Array, ""] | None:
    return None if index is None else device_array(index, jnp.int32)
