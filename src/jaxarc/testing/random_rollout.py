"""A few episodes in a batch of environments, with everything that came back."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, PyTree, UInt32

from jaxarc.envs.environment import Environment
from jaxarc.envs.params import EnvParams
from jaxarc.prng import from_key_data
from jaxarc.testing.trees import at, to_device, to_host


class RandomRollout(NamedTuple):
    """NumPy arrays of one run; ``S`` steps of ``B`` environments. Spaces and views are asked in the same program."""

    keys: UInt32[Array, "B words"]  # data of the key of each environment
    first_states: PyTree  # [B, ...]
    first_observations: PyTree
    first_reported: dict[str, Any]  # env.info of the first states
    first_in_space: Bool[np.ndarray, " B"]
    actions: PyTree  # [S, B, ...]
    states: PyTree  # after the step
    observations: PyTree
    rewards: Float32[np.ndarray, "S B"]
    dones: Bool[np.ndarray, "S B"]
    infos: dict[str, Any]
    shown: PyTree  # env.observe of the state
    reported: dict[str, Any]  # env.info of the state
    action_in_space: Bool[np.ndarray, "S B"]
    observation_in_space: Bool[np.ndarray, "S B"]

    @property
    def num_steps(self) -> int:
        return self.dones.shape[0]

    @property
    def num_envs(self) -> int:
        return self.dones.shape[1]

    def state_before(self, step: int, env: int) -> PyTree:
        """State in which an environment took a step, as JAX arrays."""
        return to_device(at(self.first_states, env) if step == 0 else at(self.states, step - 1, env))

    def action(self, step: int, env: int) -> PyTree:
        """What an environment did in a step, as JAX arrays."""
        return to_device(at(self.actions, step, env))


RolloutFunction = Callable[[EnvParams, UInt32[Array, "B words"]], RandomRollout]


def compile_rollout(env: Environment[Any], num_steps: int) -> RolloutFunction:
    """Return a function that plays random actions: vmap over environments inside a scan over steps, under jit.

    What an environment draws depends on its own key alone.
    """

    @jax.jit
    def play(params: EnvParams, keys: UInt32[Array, "B words"]) -> RandomRollout:
        actions, observations = env.action_space(params), env.observation_space(params)
        typed = jax.vmap(from_key_data)(keys)
        first, shown_first = jax.vmap(env.reset, (0, None))(typed, params)

        def step(states: PyTree, number: Array) -> tuple[PyTree, tuple[Any, ...]]:
            drawn = jax.vmap(lambda key: actions.sample(jax.random.fold_in(key, number)))(typed)
            states, *results = jax.vmap(env.step, (0, 0, None))(states, drawn, params)
            views = [jax.vmap(view, (0, None))(states, params) for view in (env.observe, env.info)]
            inside = [jax.vmap(actions.contains)(drawn), jax.vmap(observations.contains)(results[0])]
            return states, (drawn, states, *results, *views, *inside)

        _, records = jax.lax.scan(step, first, jnp.arange(num_steps, dtype=jnp.uint32))
        first_inside: Any = jax.vmap(observations.contains)(shown_first)
        reported = jax.vmap(env.info, (0, None))(first, params)
        return RandomRollout(keys, first, shown_first, reported, first_inside, *records)

    return lambda params, keys: to_host(play(params, keys))
