"""The pairs that a run learns from, compared with others by their grids, whatever the names of their tasks.

An augmentation makes more pairs of each: all that it can make of one another have the same canonical form::

    canonical_form(pair, augmentation) in seen    the run may meet this very pair
"""

from collections.abc import Iterable, Iterator

import numpy as np

from jaxarc.config import AugmentationConfig, TaskConfig
from jaxarc.constants import NUM_COLORS
from jaxarc.datasets.catalogue import load_tasks
from jaxarc.datasets.task_set import TaskSet
from jaxarc.tasks import RawTask
from jaxarc.tasks.procedural.names import PREFIX
from jaxarc.tasks.raw_task import Pair


class SeenPairs:
    """The pairs of some tasks, demonstrations and tests, and all that an augmentation makes of them."""

    def __init__(self, tasks: Iterable[RawTask], augmentation: AugmentationConfig):
        self.augmentation = augmentation
        self._forms = {canonical_form(pair, augmentation) for task in tasks for pair in task.all_pairs}

    def __contains__(self, pair: Pair) -> bool:
        return canonical_form(pair, self.augmentation) in self._forms


def pairs_seen_by(config: TaskConfig, augmentation: AugmentationConfig) -> SeenPairs:
    """Load the pairs that a run learns from; none where rules make them as they are needed, which nobody lists.

    Raises:
        UnknownDatasetError, TaskFormatError: see :func:`jaxarc.datasets.load_tasks`.
        ValueError: no task is small enough.
    """
    if config.train_dataset.startswith(PREFIX):
        return SeenPairs((), augmentation)
    return SeenPairs(load_small_tasks(config.train_dataset, config.max_side), augmentation)


def load_small_tasks(dataset: str, max_side: int) -> TaskSet:
    """Load the tasks whose grids are all small enough; of tasks with pools, the pairs that are.

    Raises:
        UnknownDatasetError, TaskFormatError: see :func:`jaxarc.datasets.load_tasks`.
        ValueError: no task is small enough.
    """
    tasks = load_tasks(dataset)
    return tasks.fit((max_side, max_side), "skip") if tasks.has_pools else tasks.select(max_side=max_side)


def without_seen(tasks: Iterable[RawTask], seen: SeenPairs) -> tuple[RawTask, ...]:
    """Return the tasks of which the first pair, which is played to measure, was not seen."""
    return tuple(task for task in tasks if task.pairs[0] not in seen)


def canonical_form(pair: Pair, augmentation: AugmentationConfig) -> bytes:
    """Return sizes and cells of a pair, the same for all pairs that an augmentation makes of one another.

    Colors are numbered in the order in which they appear, so 5 5 3 -> 3 0 and 1 1 2 -> 2 7 are both 0 0 1 -> 1 2. Of
    the forms under several symmetries the least one counts.
    """
    turned = _under_symmetries(pair, augmentation.num_symmetries)
    return min(_sizes_and_cells(grids, augmentation.recolor) for grids in turned)


def _under_symmetries(pair: Pair, count: int) -> Iterator[Pair]:
    # In the order of jaxarc.tasks.augmentation: bit 1 turns upside down, bit 2 left to right, bit 4 swaps rows and
    # columns. Which of the eight comes with which number does not matter for the least form.
    for symmetry in range(count):
        rows = slice(None, None, -1 if symmetry & 1 else 1)
        columns = slice(None, None, -1 if symmetry & 2 else 1)
        source, output = (grid.T if symmetry & 4 else grid for grid in pair)
        yield source[rows, columns], output[rows, columns]


def _sizes_and_cells(pair: Pair, recolor: str) -> bytes:
    source, output = pair
    cells = source.tobytes() + output.tobytes()
    if recolor != "none":
        # Where each color appears first, -1 for one that does not; a color that stays as it is comes first.
        first_index = [cells.find(color) for color in range(NUM_COLORS)]
        present = [color for color in sorted(range(NUM_COLORS), key=first_index.__getitem__) if first_index[color] >= 0]
        order = bytes(dict.fromkeys([0, *present] if recolor == "keep_black" else present))
        cells = cells.translate(bytes.maketrans(order, bytes(range(len(order)))))
    return bytes(np.array((source.shape, output.shape), np.uint8)) + cells
