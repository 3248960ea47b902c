"""Many tasks as a few arrays: a million of them take little more than their cells, and each is made when asked for."""

import operator
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final, overload

import numpy as np
from jaxtyping import Int8, Int64

from jaxarc.constants import PADDING
from jaxarc.tasks.raw_task import RawTask

_PADDED_AT_ONCE: Final = 1 << 16  # pairs


@dataclass(frozen=True, eq=False)
class PackedTexts:
    """Texts as one array of bytes: "ab" and "c" are the bytes of "abc" and the ends 0 2 3."""

    letters: bytes
    ends: Int64[np.ndarray, " T+1"]

    @classmethod
    def of(cls, texts: Iterable[str]) -> "PackedTexts":
        """Pack texts."""
        encoded = [text.encode() for text in texts]
        return cls(b"".join(encoded), np.cumsum([0, *map(len, encoded)], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.ends) - 1

    def __getitem__(self, place: int) -> str:
        return self.letters[self.ends[place] : self.ends[place + 1]].decode()

    def between(self, begin: int, end: int) -> "PackedTexts":
        """Return some texts, which share the bytes."""
        return PackedTexts(self.letters, self.ends[begin : end + 1])

    def __iter__(self) -> Iterator[str]:
        ends = self.ends.tolist()
        return (self.letters[begin:end].decode() for begin, end in pairwise(ends))


@dataclass(frozen=True, eq=False)
class PackedTasks(Sequence[RawTask]):
    """T checked tasks whose N grids stand one after the other: inputs and outputs, of demonstrations, tests and pool.

    Grid ``g`` has ``sizes[g]`` rows and columns, and the cells of all grids follow each other row by row: one
    demonstration (7 8) -> (7; 8) is the sizes ``1 2 2 1`` and the cells ``7 8 7 8``. An unknown answer has no cells.
    """

    task_ids: PackedTexts
    titles: PackedTexts
    concepts: PackedTexts
    counts: Int64[np.ndarray, "T 3"]  # demonstrations, tests, further pairs
    sizes: Int8[np.ndarray, "N 2"]
    cells: Int8[np.ndarray, " M"]

    @classmethod
    def of(cls, tasks: Sequence[RawTask]) -> "PackedTasks":
        """Pack tasks; packed ones stay as they are."""
        if isinstance(tasks, PackedTasks):
            return tasks
        grids = [grid for task in tasks for pair in task.all_pairs for grid in pair]
        cells = np.concatenate([np.zeros(0, np.int8), *(grid.ravel() for grid in grids)])
        cells.setflags(write=False)
        return cls(
            PackedTexts.of(task.task_id for task in tasks),
            PackedTexts.of(task.title for task in tasks),
            PackedTexts.of(task.concept for task in tasks),
            np.array([(len(task.train), len(task.test), len(task.pool)) for task in tasks], np.int64).reshape(-1, 3),
            np.array([grid.shape for grid in grids], np.int8).reshape(-1, 2),
            cells,
        )

    def __len__(self) -> int:
        return len(self.counts)

    @overload
    def __getitem__(self, index: int) -> RawTask: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[RawTask]: ...

    def __getitem__(self, index: int | slice) -> RawTask | Sequence[RawTask]:
        """Make a task; a slice without steps shares the arrays."""
        if isinstance(index, slice):
            begin, end, step = index.indices(len(self))
            if step == 1:
                return self._between(begin, max(begin, end))
            return tuple(self[place] for place in range(begin, end, step))
        place = range(len(self))[operator.index(index)]
        sizes = self.sizes[self._grid_ends[place] : self._grid_ends[place + 1]].tolist()
        begin = int(self._cell_ends[place])
        grids = []
        for height, width in sizes:
            grids.append(self.cells[begin : begin + height * width].reshape(height, width))
            begin += height * width
        pairs = tuple(zip(grids[::2], grids[1::2], strict=True))
        num_train, num_test, _ = self.counts[place].tolist()
        return RawTask.of_checked_pairs(
            self.task_ids[place],
            pairs[:num_train],
            pairs[num_train : num_train + num_test],
            self.titles[place],
            self.concepts[place],
            pairs[num_train + num_test :],
        )

    @property
    def has_pools(self) -> bool:
        """Whether a task has further pairs."""
        return bool(self.counts[:, 2].any())

    @property
    def max_pairs(self) -> tuple[int, int]:
        """Demonstrations of the task that has most, and tests of the one that has most."""
        num_train, num_test, _ = self.counts.max(axis=0).tolist()
        return num_train, num_test

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Rows of the highest and columns of the widest grid of all tasks."""
        height, width = self.sizes.max(axis=0).tolist()
        return height, width

    @property
    def has_answers(self) -> bool:
        """Whether the output of every pair is known."""
        return bool((self.sizes > 0).all())

    def first_too_large(self, grid_shape: tuple[int, int]) -> RawTask | None:
        """Return the first task with a grid that does not fit a canvas."""
        grids = np.flatnonzero((self.sizes > np.array(grid_shape, np.int8)).any(axis=1))
        return self[int(np.searchsorted(self._grid_ends, grids[0], side="right")) - 1] if grids.size else None

    def padded(self, grid_shape: tuple[int, int]) -> tuple[Int8[np.ndarray, "P HW"], Int8[np.ndarray, "P HW"]]:
        """Put the inputs and the outputs of all pairs on canvases that they fit, -1 outside."""
        num_pairs = len(self.sizes) // 2
        padded = np.empty((2, num_pairs, *grid_shape), np.int8)
        rows, columns = np.arange(grid_shape[0])[:, None], np.arange(grid_shape[1])
        begin = 0
        for first in range(0, num_pairs, _PADDED_AT_ONCE):
            sizes = self.sizes[2 * first : 2 * (first + _PADDED_AT_ONCE)].astype(np.int64)
            inside = (rows < sizes[:, 0, None, None]) & (columns < sizes[:, 1, None, None])
            end = begin + int(sizes.prod(axis=1).sum())
            # The places inside of the grids, grid by grid and row by row, are in the order of the cells.
            some = np.full(inside.shape, PADDING, np.int8)
            some[inside] = self.cells[begin:end]
            begin = end
            padded[:, first : first + _PADDED_AT_ONCE] = some.reshape(-1, 2, *grid_shape).swapaxes(0, 1)
        inputs, outputs = padded.reshape(2, num_pairs, grid_shape[0] * grid_shape[1])
        return inputs, outputs

    def _between(self, begin: int, end: int) -> "PackedTasks":
        grids = slice(self._grid_ends[begin], self._grid_ends[end])
        cells = slice(self._cell_ends[begin], self._cell_ends[end])
        return PackedTasks(
            self.task_ids.between(begin, end),
            self.titles.between(begin, end),
            self.concepts.between(begin, end),
            self.counts[begin:end],
            self.sizes[grids],
            self.cells[cells],
        )

    @cached_property
    def _grid_ends(self) -> Int64[np.ndarray, " T+1"]:
        return np.concatenate([[0], np.cumsum(2 * self.counts.sum(axis=1))])

    @cached_property
    def _cell_ends(self) -> Int64[np.ndarray, " T+1"]:
        ends = np.concatenate([[0], np.cumsum(self.sizes.prod(axis=1, dtype=np.int64))])
        return ends[self._grid_ends]
