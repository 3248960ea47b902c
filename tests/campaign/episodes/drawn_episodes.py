"""Random tasks and actions: grids of every size and kind, actions good and bad, some that lead to the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from reference.augmentation import Pair
from reference.canvas import NUM_OPERATIONS, RESIZE, SUBMIT, active_size, cropped
from reference.cases import random_boxes, random_masks, random_operations, random_pairs, random_points
from reference.episode import ReferenceEpisode

PAIR_COUNTS = {  # demonstrations and tests of each task
    "one pair": ((1, 1),) * 6,
    "few pairs": ((3, 1), (2, 2), (4, 1), (2, 1), (3, 3), (2, 1), (5, 2), (3, 1)),
    "uneven": ((1, 3), (12, 1), (2, 2), (1, 1), (31, 4), (5, 31), (3, 1)),
    "31 pairs": ((31, 31), (31, 31)),
}
GENERATED_COUNTS = (3, 2)  # of every generated task
SOME_WEIGHTS = (0.0, 3.0, 0.25, 0.0, 1e-3, 1.0, 0.0, 2.0)


@dataclass(frozen=True)
class DrawnTasks:
    """Tasks without padding, and how often each is played."""

    train: list[list[Pair]]
    test: list[list[Pair]]
    weights: list[float]

    @property
    def most_train(self) -> int:
        """Demonstrations of the task that has most."""
        return max(len(pairs) for pairs in self.train)


def draw_tasks(rng: np.random.Generator, kind: str, weights: str, shape: tuple[int, int]) -> DrawnTasks:
    """Returns tasks whose grids fit a canvas; only the grids are random, the numbers of pairs follow from the kind."""
    counts = PAIR_COUNTS[kind]
    train, test = ([_pairs(rng, number[side], shape) for number in counts] for side in (0, 1))
    return DrawnTasks(train, test, [1.0 if weights == "alike" else SOME_WEIGHTS[i] for i in range(len(counts))])


def _pairs(rng: np.random.Generator, count: int, shape: tuple[int, int]) -> list[Pair]:
    return [(cropped(start), cropped(target)) for start, target in random_pairs(rng, count, *shape)]


FAMILIES = (*(range(10), range(10, 20), range(20, 24), range(24, 28), (28, 29, 30), (29, 33), (31, 32)), range(34, 42))
NUM_MASKS = 1024  # drawn once, and used in turn


@dataclass
class Actions:
    """One action for each environment."""

    operations: np.ndarray  # int32[B]
    selections: np.ndarray  # int32[B, 2], int32[B, 4] or bool[B, H, W]

    def of(self, env: int) -> tuple[int, np.ndarray]:
        return int(self.operations[env]), self.selections[env]


class ActionDraw:
    """Draws actions.

    Args:
        rng: of all draws.
        selection_format: "point", "bbox" or "mask".
        shape: of the canvas.
        legal: bool[42], operations that the episodes allow.
        only_valid: whether nothing invalid or illegal may be drawn.
    """

    def __init__(
        self,
        rng: np.random.Generator,
        selection_format: str,
        shape: tuple[int, int],
        legal: np.ndarray,
        only_valid: bool,
    ):
        self.rng = rng
        self.selection_format = selection_format
        self.shape = shape
        self.legal = np.flatnonzero(legal).astype(np.int32)
        self.only_valid = only_valid
        self.masks = random_masks(rng, NUM_MASKS, *shape) if selection_format == "mask" else None

    def draw(self, count: int) -> Actions:
        """Returns actions for so many environments."""
        rng = self.rng
        operations = random_operations(rng, count, 0.0 if self.only_valid else 0.03)
        style = rng.random()
        if style < 0.2:  # all of one family: more than a kernel's blocks hold
            family = np.array(FAMILIES[int(rng.integers(len(FAMILIES)))])
            operations = rng.choice(family, count).astype(np.int32)
        if style > 0.6:
            operations = np.where(rng.random(count) < 0.9, rng.choice(self.legal, count), operations).astype(np.int32)
        if self.only_valid:
            refused = ~np.isin(operations, self.legal)
            operations[refused] = rng.choice(self.legal, int(refused.sum()))
        return Actions(operations, self._selections(count))

    def guide(self, actions: Actions, episodes: Sequence[ReferenceEpisode], share: float) -> None:
        """Replaces a share of the actions by the next one on the way to the answer."""
        for env in np.flatnonzero(self.rng.random(len(episodes)) < share).tolist():
            operation, (row, column) = _next_to_answer(episodes[env])
            if operation in self.legal:
                actions.operations[env] = operation
                actions.selections[env] = self._cell(row, column)

    def spoil(self, actions: Actions, env: int) -> None:
        """Makes one action invalid or illegal."""
        bad = np.setdiff1d(np.array([-1, 42, 99, *range(NUM_OPERATIONS)]), self.legal)
        actions.operations[env] = self.rng.choice(bad)
        if self.selection_format != "mask" and self.rng.random() < 0.5:
            actions.operations[env] = self.rng.choice(self.legal)
            place = int(self.rng.integers(actions.selections.shape[1]))
            actions.selections[env, place] = self.rng.choice([-1, -7, self.shape[place % 2], 1000])

    def _selections(self, count: int) -> np.ndarray:
        if self.masks is not None:
            return self.masks[self.rng.integers(0, NUM_MASKS, count)]
        if self.selection_format == "point":
            return random_points(self.rng, count, *self.shape, 0.0 if self.only_valid else 0.05)
        return random_boxes(self.rng, count, *self.shape, 0.0 if self.only_valid else 0.025)

    def _cell(self, row: int, column: int) -> np.ndarray | tuple[int, ...]:
        if self.selection_format != "mask":
            return (row, column) * (1 if self.selection_format == "point" else 2)
        mask = np.zeros(self.shape, bool)
        mask[row, column] = True
        return mask


def _next_to_answer(episode: ReferenceEpisode) -> tuple[int, tuple[int, int]]:
    """Returns an operation and a cell: resize to the answer's size, or paint a wrong cell, or submit."""
    height, width = active_size(episode.target)
    if (height, width) != (episode.height, episode.width):
        return RESIZE, (height - 1, width - 1)
    wrong = np.flatnonzero(episode.grid != episode.target)
    if not len(wrong):
        return SUBMIT, (0, 0)
    row, column = divmod(int(wrong[0]), episode.grid.shape[1])
    return int(episode.target[row, column]), (row, column)
