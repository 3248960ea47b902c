"""Start the next episode in the very step that ends one."""

import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool

from jaxarc.envs.environment import Environment, EnvParams, Step
from jaxarc.envs.operations.compaction import update_rows
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.envs.transition import choose_executor
from jaxarc.types import Info, Observation, PRNGKey
from jaxarc.wrappers.wrapper import Wrapper

RESET_DIVISOR = 16  # blocks of the compact executor: an episode of 35 random operations lasts about 20 steps


class AutoReset(Wrapper[ArcEnvState]):
    """Same-step auto-reset: a step that ends an episode returns the next one's first state and observation.

    ``reward``, ``done`` and ``info`` belong to the episode that ended; ``info["final_observation"]`` is the observation
    before any reset, on every step. The params are kept, so curricula survive. Wrap it directly around the environment.
    """

    env: Environment[ArcEnvState]

    def reset(self, key: PRNGKey, params: EnvParams) -> tuple[ArcEnvState, Observation]:
        return self.env.reset(key, params)

    def step(self, state: ArcEnvState, action: StructuredAction, params: EnvParams) -> Step[ArcEnvState]:
        return _step(self.env, state, action, params)

    def observe(self, state: ArcEnvState, params: EnvParams) -> Observation:
        return self.env.observe(state, params)

    def info(self, state: ArcEnvState, params: EnvParams) -> Info:
        return {**self.env.info(state, params), "final_observation": self.env.observe(state, params)}


@eqx.filter_jit
def _step(
    env: Environment[ArcEnvState], state: ArcEnvState, action: StructuredAction, params: EnvParams
) -> Step[ArcEnvState]:
    ended, observation, reward, done, info = env.step(state, action, params)
    after = _reset_where_done(env, done, ended, params)
    return after, env.observe(after, params), reward, done, {**info, "final_observation": observation}


def _reset_where_done(
    env: Environment[ArcEnvState], done: Bool[Array, ""], state: ArcEnvState, params: EnvParams
) -> ArcEnvState:
    """Replace a state that is done by the first one of the next episode; batches reset only the rows that are done."""
    executor = choose_executor(params.config.environment.executor)
    dones, states = jax.tree.map(lambda x: x[None], (done, state))
    return jax.tree.map(lambda x: x[0], _batch_kernel(env, executor)(dones, states, params))


def _batch_kernel(env: Environment[ArcEnvState], executor: str) -> Callable[[Any, Any, EnvParams], Any]:
    def restart(done: Bool[Array, " B"], states: ArcEnvState, params: EnvParams, how: str) -> ArcEnvState:
        first = lambda ended, _: jax.vmap(lambda state: env.reset(state.key, params)[0])(ended)
        return update_rows(how, done, first, states, (), RESET_DIVISOR)

    @custom_vmap
    def kernel(done: Bool[Array, " B"], states: ArcEnvState, params: EnvParams) -> ArcEnvState:
        return restart(done, states, params, executor)

    @kernel.def_vmap
    def fold(
        size: int, is_batched: Any, done: Bool[Array, "A B"], states: ArcEnvState, params: EnvParams
    ) -> tuple[ArcEnvState, Any]:
        lead = lambda x, batched: x if batched else jnp.broadcast_to(x, (size, *x.shape))
        done, states = jax.tree.map(lead, (done, states), (is_batched[0], is_batched[1]))
        if any(jax.tree.leaves(is_batched[2])):  # each batch has params of its own: nothing to fold
            axes = jax.tree.map(lambda batched: 0 if batched else None, is_batched[2])
            dense = functools.partial(restart, how="dense")
            after = jax.vmap(dense, in_axes=(0, 0, axes))(done, states, params)
        else:
            done, states = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (done, states))
            after = jax.tree.map(lambda x: x.reshape(size, -1, *x.shape[1:]), kernel(done, states, params))
        return after, jax.tree.map(lambda _: True, after)

    return kernel
