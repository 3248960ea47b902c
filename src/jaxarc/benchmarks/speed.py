"""Loops whose speed is measured: steps and resets in one scan, rollouts, and one environment in Python."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32, Int32, Key, PyTree

from jaxarc.constants import MAX_GRID_SIZE, NUM_GRID_OPERATIONS, SUBMIT
from jaxarc.envs import ArcEnvironment, EnvParams
from jaxarc.envs.action_space import action_space, fold_in_each
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.parallel import (
    RandomPolicy,
    available_memory,
    compile_rollout,
    data_mesh,
    replicate,
    require_memory,
    size_of,
)
from jaxarc.registration import make
from jaxarc.types import Observation
from jaxarc.wrappers import AutoReset

_ENV: Final = AutoReset(ArcEnvironment())
_GROWTH: Final = 4.0  # memory of a scan over that of its first states
_STEPS_A_CALL: Final = 2**18  # of all environments together, about a tenth of a second
_LONGEST_SCAN: Final = 512
_SHORTEST_SCAN: Final = 16  # even of a million environments: what a call costs is spread over its steps


class Playing(NamedTuple):
    """The carry of a scan: all that a step returns is in it, so that no part of a step is dead code."""

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
    """Reset all environments.

    Raises:
        NotEnoughMemoryError: they do not fit in memory.
    """
    reset = jax.jit(jax.vmap(_ENV.reset, (0, None)))
    keys = jax.random.split(key, num_envs)
    require_memory(num_envs, size_of(jax.eval_shape(reset, keys, params)), available_memory(), growth=_GROWTH)
    states, observations = reset(keys, params)
    return Playing(states, observations, jnp.zeros(num_envs, jnp.float32), jnp.zeros(num_envs, jnp.int32))


def compile_steps(playing: Playing, params: EnvParams, num_envs: int, num_steps: int) -> CompiledScan:
    """Compile ``num_steps`` random steps of all environments: sampling, step, reward, observation, auto-reset."""

    def play(playing: Playing, key: Key[Array, ""], params: EnvParams) -> Playing:
        # Actions are drawn inside the scan, as a random agent draws them. Returns and endings are summed into the
        # carry, so XLA cannot leave out what computes them.
        sample = _ENV.action_space(params).sample
        index = jnp.arange(num_envs, dtype=jnp.int32)

        def step(playing: Playing, key_actions: Key[Array, ""]) -> tuple[Playing, None]:
            keys = fold_in_each(key_actions, index, params.config.environment.executor)
            actions = jax.vmap(sample)(keys)
            states, observations, rewards, dones, _ = jax.vmap(_ENV.step, (0, 0, None))(playing.states, actions, params)
            returns = playing.return_sums + rewards
            episodes = playing.episode_counts + dones.astype(jnp.int32)
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
    # The carry is donated: a call writes its states into the memory of the last ones, as training does.
    compiled = jax.jit(scan, donate_argnums=0).lower(carry, jax.random.key(0), params).compile()
    seconds = time.perf_counter() - start
    memory = compiled.memory_analysis()
    return CompiledScan(compiled, num_steps, seconds, 0 if memory is None else memory.temp_size_in_bytes)


class Throughput:
    """A compiled scan that is running: each sample continues where the last one stopped."""

    def __init__(self, scan: CompiledScan, carry: Any, params: EnvParams, num_envs: int):
        self.scan = scan
        self.num_envs = num_envs
        self._params = params
        self.carry = carry
        self._keys = _key_stream()

    @classmethod
    def of_steps(cls, params: EnvParams, num_envs: int, longest_scan: int = _LONGEST_SCAN) -> "Throughput":
        """Compile steps and play until the episodes have lost step with one another."""
        playing = start_playing(jax.random.key(0), params, num_envs)
        num_steps = min(scan_length(num_envs), longest_scan)
        started = cls(compile_steps(playing, params, num_envs, num_steps), playing, params, num_envs)
        # All episodes start together. After about one episode's steps they end at
        # different times, and resets are spread evenly.
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
        calls = 0
        start = time.perf_counter()
        while True:
            self.advance(1)
            calls += 1
            seconds = time.perf_counter() - start
            if seconds >= min_seconds:
                return calls * self.scan.num_steps * self.num_envs / seconds


def _key_stream() -> Any:
    key = jax.random.key(1)
    while True:
        key, key_call = jax.random.split(key)
        yield key_call


DATASET: Final = "arc-agi-1/training"
EPISODE_STEPS: Final = 100
MINI_SIDE: Final = 5  # the canvas of Mini-ARC


def play_params(
    selection_format: str,
    side: int = MAX_GRID_SIZE,
    history: bool = False,
    operations: tuple[int, ...] = tuple(range(NUM_GRID_OPERATIONS)),
    executor: str = "auto",
) -> EnvParams:
    """Make the params of an episode of at most 100 steps on ARC-AGI-1 training tasks.

    Args:
        selection_format: point, bbox or mask.
        side: rows and columns of the canvas; below 30 only the tasks that fit are played.
        history: whether states remember the actions of their episode.
        operations: the ones that can be drawn, the 35 grid operations by default.
        executor: how the environments are stepped, as ``environment.executor`` says.
    """
    _, params = make(
        DATASET,
        too_large="skip",
        selection_format=selection_format,
        max_grid_height=side,
        max_grid_width=side,
        max_episode_steps=EPISODE_STEPS,
        invalid_action_policy="noop",
        allowed_operations=operations,
        history_enabled=history,
        max_history_length=EPISODE_STEPS,
        executor=executor,
    )
    return params


_FEWEST_STEPS: Final = 100  # of each environment in a call, an episode's length


class Rolling:
    """A compiled rollout that goes on where the last call stopped."""

    def __init__(self, params: EnvParams, num_envs: int, longest_scan: int):
        env = AutoReset(ArcEnvironment())
        mesh = data_mesh()
        self._params = replicate(params, mesh)
        self._num_envs = num_envs
        self._policy = RandomPolicy(env.action_space(params))
        self._num_steps = min(max(scan_length(num_envs), _FEWEST_STEPS), longest_scan)
        self._rollout = compile_rollout(env, self._params, self._policy, num_envs, self._num_steps, mesh)
        self._key = jax.random.key(2)
        self._states = None
        self.advance()

    def sample(self, min_seconds: float) -> float:
        """Measure for at least ``min_seconds``, at least one call.

        Returns:
            Steps of all environments together per second.
        """
        steps = 0
        start = time.perf_counter()
        while True:
            steps += self.advance()
            seconds = time.perf_counter() - start
            if seconds >= min_seconds:
                return steps / seconds

    def advance(self) -> int:
        """Make one call, wait for its end, and return how many steps all environments took together."""
        self._key, key_call = jax.random.split(self._key)
        result = self._rollout(self._params, self._policy, key_call, self._states, donate_states=True)
        self._states = jax.block_until_ready(result.carry.states)
        return self._num_steps * self._num_envs


class PythonLoop:
    """Steps one environment as a script does, reading ``done`` after each step.

    The actions are drawn beforehand and leave out submits, so that each episode lasts until it is cut off; resets are
    not timed.
    """

    def __init__(self, params: EnvParams, compiled_outside: bool):
        self._env = ArcEnvironment()
        self._params = params
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
        start = time.perf_counter()
        steps = 0
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
        means = []
        start = time.perf_counter()
        while not means or time.perf_counter() - start < min_seconds:
            means.append(self.play_episode())
        return sum(means) / len(means)


def _actions(params: EnvParams) -> list[StructuredAction]:
    # No submit among them, so an episode lasts until its limit of steps.
    edits = tuple(operation for operation in params.config.legal_operations if operation != SUBMIT)
    sample = jax.jit(action_space(params.config.with_fields(allowed_operations=edits)).sample)
    keys = jax.random.split(jax.random.key(0), params.config.environment.max_episode_steps)
    return [jax.block_until_ready(sample(key)) for key in keys]
