"""Measure steps per second behind Gymnasium's interfaces."""

import functools
import itertools
import time
from typing import Any, Final

from jaxarc.adapters import GymnasiumEnv, GymnasiumVectorEnv
from jaxarc.benchmarks.measure import Row
from jaxarc.benchmarks.suite import EnvSpec, Suite
from jaxarc.envs import ArcEnvironment, EnvParams

_NUM_ENVS: Final = 1024
_MODES: Final = {"next-step": "NextStep", "same-step": "SameStep"}


def adapter_rows() -> tuple[Row, ...]:
    """List a row for one environment, and for each autoreset mode and action format with the native loop."""
    single, compiled = (
        functools.partial(_single_steps_per_second, spec=EnvSpec(1, "bbox", executor=executor))
        for executor in ("auto", "xla")
    )
    what = "30x30, bbox actions, one environment with its resets"
    rows = [
        Row("gymnasium-single", what, "steps/s", single, 50e3),
        Row("gymnasium-single-compiled", f"{what}, without the library of C++ kernels", "steps/s", compiled),
    ]
    for selection_format in ("point", "bbox", "mask"):
        spec = EnvSpec(_NUM_ENVS, selection_format)
        what = f"30x30, {selection_format} actions, {_NUM_ENVS:,} environments"
        own = functools.partial(Suite.steps_per_second, spec=spec)
        rows.append(Row(f"own-{selection_format}", f"{what}, our own loop inside one scan", "steps/s", own))
        for name, mode in _MODES.items():
            measure = functools.partial(_vector_steps_per_second, spec=spec, autoreset_mode=mode)
            rows.append(Row(f"gymnasium-{name}-{selection_format}", f"{what}, {mode}", "steps/s", measure, 300e3))
    return tuple(rows)


def _single_steps_per_second(suite: Suite, spec: EnvSpec) -> float:
    env, actions = _single(spec)
    num_steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < suite.budget.seconds:
        _, _, terminated, truncated, _ = env.step(actions[num_steps % len(actions)])
        num_steps += 1
        if terminated or truncated:
            env.reset()
    return num_steps / (time.perf_counter() - start)


_NUM_DRAWN: Final = 1024  # actions, drawn beforehand and played again and again


@functools.cache
def _single(spec: EnvSpec) -> tuple[GymnasiumEnv, list[Any]]:
    env = GymnasiumEnv(ArcEnvironment(), spec.params())
    env.action_space.seed(0)
    env.reset(seed=0)
    env.step(env.action_space.sample())  # compiles
    env.reset()
    return env, [env.action_space.sample() for _ in range(_NUM_DRAWN)]


_NUM_BATCHES: Final = 16  # of actions, drawn beforehand and played again and again


def _vector_steps_per_second(suite: Suite, spec: EnvSpec, autoreset_mode: str) -> float:
    return _vector_loop(spec, autoreset_mode).sample(suite.budget.seconds)


@functools.cache
def _vector_loop(spec: EnvSpec, autoreset_mode: str) -> "VectorLoop":
    return VectorLoop(spec.params(), spec.num_envs, autoreset_mode)


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
