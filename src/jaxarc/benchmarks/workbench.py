"""What the rows of a benchmark share: params, compiled scans, and the samples of one round."""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import jax

from jaxarc.benchmarks.fresh_start import start_fresh
from jaxarc.benchmarks.playing import DATASET, NO_AUGMENTATION, play_params
from jaxarc.benchmarks.rolling import Rolling
from jaxarc.benchmarks.single_step import PythonLoop
from jaxarc.benchmarks.stepping import Throughput
from jaxarc.benchmarks.training_parts import Speeds, TrainingParts
from jaxarc.config import AugmentationConfig
from jaxarc.constants import MAX_GRID_SIZE, NUM_GRID_OPERATIONS
from jaxarc.envs import ArcEnvironment, EnvParams
from jaxarc.training.experiment import Experiment


@dataclass(frozen=True)
class Effort:
    """How much is measured."""

    repeats: int  # samples of each row
    seconds: float  # that a sample lasts at least
    longest_scan: int  # steps in one compiled call, at most


THOROUGH: Final = Effort(repeats=5, seconds=1.0, longest_scan=512)
QUICK: Final = Effort(repeats=2, seconds=0.0, longest_scan=4)


@dataclass(frozen=True)
class Play:
    """Which environments are stepped."""

    num_envs: int
    selection_format: str = "bbox"
    side: int = MAX_GRID_SIZE
    history: bool = False
    operations: tuple[int, ...] = tuple(range(NUM_GRID_OPERATIONS))
    dataset: str = DATASET
    augmentation: AugmentationConfig = NO_AUGMENTATION

    def params(self) -> EnvParams:
        return _params(self.selection_format, self.side, self.history, self.operations, self.dataset, self.augmentation)


class Workbench:
    """Compiles what a row asks for once, and keeps it for the following samples."""

    def __init__(self, effort: Effort, fresh_parts: frozenset[str] = frozenset()):
        self.effort = effort
        self._fresh_parts = sorted(fresh_parts)  # what the rows to come need of a fresh process
        self._steps: dict[Play, Throughput] = {}
        self._rollouts: dict[Play, Rolling] = {}
        self._resets: dict[Play, Throughput] = {}
        self._loops: dict[bool, PythonLoop] = {}
        self._vectors: dict[tuple[Play, str], Any] = {}
        self._trainings: dict[Experiment, TrainingParts] = {}
        self._fresh: dict[str, float] = {}
        self._speeds: dict[Experiment, Speeds] = {}

    def begin_round(self) -> None:
        """Forget what several rows of one round share: what a fresh process said, and how fast a training was."""
        self._fresh, self._speeds = {}, {}

    def steps_per_second(self, play: Play) -> float:
        """Environment steps of all environments together per second."""
        return self._stepping(play).sample(self.effort.seconds)

    def rollout_steps_per_second(self, play: Play) -> float:
        """The same of a rollout, which may play one part of the environments after the other."""
        return self._rolling(play).sample(self.effort.seconds)

    def nanoseconds_per_step(self, play: Play) -> float:
        """Nanoseconds that a step of one environment takes in its batch."""
        return 1e9 / self.steps_per_second(play)

    def resets_per_second(self, play: Play) -> float:
        """Resets of all environments together per second."""
        if play not in self._resets:
            self._resets[play] = Throughput.of_resets(play.params(), play.num_envs, self.effort.longest_scan)
        return self._resets[play].sample(self.effort.seconds)

    def microseconds_per_reset(self, play: Play) -> float:
        """Microseconds that a reset of one environment takes in its batch."""
        return 1e6 / self.resets_per_second(play)

    def cost_ratio(self, larger: Play, smaller: Play) -> float:
        """Time per step of a larger rollout over that of a smaller one, measured one after the other."""
        slow, fast = self._rolling(larger), self._rolling(smaller)
        seconds = self.effort.seconds
        return fast.sample(seconds) / slow.sample(seconds)

    def vector_steps_per_second(self, play: Play, autoreset_mode: str) -> float:
        """Environment steps per second behind Gymnasium's vector interface."""
        from jaxarc.benchmarks.vector_loop import VectorLoop  # Gymnasium is optional, and slow to import

        if (play, autoreset_mode) not in self._vectors:
            self._vectors[play, autoreset_mode] = VectorLoop(play.params(), play.num_envs, autoreset_mode)
        return self._vectors[play, autoreset_mode].sample(self.effort.seconds)

    def training_speeds(self, experiment: Experiment) -> Speeds:
        """Environment steps per second of a training and its parts, the same for all rows of a round."""
        if experiment not in self._trainings:
            self._trainings[experiment] = TrainingParts.of(experiment)
        if experiment not in self._speeds:
            self._speeds[experiment] = self._trainings[experiment].sample(self.effort.seconds)
        return self._speeds[experiment]

    def step_microseconds(self, compiled_outside: bool) -> float:
        """Microseconds of one step of one environment in a Python loop."""
        if compiled_outside not in self._loops:
            self._loops[compiled_outside] = PythonLoop(Play(1).params(), compiled_outside)
        return self._loops[compiled_outside].sample(self.effort.seconds / 2)

    def state_bytes(self, play: Play) -> float:
        """Bytes of the state of one environment."""
        state, _ = jax.eval_shape(ArcEnvironment().reset, jax.random.key(0), play.params())
        return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))

    def buffer_bytes(self) -> float:
        """Bytes of the buffer of all tasks, whatever the number of environments."""
        return sum(leaf.nbytes for leaf in jax.tree.leaves(Play(1).params().tasks))

    def temp_bytes(self, play: Play) -> float:
        """Bytes per environment of what XLA keeps while it steps, besides the state."""
        return self._stepping(play).scan.temp_bytes / play.num_envs

    def fresh(self, name: str) -> float:
        """Seconds that a fresh process took for ``import``, ``make-cold``, ``make-warm`` or ``compile``."""
        if not self._fresh:
            self._fresh = start_fresh(self._fresh_parts)
        return self._fresh[name]

    def _stepping(self, play: Play) -> Throughput:
        if play not in self._steps:
            self._steps[play] = Throughput.of_steps(play.params(), play.num_envs, self.effort.longest_scan)
        return self._steps[play]

    def _rolling(self, play: Play) -> Rolling:
        if play not in self._rollouts:
            self._rollouts[play] = Rolling(play.params(), play.num_envs, self.effort.longest_scan)
        return self._rollouts[play]


Measure = Callable[[Workbench], float]

_params = functools.cache(play_params)
