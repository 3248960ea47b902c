"""Random tasks for episodes: grids of every size and kind, and very different numbers of pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from reference.augmentation import Pair
from reference.canvas import cropped
from reference.cases import random_pairs

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
