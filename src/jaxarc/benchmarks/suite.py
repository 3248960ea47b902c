"""Compile the programs that rows need once, and share them between rows."""

import functools
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import jax

from jaxarc.agents.experiment import Experiment
from jaxarc.benchmarks.fresh_start import start_fresh
from jaxarc.benchmarks.speed import PythonLoop, Rolling, Throughput, play_params
from jaxarc.benchmarks.training_parts import Speeds, TrainingParts
from jaxarc.constants import MAX_GRID_SIZE, NUM_GRID_OPERATIONS
from jaxarc.envs import ArcEnvironment, EnvParams


@dataclass(frozen=True)
class Budget:
    """How much is measured."""

    repeats: int  # samples of each row
    seconds: float  # that a sample lasts at least
    longest_scan: int  # steps in one compiled call, at most


THOROUGH: Final = Budget(repeats=5, seconds=1.0, longest_scan=512)
QUICK: Final = Budget(repeats=2, seconds=0.0, longest_scan=4)


@dataclass(frozen=True)
class EnvSpec:
    """Which environments are stepped."""

    num_envs: int
    selection_format: str = "bbox"
    side: int = MAX_GRID_SIZE
    history: bool = False
    operations: tuple[int, ...] = tuple(range(NUM_GRID_OPERATIONS))
    executor: str = "auto"

    def params(self) -> EnvParams:
        return _params(self.selection_format, self.side, self.history, self.operations, self.executor)


T = TypeVar("T")


class Suite:
    """Compiles what a row asks for once, and keeps it for the following samples."""

    def __init__(self, budget: Budget, fresh_parts: frozenset[str] = frozenset()):
        self.budget = budget
        self._fresh_parts = sorted(fresh_parts)  # what the rows to come need of a fresh process
        self._compiled: dict[Hashable, Any] = {}
        self._of_round: dict[Hashable, Any] = {}

    def begin_round(self) -> None:
        """Forget what several rows of one round share: what a fresh process said, and how fast a training was."""
        self._of_round = {}

    def steps_per_second(self, spec: EnvSpec) -> float:
        """Environment steps of all environments together per second."""
        return self._stepping(spec).sample(self.budget.seconds)

    def rollout_steps_per_second(self, spec: EnvSpec) -> float:
        """The same of a rollout, which may step one part of the environments after the other."""
        return self._rolling(spec).sample(self.budget.seconds)

    def nanoseconds_per_step(self, spec: EnvSpec) -> float:
        """Nanoseconds that a step of one environment takes in its batch."""
        return 1e9 / self.steps_per_second(spec)

    def microseconds_per_step(self, spec: EnvSpec) -> float:
        """Microseconds that a step of all environments together takes."""
        return 1e6 * spec.num_envs / self.steps_per_second(spec)

    def resets_per_second(self, spec: EnvSpec) -> float:
        """Resets of all environments together per second."""
        compile_resets = lambda: Throughput.of_resets(spec.params(), spec.num_envs, self.budget.longest_scan)
        return _once(self._compiled, ("resets", spec), compile_resets).sample(self.budget.seconds)

    def cost_ratio(self, larger: EnvSpec, smaller: EnvSpec) -> float:
        """Time per step of a larger rollout over that of a smaller one, measured one after the other."""
        # Steps per second of the smaller over those of the larger: 10 M/s over 8 M/s is 1.25 times the time per step.
        slow = self._rolling(larger)
        fast = self._rolling(smaller)
        seconds = self.budget.seconds
        return fast.sample(seconds) / slow.sample(seconds)

    def training_speeds(self, experiment: Experiment) -> Speeds:
        """Environment steps per second of a training and its parts, the same for all rows of a round."""
        parts = _once(self._compiled, experiment, lambda: TrainingParts.of(experiment))
        return _once(self._of_round, experiment, lambda: parts.sample(self.budget.seconds))

    def step_microseconds(self, compiled_outside: bool) -> float:
        """Microseconds of one step of one environment in a Python loop."""
        loop = _once(self._compiled, compiled_outside, lambda: PythonLoop(EnvSpec(1).params(), compiled_outside))
        return loop.sample(self.budget.seconds / 2)

    def uncompiled_step_microseconds(self) -> float:
        """Microseconds of one step of one environment in a Python loop, one operation after the other."""
        with jax.disable_jit():
            loop = _once(self._compiled, "uncompiled", lambda: PythonLoop(EnvSpec(1).params(), compiled_outside=False))
            return loop.sample(self.budget.seconds / 2)

    def state_bytes(self, spec: EnvSpec) -> float:
        """Bytes of the state of one environment."""
        # From shapes and dtypes alone: no state is made.
        state, _ = jax.eval_shape(ArcEnvironment().reset, jax.random.key(0), spec.params())
        return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))

    def buffer_bytes(self) -> float:
        """Bytes of the buffer of all tasks, whatever the number of environments."""
        return sum(leaf.nbytes for leaf in jax.tree.leaves(EnvSpec(1).params().tasks))

    def temp_bytes(self, spec: EnvSpec) -> float:
        """Bytes per environment of what XLA keeps while it steps, besides the state."""
        return self._stepping(spec).scan.temp_bytes / spec.num_envs

    def fresh(self, name: str) -> float:
        """Seconds that a fresh process took for ``import``, ``make-cold``, ``make-warm`` or ``compile``."""
        return _once(self._of_round, "fresh", lambda: start_fresh(self._fresh_parts))[name]

    def _stepping(self, spec: EnvSpec) -> Throughput:
        compile_steps = lambda: Throughput.of_steps(spec.params(), spec.num_envs, self.budget.longest_scan)
        return _once(self._compiled, ("steps", spec), compile_steps)

    def _rolling(self, spec: EnvSpec) -> Rolling:
        compile_rollout = lambda: Rolling(spec.params(), spec.num_envs, self.budget.longest_scan)
        return _once(self._compiled, ("rollout", spec), compile_rollout)


def _once(made: dict[Hashable, Any], key: Hashable, make: Callable[[], T]) -> T:
    if key not in made:
        made[key] = make()
    return made[key]


Measure = Callable[[Suite], float]

_params = functools.cache(play_params)
