"""How well a model of the environment predicts single steps."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import equinox as eqx
import numpy as np

from jaxarc.config import EditStepsConfig
from jaxarc.surrogate.train_step import Model
from jaxarc.surrogate.transition_model import TransitionBatch, predict_steps
from jaxarc.types import PRNGKey


class TransitionProblem(Protocol):
    """Steps of an environment to learn from, and others to be measured on."""

    config: EditStepsConfig

    def make_model(self, key: PRNGKey) -> Model:
        """Make a fresh model, such as a :class:`TransitionModel`."""
        ...

    def batch(self, seed: int, step: int) -> TransitionBatch:
        """Make the batch of a step; as of :class:`SurrogateProblem`."""
        ...

    def held_out(self) -> TransitionBatch:
        """Return the steps to measure on, in every call the same ones."""
        ...

    def walks(self) -> Iterator[TransitionBatch]:
        """Return walks to measure drift on, those of each operation by themselves, in every call the same ones."""
        ...


class StepAccuracy(NamedTuple):
    """How single steps were predicted; shares of 0 .. 1."""

    exact_grid_accuracy: float  # of next grids, right in every cell
    cell_accuracy: float
    kept_grid_accuracy: float  # of next grids that are the grid before: how often "nothing changes" is right
    reward_error: float  # mean distance
    by_operation: dict[int, tuple[int, float, float]]  # steps, exact_grid_accuracy and kept_grid_accuracy of each

    def numbers(self) -> dict[str, float]:
        """Return what a report tells, by name."""
        return {name: value for name, value in self._asdict().items() if isinstance(value, float)}


def measure_steps(model: Model, steps: TransitionBatch) -> StepAccuracy:
    """Predict each step by itself, and compare with what came of it."""
    predicted = _predict(model, steps)
    grid, truth = np.asarray(predicted.grid), np.asarray(steps.next_grid, np.int32)
    is_right = grid == truth
    is_exact = is_right.all(axis=(1, 2))
    is_kept = (np.asarray(steps.data[..., 0]).round().astype(np.int32) == truth).all(axis=(1, 2))
    operation = np.asarray(steps.operation)
    by_operation = {}
    for number in np.unique(operation).tolist():
        mine = operation == number
        by_operation[number] = int(mine.sum()), float(is_exact[mine].mean()), float(is_kept[mine].mean())
    return StepAccuracy(
        exact_grid_accuracy=float(is_exact.mean()),
        cell_accuracy=float(is_right.mean()),
        kept_grid_accuracy=float(is_kept.mean()),
        reward_error=float(np.abs(np.asarray(predicted.reward) - np.asarray(steps.reward)).mean()),
        by_operation=by_operation,
    )


_predict = eqx.filter_jit(lambda model, steps: predict_steps(model, steps.data, steps.action))
