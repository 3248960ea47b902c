"""Gymnasium's vector environment stepped from a Python loop, as its agents do."""

import itertools
import time
from typing import Final

from jaxarc.adapters import GymnasiumVectorEnv
from jaxarc.envs import ArcEnvironment, EnvParams

_NUM_BATCHES: Final = 16  # of actions, drawn beforehand and played again and again


class VectorLoop:
    """Steps all environments with random actions; each sample continues where the last one stopped."""

    def __init__(self, params: EnvParams, num_envs: int, autoreset_mode: str):
        self._env = GymnasiumVectorEnv(ArcEnvironment(), params, num_envs, autoreset_mode)
        self._env.action_space.seed(0)
        self._actions = itertools.cycle([self._env.action_space.sample() for _ in range(_NUM_BATCHES)])
        self._env.reset(seed=0)
        self._step_all(params.config.environment.max_episode_steps)  # until episodes have lost step with one another

    def sample(self, min_seconds: float) -> float:
        """Step for at least ``min_seconds``, at least once.

        Returns:
            Steps of all environments together per second.
        """
        steps, start = 0, time.perf_counter()
        while steps == 0 or time.perf_counter() - start < min_seconds:
            steps += self._step_all(1)
        return steps / (time.perf_counter() - start)

    def _step_all(self, count: int) -> int:
        for _ in range(count):
            self._env.step(next(self._actions))
        return count * self._env.num_envs
