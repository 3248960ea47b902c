"""Start the next episode in the very step that ends one."""

import dataclasses
import functools
from typing import Any

import jax
from jaxtyping import Array, Bool, Int

from jaxarc.envs.batching import Kernel, batch_native
from jaxarc.envs.boundary import compiled
from jaxarc.envs.environment import Environment, Step, checks_actions
from jaxarc.envs.operations.compaction import choose_executor, update_rows
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.types import Info, Observation, PRNGKey
from jaxarc.wrappers.wrapper import Wrapper

RESET_DIVISOR = 16  # blocks of the compact executor: an episode of 35 random operations lasts about 20 steps


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class AutoReset(Wrapper[ArcEnvState]):
    """Same-step auto-reset: a step that ends an episode returns the next one's first state and observation.

    ``reward``, ``done`` and ``info`` belong to the episode that ended; ``info["final_observation"]`` is the observation
    before any reset, on every step. The params are kept, so curricula survive. Wrap it directly around the environment.
    """

    env: Environment[ArcEnvState]

    def reset(
        self,
        key: PRNGKey,
        params: EnvParams,
        task_index: Int[Array, ""] | int | None = None,
        pair_index: Int[Array, ""] | int | None = None,
    ) -> tuple[ArcEnvState, Observation]:
        return self.env.reset(key, params, task_index, pair_index)

    def restart(self, state: ArcEnvState, params: EnvParams) -> tuple[ArcEnvState, Observation]:
        return self.env.restart(state, params)

    def step(self, state: ArcEnvState, action: StructuredAction, params: EnvParams) -> Step[ArcEnvState]:
        return _step(self.env, state, action, params)

    def observe(self, state: ArcEnvState, params: EnvParams) -> Observation:
        return self.env.observe(state, params)

    def info(self, state: ArcEnvState, params: EnvParams) -> Info:
        return {**self.env.info(state, params), "final_observation": self.env.observe(state, params)}


@compiled(may_raise=lambda env, state, action, params: checks_actions(params))
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

    def restart(how: str, rows: tuple[Bool[Array, " B"], ArcEnvState], params: EnvParams) -> ArcEnvState:
        first = lambda ended, _: jax.vmap(lambda state: env.restart(state, params)[0])(ended)
        return update_rows(how, rows[0], first, rows[1], (), RESET_DIVISOR)

    def restart_apart(
        _: Kernel, has_axis: Any, rows: tuple[Bool[Array, "A B"], ArcEnvState], params: EnvParams
    ) -> ArcEnvState:
        """Each batch has params of its own: nothing to fold."""
        axes = jax.tree.map(lambda has: 0 if has else None, has_axis)
        return jax.vmap(functools.partial(restart, "dense"), (0, axes))(rows, params)

    return batch_native(functools.partial(restart, executor), restart_apart)((done, state), params)
