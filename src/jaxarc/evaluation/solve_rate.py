"""Which pairs an agent solves."""

from collections.abc import Callable
from typing import TypeAlias

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32

from jaxarc.envs.environment import ArcEnvironment, EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.types import Observation, PRNGKey

Actor: TypeAlias = Callable[[Observation], StructuredAction]
"""From a batch of observations to a batch of actions."""


def play_every_task(actor: Actor, params: EnvParams) -> Bool[Array, " T"]:
    """Play one episode of each task of the buffer, on its first pair, and tell which ones were solved.

    Nothing is sampled: each task is played exactly once, from the input of its pair, without auto-reset. With
    :func:`jaxarc.evaluation.one_task_per_pair` the tasks are the pairs of a data set.

    Args:
        actor: decides; under ``eqx.filter_jit`` its arrays may change from call to call.
        params: tasks and rules; the weights are not used, and episodes start from the input whatever the config says.
    """
    buffer = params.tasks
    rules = params.config.with_fields(start_grid="input", demo_selection="first", test_selection="first")
    params = EnvParams(buffer, params.weights, rules)
    env = ArcEnvironment()
    take_steps = jax.vmap(env.step, (0, 0, None))

    def start(key: PRNGKey, weights: Float32[Array, " T"]) -> ArcEnvState:
        return env.reset(key, EnvParams(buffer, weights, rules))[0]

    def play_on(states: ArcEnvState) -> ArcEnvState:
        return take_steps(states, actor(env.observe(states, params)), params)[0]

    keys = jax.random.split(jax.random.key(0), buffer.num_tasks)  # nothing is drawn, but a reset takes a key
    only_task = jnp.eye(buffer.num_tasks, dtype=jnp.float32)
    states = jax.vmap(start)(keys, only_task)
    return jax.lax.while_loop(lambda states: jnp.any(~states.done), play_on, states).is_solved
