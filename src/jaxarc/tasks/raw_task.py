"""A task as it stands in its file: grids of their own size, nothing padded."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from jaxarc.constants import MAX_GRID_SIZE, PADDING
from jaxarc.tasks.validation import Pair, TaskFormatError, check_pairs

__all__ = ["Pair", "RawTask", "check_canvas", "check_fits", "pad_grids"]


@dataclasses.dataclass(frozen=True, eq=False)
class RawTask:
    """Demonstration and test pairs of one task, on the host.

    Grids may be given as integer arrays or nested lists; they are kept as read-only ``int8[h, w]``.

    Raises:
        TaskFormatError: the id is empty, or a pair breaks a rule of the format.
    """

    task_id: str
    train: tuple[Pair, ...]  # 1 .. 31 pairs
    test: tuple[Pair, ...]  # 1 .. 31 pairs
    title: str = ""  # what people call it, where its id says little
    concept: str = ""  # the group that its data set puts it in

    def __post_init__(self) -> None:
        if not isinstance(self.task_id, str) or not self.task_id:
            raise TaskFormatError(f"a task id is a non-empty string, got {self.task_id!r}; name the task")
        object.__setattr__(self, "train", check_pairs(self.train, f"task {self.task_id!r}", "train"))
        object.__setattr__(self, "test", check_pairs(self.test, f"task {self.task_id!r}", "test"))

    @classmethod
    def of_checked_pairs(
        cls, task_id: str, train: tuple[Pair, ...], test: tuple[Pair, ...], title: str = "", concept: str = ""
    ) -> "RawTask":
        """Build a task of pairs that were checked before: read-only ``int8`` grids, nothing is looked at again."""
        task = cls.__new__(cls)
        task.__dict__.update(task_id=task_id, train=train, test=test, title=title, concept=concept)
        return task

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Demonstrations first, then tests."""
        return self.train + self.test

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Rows of the highest and columns of the widest grid, the smallest canvas that holds the task."""
        shapes = [grid.shape for pair in self.pairs for grid in pair]
        return max(height for height, _ in shapes), max(width for _, width in shapes)

    def named_grids(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield every grid with a name such as ``train pair 0 input``."""
        for split, pairs in (("train", self.train), ("test", self.test)):
            for index, pair in enumerate(pairs):
                for side, grid in zip(("input", "output"), pair, strict=True):
                    yield f"{split} pair {index} {side}", grid


def check_canvas(grid_shape: tuple[int, int]) -> tuple[int, int]:
    """Return ``grid_shape``, refusing a canvas whose sides are not whole numbers in 1..30.

    Raises:
        ValueError: a side is out of range.
    """
    height, width = (int(side) for side in grid_shape)
    if not (1 <= height <= MAX_GRID_SIZE and 1 <= width <= MAX_GRID_SIZE):
        raise ValueError(f"grid_shape is (rows, columns), each 1..{MAX_GRID_SIZE}, got ({height}, {width}); change it")
    return height, width


def check_fits(task: RawTask, grid_shape: tuple[int, int]) -> None:
    """Refuse a task that does not fit the canvas.

    Raises:
        ValueError: names the task, its first grid that is too large, the canvas, and what to do.
    """
    height, width = grid_shape
    for name, grid in task.named_grids():
        rows, columns = grid.shape
        if rows > height or columns > width:
            needed = task.grid_shape
            raise ValueError(
                f"task {task.task_id!r}: {name} is {rows}x{columns} and does not fit the canvas {height}x{width}; "
                f"use a canvas of at least {needed[0]}x{needed[1]} (dataset.max_grid_height, dataset.max_grid_width), "
                f"or keep only tasks that fit with select(max_side={min(height, width)})"
            )


def pad_grids(grids: list[np.ndarray], grid_shape: tuple[int, int]) -> np.ndarray:
    """Put grids that fit at the top left of one canvas each; ``int8[len(grids), H, W]``, -1 outside."""
    padded = np.full((len(grids), *grid_shape), PADDING, np.int8)
    for canvas, grid in zip(padded, grids, strict=True):
        height, width = grid.shape
        canvas[:height, :width] = grid
    return padded
