"""Predict the answers of tasks whose rules were never seen: a set of rules to learn from, others to measure.

The model is the predictor of answers that an agent edits towards, of ``agents/answer_predictor.py``. A batch takes the
first test of some tasks, turned: all colors are alike to the model, and rows and columns are not.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Int8, UInt32

from jaxarc.agents.answer_predictor import AnswerPredictor, Puzzle
from jaxarc.config import EvaluationConfig, RulesConfig, SurrogateTrainingConfig, TaskConfig
from jaxarc.config.build import ConfigValidationError
from jaxarc.constants import PADDING
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.evaluation.solver import Solver
from jaxarc.evaluation.submission import majority_vote
from jaxarc.nn.update import Metrics, update
from jaxarc.surrogate.surrogate_task import SurrogateTask
from jaxarc.surrogate.train_step import Model
from jaxarc.tasks.packed_tasks import PackedTasks
from jaxarc.tasks.raw_task import RawTask, crop_padding
from jaxarc.types import PRNGKey

_STREAM: Final = 3  # first word of the seeds of batches
_SIDES: Final = (10, 20, 30)  # of a solver's canvas
_SHOWN: Final = (4, 8)  # slots for demonstrations
_SYMMETRIES: Final = np.arange(8)
_AT_ONCE: Final = len(_SYMMETRIES)  # puzzles that are measured, as many as a solver predicts: one program


class PuzzleBatch(NamedTuple):
    """B puzzles with their answers."""

    puzzle: Puzzle
    answer: Int8[Array, "B H W"]
    key_data: UInt32[Array, "B 2"]


class SolvedShares(NamedTuple):
    """The share of puzzles whose predicted answer is right in every cell, of each set, and how many there are."""

    by_set: dict[str, tuple[float, int]]

    def numbers(self) -> dict[str, float]:
        """Return the mean over the sets."""
        return {"solved": float(np.mean([share for share, _ in self.by_set.values()]))}


class Puzzles(NamedTuple):
    """The first test of each of T tasks with all demonstrations, on one canvas, on the host."""

    inputs: Int8[np.ndarray, "T P H W"]
    outputs: Int8[np.ndarray, "T P H W"]
    shown: Bool[np.ndarray, "T P"]
    grids: Int8[np.ndarray, "T H W"]
    answers: Int8[np.ndarray, "T H W"]

    @classmethod
    def of(cls, tasks: Sequence[RawTask], side: int, num_shown: int) -> "Puzzles":
        """Lay tasks out; those with more demonstrations or larger grids are left out."""
        packed = tasks
        if not isinstance(packed, PackedTasks) or max(packed.grid_shape) > side or packed.max_pairs[0] > num_shown:
            fits = lambda task: len(task.train) <= num_shown and max(task.grid_shape) <= side
            packed = PackedTasks.of([task for task in tasks if fits(task)])
        inputs, outputs = (grids.reshape(-1, side, side) for grids in packed.padded((side, side)))
        num_pairs, num_train = packed.counts.sum(axis=1), packed.counts[:, 0]
        # Tasks of 2 + 1 and 3 + 1 pairs have the rows 0 1 and 3 4 5 as demonstrations, and the tests 2 and 6.
        first = np.cumsum(num_pairs) - num_pairs
        place = np.arange(num_shown)
        shown = place < num_train[:, None]
        rows = np.where(shown, first[:, None] + place, 0)
        if_shown = lambda grids: np.where(shown[..., None, None], grids[rows], np.int8(PADDING))
        test = first + num_train
        return cls(if_shown(inputs), if_shown(outputs), shown, inputs[test], outputs[test])

    def __len__(self) -> int:
        return len(self.grids)

    @property
    def puzzle(self) -> Puzzle:
        """What the predictor sees."""
        return Puzzle(*map(jnp.asarray, (self.inputs, self.outputs, self.shown, self.grids)))

    def some(self, rows: np.ndarray) -> "Puzzles":
        """Return the puzzles of some tasks."""
        return Puzzles(*(part[rows] for part in self))

    def turned(self, symmetries: np.ndarray) -> "Puzzles":
        """Turn and mirror all grids of each task alike; square canvases."""
        return Puzzles(*(part if part.dtype == np.bool_ else _turned(part, symmetries) for part in self))


class RulesTask(SurrogateTask):
    """Rules to learn from, and rules to measure, none of which is learned from."""

    metric_fields = {"total_loss": "total_loss", "gradient_norm": "gradient_norm"}  # noqa: RUF012

    def __init__(self, config: RulesConfig, learned: TaskSet, measured: Sequence[TaskSet]):
        """Lay out the tasks.

        Raises:
            ConfigValidationError: a set has no task that is small enough, or one that is learned from is measured.
        """
        self.config = config
        known = set(learned.task_ids)
        for tasks in measured:
            if shared := [task_id for task_id in tasks.task_ids if task_id in known]:
                raise ConfigValidationError(
                    f"rules.measured: {tasks.name!r} and {learned.name!r}, which is learned from, share {len(shared)} "
                    f"tasks, such as {shared[0]!r}; measure sets that were drawn together with it, by --held-out"
                )
        most, _ = learned.max_pairs
        self.train = Puzzles.of(learned.tasks, config.side, most)
        self.held_out = {tasks.name: Puzzles.of(tasks.tasks, config.side, most) for tasks in measured}
        for name, puzzles in {learned.name: self.train, **self.held_out}.items():
            if not len(puzzles):
                raise ConfigValidationError(f"no task of {name!r} has up to {config.side} rows and columns")

    @classmethod
    def load(cls, config: RulesConfig) -> "RulesTask":
        """Load the sets by their names."""
        return cls(config, load_tasks(config.learned), [load_tasks(name) for name in config.measured])

    def make_model(self, key: PRNGKey) -> AnswerPredictor:
        return make_predictor(key, self.config)

    def batch(self, seed: int, step: int) -> PuzzleBatch:
        """Draw tasks, and turn each."""
        random = np.random.default_rng((_STREAM, seed, step))
        rows = random.integers(0, len(self.train), self.config.puzzles_per_batch)
        chosen = self.train.some(rows).turned(random.integers(0, 8, len(rows)))
        key_data = random.integers(0, 2**32, (len(rows), 2), np.uint32)
        return PuzzleBatch(chosen.puzzle, jnp.asarray(chosen.answers), jnp.asarray(key_data))

    def make_step(self, model: Model, optimizer: optax.GradientTransformation, config: SurrogateTrainingConfig) -> Any:
        @eqx.filter_jit(donate="all-except-first")
        def step(batch: PuzzleBatch, model: Model, opt_state: optax.OptState) -> tuple[Model, optax.OptState, Metrics]:
            params, rest = eqx.partition(model, eqx.is_inexact_array)

            def loss(params: Model, example: PuzzleBatch) -> tuple[Array, Metrics]:
                key = jax.random.wrap_key_data(example.key_data)
                return eqx.combine(params, rest).loss(example.puzzle, example.answer, key), {}

            params, opt_state, metrics = update(
                params,
                opt_state,
                loss,
                batch,
                optimizer,
                precision=config.precision,
                accumulation_steps=config.accumulation_steps,
            )
            return eqx.combine(params, rest), opt_state, metrics

        return lambda model, opt_state, batch: step(batch, model, opt_state)

    def about(self, task: TaskConfig) -> list[str]:
        measured = ", ".join(f"{len(puzzles):,} of {name}" for name, puzzles in self.held_out.items())
        return [f"{len(self.train):,} rules of {self.config.learned}; measured on {measured}."]

    def evaluate(self, model: Model) -> SolvedShares:
        """Predict the answers of the sets that are not learned from."""
        return SolvedShares({name: (_solved_share(model, one), len(one)) for name, one in self.held_out.items()})


def make_predictor(key: PRNGKey, config: RulesConfig) -> AnswerPredictor:
    """Make a fresh model, which needs no tasks."""
    return eqx.filter_jit(AnswerPredictor)(key, config.hidden_size)


def solver_of(model: AnswerPredictor, attempts: int = EvaluationConfig.attempts) -> Solver:
    """Return a predictor as a solver: the answers that are predicted most often for the task in all eight turns.

    It is compiled for three sizes of a canvas, 10, 20 and 30, and for four, eight or more demonstrations.
    """

    def solve(train: Sequence[tuple[np.ndarray, np.ndarray]], test_input: np.ndarray) -> list[np.ndarray]:
        task = RawTask("asked", tuple(train), ((test_input, test_input),))
        side = next(side for side in _SIDES if side >= max(task.grid_shape))
        num_shown = next((count for count in _SHOWN if count >= len(train)), len(train))
        puzzles = Puzzles.of([task], side, num_shown).some(np.zeros(len(_SYMMETRIES), np.int64)).turned(_SYMMETRIES)
        predicted = [crop_padding(grid) for grid in np.asarray(_predict(model, puzzles.puzzle))]
        back = map(_turned_back, predicted, _SYMMETRIES.tolist())
        grids = [grid for grid in back if grid.size]
        return majority_vote(grids, attempts) if grids else [test_input]

    return solve


@eqx.filter_jit
def _predict(model: AnswerPredictor, puzzle: Puzzle) -> Int8[Array, "B H W"]:
    return model.predict(puzzle)


def _solved_share(model: AnswerPredictor, puzzles: Puzzles) -> float:
    right = []
    for first in range(0, len(puzzles), _AT_ONCE):
        rows = np.resize(np.arange(first, min(first + _AT_ONCE, len(puzzles))), _AT_ONCE)
        some = puzzles.some(rows)
        right.append((np.asarray(_predict(model, some.puzzle)) == some.answers).all(axis=(1, 2)))
    return float(np.concatenate(right)[: len(puzzles)].mean())


def _turned(grids: Int8[np.ndarray, "T *P S S"], symmetries: np.ndarray) -> Int8[np.ndarray, "T *P S S"]:
    """Turn padded grids within their own sizes: bit 0 mirrors rows, bit 1 columns, bit 2 swaps rows and columns."""
    turned = np.where(_bit(symmetries, 2, grids.ndim), np.swapaxes(grids, -1, -2), grids)
    for bit, axis in ((0, -2), (1, -1)):
        # A grid of 2 rows on a canvas of 4: rows 1 0 3 2, so that the padding stays below.
        inside = (turned > PADDING).any(axis=-1 if axis == -2 else -2)
        size = inside.sum(axis=-1, keepdims=True)
        index = (size - 1 - np.arange(turned.shape[-1])) % turned.shape[-1]
        index = np.expand_dims(index, -1 if axis == -2 else -2)
        mirrored = np.take_along_axis(turned, index, axis=axis)
        turned = np.where(_bit(symmetries, bit, grids.ndim), mirrored, turned)
    return turned


def _turned_back(grid: Int8[np.ndarray, "h w"], symmetry: int) -> Int8[np.ndarray, "h w"]:
    """Undo :func:`_turned` of a grid without padding."""
    grid = grid[:, ::-1] if symmetry & 2 else grid
    grid = grid[::-1] if symmetry & 1 else grid
    return grid.T if symmetry & 4 else grid


def _bit(symmetries: np.ndarray, bit: int, ndim: int) -> np.ndarray:
    return ((symmetries >> bit) & 1).astype(np.bool_).reshape(-1, *[1] * (ndim - 1))
