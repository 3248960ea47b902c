"""Environments side by side, stepped or reset by a random policy inside one compiled scan."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, Key, PyTree

from jaxarc.envs import ArcEnvironment, EnvParams
from jaxarc.types import Observation
from jaxarc.wrappers import AutoReset

_ENV: Final = AutoReset(ArcEnvironment())
_STEPS_A_CALL: Final = 2**18  # of all environments together, about a tenth of a second
_LONGEST_SCAN: Final = 512
_SHORTEST_SCAN: Final = 16  # even of a million environments: what a call costs is spread over its steps


class Playing(NamedTuple):
    """What a scan carries: all that a step returns is in it, so that no part of a step is dead code."""

    states: PyTree[Array]
    observations: Observation
    return_sums: Float32[Array, " B"]
    episode_counts: Int32[Array, " B"]


@dataclass(frozen=True)
class CompiledScan:
    """A compiled scan and what its compilation took."""

    call: Callable[[Any, Key[Array, ""], EnvParams], Any]
    num_steps: int  # in one call, of each environment
    compile_seconds: float  # tracing, lowering and compilation
    temp_bytes: int  # of the buffers that XLA needs besides arguments and results; 0 where it does not say


def scan_length(num_envs: int) -> int:
    """Steps in one call: enough to hide what a call costs, few enough to stop in time."""
    return max(_SHORTEST_SCAN, min(_LONGEST_SCAN, _STEPS_A_CALL // num_envs))


def start_playing(key: Key[Array, ""], params: EnvParams, num_envs: int) -> Playing:
    """Reset all environments."""
    states, observations = jax.jit(jax.vmap(_ENV.reset, (0, None)))(jax.random.split(key, num_envs), params)
    return Playing(states, observations, jnp.zeros(num_envs, jnp.float32), jnp.zeros(num_envs, jnp.int32))


def compile_steps(playing: Playing, params: EnvParams, num_envs: int, num_steps: int) -> CompiledScan:
    """Compile ``num_steps`` random steps of all environments: sampling, step, reward, observation, auto-reset."""

    def play(playing: Playing, key: Key[Array, ""], params: EnvParams) -> Playing:
        sample = _ENV.action_space(params).sample

        def step(playing: Playing, key_actions: Key[Array, ""]) -> tuple[Playing, None]:
            actions = jax.vmap(sample)(jax.random.split(key_actions, num_envs))
            states, observations, rewards, dones, _ = jax.vmap(_ENV.step, (0, 0, None))(playing.states, actions, params)
            returns, episodes = playing.return_sums + rewards, playing.episode_counts + dones.astype(jnp.int32)
            return Playing(states, observations, returns, episodes), None

        return jax.lax.scan(step, playing, jax.random.split(key, num_steps))[0]

    return _compile(play, playing, params, num_steps)


def compile_resets(observations: Observation, params: EnvParams, num_envs: int, num_steps: int) -> CompiledScan:
    """Compile ``num_steps`` resets of all environments with fresh keys; states and observations are kept."""

    def restart(last: PyTree[Array], key: Key[Array, ""], params: EnvParams) -> PyTree[Array]:
        def reset(_: PyTree[Array], key_resets: Key[Array, ""]) -> tuple[PyTree[Array], None]:
            return jax.vmap(_ENV.reset, (0, None))(jax.random.split(key_resets, num_envs), params), None

        return jax.lax.scan(reset, last, jax.random.split(key, num_steps))[0]

    return _compile(restart, observations, params, num_steps)


def _compile(scan: Callable[..., Any], carry: Any, params: EnvParams, num_steps: int) -> CompiledScan:
    start = time.perf_counter()
    compiled = jax.jit(scan, donate_argnums=0).lower(carry, jax.random.key(0), params).compile()
    seconds = time.perf_counter() - start
    memory = compiled.memory_analysis()
    return CompiledScan(compiled, num_steps, seconds, 0 if memory is None else memory.temp_size_in_bytes)


class Throughput:
    """A compiled scan that is running: each sample continues where the last one stopped."""

    def __init__(self, scan: CompiledScan, carry: Any, params: EnvParams, num_envs: int):
        self.scan, self.num_envs = scan, num_envs
        self._params, self.carry = params, carry
        self._keys = _key_stream()

    @classmethod
    def of_steps(cls, params: EnvParams, num_envs: int, longest_scan: int = _LONGEST_SCAN) -> "Throughput":
        """Compile steps and play until the episodes have lost step with one another."""
        playing = start_playing(jax.random.key(0), params, num_envs)
        num_steps = min(scan_length(num_envs), longest_scan)
        started = cls(compile_steps(playing, params, num_envs, num_steps), playing, params, num_envs)
        warm_up = min(params.config.environment.max_episode_steps, longest_scan)
        started.advance(-(-warm_up // num_steps))
        return started

    @classmethod
    def of_resets(cls, params: EnvParams, num_envs: int, longest_scan: int = _LONGEST_SCAN) -> "Throughput":
        """Compile resets and run them once."""
        playing = start_playing(jax.random.key(0), params, num_envs)
        carry = (playing.states, playing.observations)
        num_steps = min(scan_length(num_envs), longest_scan)
        started = cls(compile_resets(carry, params, num_envs, num_steps), carry, params, num_envs)
        started.advance(1)
        return started

    def advance(self, num_calls: int) -> None:
        """Run the scan, and wait until it is done."""
        for _ in range(num_calls):
            self.carry = self.scan.call(self.carry, next(self._keys), self._params)
        jax.block_until_ready(self.carry)

    def sample(self, min_seconds: float) -> float:
        """Measure for at least ``min_seconds``, at least one call.

        Returns:
            Steps, or resets, of all environments together per second.
        """
        calls, start = 0, time.perf_counter()
        while True:
            self.advance(1)
            calls, seconds = calls + 1, time.perf_counter() - start
            if seconds >= min_seconds:
                return calls * self.scan.num_steps * self.num_envs / seconds


def _key_stream() -> Any:
    key = jax.random.key(1)
    while True:
        key, key_call = jax.random.split(key)
        yield key_call
