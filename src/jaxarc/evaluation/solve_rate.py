"""Which pairs an agent solves."""

import dataclasses
from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32

from jaxarc.config import AugmentationConfig
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.types import Observation, PRNGKey

Actor: TypeAlias = Callable[[Observation], StructuredAction]
"""From a batch of observations to a batch of actions."""


def play_every_task(actor: Actor, params: EnvParams) -> Bool[Array, " T"]:
    """Play one episode of each task of the buffer, on its first pair, and tell which ones were solved.

    Nothing is sampled: each task is played exactly once, as it is and from the input of its pair, without auto-reset.
    With :func:`jaxarc.evaluation.one_task_per_pair` the tasks are the pairs of a data set.

    Args:
        actor: decides; under ``eqx.filter_jit`` its arrays may change from call to call.
        params: tasks and rules. The weights are not used, and whatever the config says, episodes start from the input
            and nothing is augmented.
    """
    rules = params.config.with_fields(start_grid="input", augmentation=AugmentationConfig())
    params = dataclasses.replace(params, config=rules)
    env = ArcEnvironment()
    take_steps = jax.vmap(env.step, (0, 0, None))

    def start(key: PRNGKey, task_index: Int32[Array, ""]) -> ArcEnvState:
        return env.reset(key, params, task_index, pair_index=0)[0]

    def play_on(states: ArcEnvState) -> ArcEnvState:
        return take_steps(states, actor(env.observe(states, params)), params)[0]

    num_tasks = params.tasks.num_tasks
    keys = jax.random.split(jax.random.key(0), num_tasks)  # a reset takes a key; tasks that are generated need one each
    states = jax.vmap(start)(keys, jnp.arange(num_tasks, dtype=jnp.int32))
    return jax.lax.while_loop(lambda states: jnp.any(~states.done), play_on, states).is_solved
