"""An observation or a reward of one's own, by one method."""

import abc
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int

from jaxarc.interface import Environment, State, Step, compiled_step
from jaxarc.spaces import Box, Dict, Space
from jaxarc.types import Info, Observation, PRNGKey
from jaxarc.wrappers.wrapper import Wrapper, resets_itself

_LARGEST = 2**31 - 2  # that an int32 can be drawn up to


def _flatten(wrapper: Any) -> tuple[list[Any], tuple[Any, ...]]:
    fields = dataclasses.fields(wrapper)
    leaves = [getattr(wrapper, field.name) for field in fields if not field.metadata.get("static")]
    return leaves, tuple(getattr(wrapper, field.name) for field in fields if field.metadata.get("static"))


def _unflatten(kind: Any, static: tuple[Any, ...], leaves: Any) -> Any:
    wrapper = object.__new__(kind)  # without checks, since JAX puts in what is no environment, too
    values = {False: iter(leaves), True: iter(static)}
    for field in dataclasses.fields(kind):
        object.__setattr__(wrapper, field.name, next(values[bool(field.metadata.get("static"))]))
    return wrapper


@dataclasses.dataclass(frozen=True)
class _OwnPart(Wrapper[State]):
    """Makes a pytree of each subclass; fields beside ``env`` are leaves, unless their metadata say ``static``."""

    env: Environment[State, Any]

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        jax.tree_util.register_pytree_node(cls, _flatten, lambda static, leaves: _unflatten(cls, static, leaves))

    def __post_init__(self) -> None:
        super().__post_init__()
        if resets_itself(self.env):
            raise ValueError(
                f"{type(self).__name__} would see the state after a reset in place of the ended one; put AutoReset "
                "around it"
            )


@dataclasses.dataclass(frozen=True)
class ObservationWrapper(_OwnPart[State]):
    """Shows what :meth:`observation` returns; a subclass has that method.

    The space has the shapes and dtypes of what it returns, without bounds: bools are 0 or 1, other integers any of
    their dtype, floats any at all. Where the method returns the shapes of the wrapped environment, its bounds stay.
    Override ``observation_space`` to say more.
    """

    @abc.abstractmethod
    def observation(self, observation: Observation, state: State, params: Any) -> Observation:
        """Return what the agent sees of a state.

        Args:
            observation: of the wrapped environment.
            state: that it shows. It holds the answer, which no observation of test mode may depend on.
            params: tasks and rules.
        """

    def reset(
        self,
        key: PRNGKey,
        params: Any,
        task_index: Int[Array, ""] | int | None = None,
        pair_index: Int[Array, ""] | int | None = None,
    ) -> tuple[State, Observation]:
        state, observation = self.env.reset(key, params, task_index, pair_index)
        return state, self.observation(observation, state, params)

    def reset_next(self, state: State, params: Any) -> tuple[State, Observation]:
        state, observation = self.env.reset_next(state, params)
        return state, self.observation(observation, state, params)

    def step(self, state: State, action: Any, params: Any) -> Step[State]:
        return _step_and_show(self, state, action, params)

    def observe(self, state: State, params: Any) -> Observation:
        return self.observation(self.env.observe(state, params), state, params)

    def observation_space(self, params: Any) -> Space:
        inner = self.env.observation_space(params)
        shape = jax.eval_shape(lambda key: self.reset(key, params)[1], jax.random.key(0))
        drawn = jax.eval_shape(inner.sample, jax.random.key(0))
        return inner if shape == drawn else _space_of(shape)


@dataclasses.dataclass(frozen=True)
class RewardWrapper(_OwnPart[State]):
    """Rewards a step by what :meth:`reward` returns; a subclass has that method.

    A step in a state that is done earns 0, whatever the method returns.
    """

    @abc.abstractmethod
    def reward(
        self, reward: Float32[Array, ""], info: Info, before: State, after: State, params: Any
    ) -> Float32[Array, ""]:
        """Return the reward of a step.

        Args:
            reward: of the wrapped environment.
            info: of the step, such as ``info["success"]`` and ``info["similarity"]``.
            before: the state in which the step was taken.
            after: the state that it led to. Both hold the answer, which no reward of test mode may depend on.
            params: tasks and rules.
        """

    def step(self, state: State, action: Any, params: Any) -> Step[State]:
        return _step_and_reward(self, state, action, params)


@compiled_step
def _step_and_show(env: ObservationWrapper[Any], state: Any, action: Any, params: Any) -> Step[Any]:
    after, observation, reward, done, info = env.env.step(state, action, params)
    return after, env.observation(observation, after, params), reward, done, info


@compiled_step
def _step_and_reward(env: RewardWrapper[Any], state: Any, action: Any, params: Any) -> Step[Any]:
    before = env.env.info(state, params)
    after, observation, reward, done, info = env.env.step(state, action, params)
    own = jnp.asarray(env.reward(reward, info, state, after, params), jnp.float32)
    return after, observation, jnp.where(before["terminated"] | before["truncated"], 0.0, own), done, info


def _space_of(shape: Any) -> Space:
    if isinstance(shape, dict):
        return Dict({name: _space_of(part) for name, part in shape.items()})
    if not isinstance(shape, jax.ShapeDtypeStruct):
        raise TypeError(f"an observation is an array or a dictionary of arrays, got a {type(shape).__name__}")
    if shape.dtype == jnp.bool_:
        return Box(0, 1, shape.shape, shape.dtype)
    if jnp.issubdtype(shape.dtype, jnp.integer):
        limits = jnp.iinfo(shape.dtype)
        return Box(int(limits.min), min(int(limits.max), _LARGEST), shape.shape, shape.dtype)
    return Box(-jnp.inf, jnp.inf, shape.shape, shape.dtype)
