"""Return and length of every episode, in ``info``."""

import dataclasses
from typing import Any, final

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int, Int32, PyTree

from jaxarc.interface import Environment, Step, compiled_step
from jaxarc.primitives import vary_like
from jaxarc.prng import as_typed_key
from jaxarc.types import Info, Observation, PRNGKey
from jaxarc.wrappers.wrapper import Wrapper


class StatisticsState(eqx.Module):
    """The wrapped environment's state, and what its running and its last ended episode gained."""

    env_state: PyTree[Array]
    running_return: Float32[Array, "*B"]
    running_length: Int32[Array, "*B"]
    last_return: Float32[Array, "*B"]
    last_length: Int32[Array, "*B"]


@final
@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class EpisodeStatistics(Wrapper[StatisticsState]):
    """Adds return and length of the episode that ended last to ``info``, and whether one ended in this step.

    The keys are ``episode_return``, ``episode_length`` and ``episode_ended``. Wrap it around an :class:`AutoReset`.
    Steps on a state that is done add nothing.
    """

    env: Environment[Any, Any]

    def reset(
        self,
        key: PRNGKey,
        params: Any,
        task_index: Int[Array, ""] | int | None = None,
        pair_index: Int[Array, ""] | int | None = None,
    ) -> tuple[StatisticsState, Observation]:
        env_state, observation = self.env.reset(key, params, task_index, pair_index)
        words = jax.random.key_data(as_typed_key(key))
        zeros = (jnp.float32(0), jnp.int32(0))  # an array for each field, so that a state can be donated
        return StatisticsState(env_state, *vary_like(zeros, words), *vary_like(zeros, words)), observation

    def reset_next(self, state: StatisticsState, params: Any) -> tuple[StatisticsState, Observation]:
        env_state, observation = self.env.reset_next(state.env_state, params)
        after = dataclasses.replace(
            state,
            env_state=env_state,
            running_return=jnp.zeros_like(state.running_return),
            running_length=jnp.zeros_like(state.running_length),
        )
        return after, observation

    def step(self, state: StatisticsState, action: Any, params: Any) -> Step[StatisticsState]:
        return _step(self.env, state, action, params)

    def observe(self, state: StatisticsState, params: Any) -> Observation:
        return self.env.observe(state.env_state, params)

    def info(self, state: StatisticsState, params: Any) -> Info:
        ended = jnp.zeros_like(state.last_length, jnp.bool_)
        return {**self.env.info(state.env_state, params), **_statistics(state, ended)}


@compiled_step
def _step(env: Environment[Any, Any], state: StatisticsState, action: Any, params: Any) -> Step[StatisticsState]:
    # Whether the state was done before the step: such a step adds nothing and ends nothing a second time. The sums of
    # an episode that ends go to `last_...` and start again at 0: rewards 1, 2 with an end at the second make 3 and then
    # 0.
    before = env.info(state.env_state, params)
    running = ~(before["terminated"] | before["truncated"])
    env_state, observation, reward, done, info = env.step(state.env_state, action, params)
    total = state.running_return + reward
    length = state.running_length + 1
    ended = done & running
    after = StatisticsState(
        env_state=env_state,
        running_return=jnp.where(running & ~ended, total, 0.0),
        running_length=jnp.where(running & ~ended, length, 0),
        last_return=jnp.where(ended, total, state.last_return),
        last_length=jnp.where(ended, length, state.last_length),
    )
    return after, observation, reward, done, {**info, **_statistics(after, ended)}


def _statistics(state: StatisticsState, ended: Bool[Array, "*B"]) -> Info:
    return {"episode_return": state.last_return, "episode_length": state.last_length, "episode_ended": ended}
