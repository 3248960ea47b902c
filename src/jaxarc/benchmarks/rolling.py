"""Random policies played by :func:`jaxarc.parallel.rollout`, as users call it."""

import time
from typing import Final

import jax

from jaxarc.benchmarks.stepping import scan_length
from jaxarc.envs import ArcEnvironment, EnvParams
from jaxarc.parallel import RandomPolicy, compile_rollout, data_mesh, replicate
from jaxarc.wrappers import AutoReset

_FEWEST_STEPS: Final = 100  # of each environment in a call, an episode's length


class Rolling:
    """A compiled rollout that goes on where the last call stopped."""

    def __init__(self, params: EnvParams, num_envs: int, longest_scan: int):
        env, mesh = AutoReset(ArcEnvironment()), data_mesh()
        self._params, self._num_envs = replicate(params, mesh), num_envs
        self._policy = RandomPolicy(env.action_space(params))
        self._num_steps = min(max(scan_length(num_envs), _FEWEST_STEPS), longest_scan)
        self._rollout = compile_rollout(env, self._params, self._policy, num_envs, self._num_steps, mesh)
        self._key, self._states = jax.random.key(2), None
        self.advance()

    def sample(self, min_seconds: float) -> float:
        """Measure for at least ``min_seconds``, at least one call.

        Returns:
            Steps of all environments together per second.
        """
        steps, start = 0, time.perf_counter()
        while True:
            steps += self.advance()
            seconds = time.perf_counter() - start
            if seconds >= min_seconds:
                return steps / seconds

    def advance(self) -> int:
        """Make one call, wait for its end, and return how many steps all environments took together."""
        self._key, key_call = jax.random.split(self._key)
        result = self._rollout(self._params, self._policy, key_call, self._states)
        self._states = jax.block_until_ready(result.carry.states)
        return self._num_steps * self._num_envs
