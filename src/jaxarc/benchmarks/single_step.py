"""One environment stepped from a Python loop."""

import time

import jax

from jaxarc.constants import SUBMIT
from jaxarc.envs import ArcEnvironment, EnvParams
from jaxarc.envs.spaces import action_space
from jaxarc.envs.structured_actions import StructuredAction


class PythonLoop:
    """Steps one environment as a script does, reading ``done`` after each step.

    The actions are drawn beforehand and leave out submits, so that each episode lasts until it is cut off; resets are
    not timed.
    """

    def __init__(self, params: EnvParams, compiled_outside: bool):
        self._env, self._params = ArcEnvironment(), params
        self._step = jax.jit(self._env.step) if compiled_outside else self._env.step
        self._actions = _actions(params)
        self._episodes = 0
        self.play_episode()

    def play_episode(self) -> float:
        """Play one episode to its end.

        Returns:
            Microseconds per step.
        """
        state, _ = self._env.reset(jax.random.key(self._episodes), self._params)
        self._episodes += 1
        jax.block_until_ready(state)
        start, steps = time.perf_counter(), 0
        for action in self._actions:
            state, _, _, done, _ = self._step(state, action, self._params)
            steps += 1
            if done:
                break
        return (time.perf_counter() - start) / steps * 1e6

    def sample(self, min_seconds: float) -> float:
        """Play whole episodes for at least ``min_seconds``, at least one.

        Returns:
            Microseconds per step, the mean of the episodes.
        """
        means, start = [], time.perf_counter()
        while not means or time.perf_counter() - start < min_seconds:
            means.append(self.play_episode())
        return sum(means) / len(means)


def _actions(params: EnvParams) -> list[StructuredAction]:
    edits = tuple(operation for operation in params.config.legal_operations if operation != SUBMIT)
    sample = jax.jit(action_space(params.config.with_fields(allowed_operations=edits)).sample)
    keys = jax.random.split(jax.random.key(0), params.config.environment.max_episode_steps)
    return [jax.block_until_ready(sample(key)) for key in keys]
