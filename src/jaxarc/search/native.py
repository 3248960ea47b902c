"""The graph of states in C++: the same states as :class:`jaxarc.search.graph.StateGraph`, many times as fast.

The library computes most words; for those that it does not know, and for features of cells, it gives images to the
functions in NumPy.
"""

import ctypes
import weakref
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from jaxtyping import Int64, UInt8

from jaxarc.search.graph import Limits, StateGraph
from jaxarc.search.images import Images, by_frame, images_of
from jaxarc.search.kernels import call
from jaxarc.search.machine import Machine, image_function
from jaxarc.search.words import NEW_ALONE, Word

_CHUNK: Final = 4096  # states between two looks at the clock
_LONGEST: Final = 64  # words of a program


class NativeTable:
    """The images of a native graph, for NumPy; see :class:`jaxarc.search.images.ImageTable`."""

    def __init__(self, graph: int, frame: int) -> None:
        self._graph = graph
        self.frame = frame

    def __len__(self) -> int:
        return call("num_images", self._graph)

    def add(self, images: Images) -> Int64[np.ndarray, " N"]:
        """Return the number of each image, and -1 for no image."""
        cells = np.ascontiguousarray(images.cells)
        boxes = np.stack([images.row, images.column, images.height, images.width], 1).astype(np.int32)
        numbers = np.empty(len(images), np.int64)
        call("add", self._graph, len(images), images.frame, cells, boxes, numbers)
        return numbers

    def images(self, numbers: Any, frame: int | None = None) -> Images:
        """Return images by their numbers, in a smaller frame if they fit into it."""
        numbers = np.ascontiguousarray(numbers, np.int64)
        side = self.frame if frame is None else min(frame, self.frame)
        cells = np.zeros((len(numbers), side, side), np.uint8)
        boxes = np.empty((len(numbers), 4), np.int32)
        call("images", self._graph, len(numbers), numbers, side, cells, boxes)
        return Images(cells, *(np.ascontiguousarray(column) for column in boxes.T))

    def sizes(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return height and width of images by their numbers."""
        numbers = np.ascontiguousarray(numbers, np.int64)
        heights, widths = np.empty(numbers.shape, np.int32), np.empty(numbers.shape, np.int32)
        call("sizes", self._graph, numbers.size, numbers, heights, widths)
        return heights, widths

    def draw(
        self, numbers: Int64[np.ndarray, "S P"], sizes: Sequence[tuple[int, int]], num_cells: int
    ) -> UInt8[np.ndarray, "S M"]:
        """Return the cells of states on canvases of some sizes; see :meth:`jaxarc.search.pieces.OutputCells.draw`."""
        numbers = np.ascontiguousarray(numbers, np.int64)
        shapes = np.array(sizes, np.int32)
        cells = np.empty((len(numbers), num_cells), np.uint8)
        call("draw", self._graph, len(numbers), len(shapes), numbers, shapes, num_cells, cells)
        return cells

    def pieces(
        self, numbers: Int64[np.ndarray, "S P"], sizes: Sequence[tuple[int, int]], colors: list[int], target: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Return the pieces among plain colors and states; see :func:`jaxarc.search.pieces.find_pieces`."""
        numbers = np.ascontiguousarray(numbers, np.int64)
        shapes, plain = np.array(sizes, np.int32), np.array(colors, np.uint8)
        words = -(-len(target) // 64)
        most = len(numbers) + len(colors) + 1  # one is written before it is known to be none
        right, solid = np.empty((most, words), np.uint64), np.empty((most, words), np.uint64)
        places = np.empty(most, np.int64)
        given = (len(numbers), len(shapes), numbers, shapes, len(plain), plain, len(target), target, words)
        count = call("pieces", self._graph, *given, right, solid, places)
        return right[:count], solid[:count], places[:count]


class NativeGraph:
    """States reached from the inputs of a task; see :class:`jaxarc.search.graph.StateGraph`."""

    def __init__(self, inputs: Sequence[np.ndarray], frame: int, words: Sequence[Word], limits: Limits) -> None:
        self._graph = call("new", frame, len(inputs))
        weakref.finalize(self, call, "delete", self._graph)
        self.table = NativeTable(self._graph, frame)
        self.machine = Machine(self.table)
        self.is_cut = False  # whether a limit was reached
        self.num_applied = 0
        self.cost = 0  # up to which states are known
        self.cell_features: dict[bytes, dict[str, np.ndarray]] = {}  # of the images with some numbers, by name
        self._num_inputs = len(inputs)
        self._words = words
        self._is_computed_there: list[bool] = [self._declare(word) for word in words]
        self._limits = limits
        numbers = self.table.add(images_of(list(inputs), frame)).astype(np.int32)
        call("start", self._graph, numbers)

    def __len__(self) -> int:
        return call("num_states", self._graph)

    @property
    def images(self) -> tuple[Int64[np.ndarray, " S"], Int64[np.ndarray, "S P"], Int64[np.ndarray, " S"]]:
        """All states that are one image for each input: the state, its images, and its cost."""
        count = call("num_image_states", self._graph)
        states, costs = np.empty(count, np.int64), np.empty(count, np.int64)
        numbers = np.empty((count, self._num_inputs), np.int64)
        call("image_states", self._graph, self._num_inputs, states, numbers, costs)
        return states, numbers, costs

    def program(self, state: int) -> tuple[Word, ...]:
        """Return the words that lead from the inputs to a state."""
        words = np.empty(_LONGEST, np.int32)
        count = call("program", self._graph, state, _LONGEST, words)
        return tuple(self._words[number] for number in reversed(words[:count].tolist()))

    def expand(self) -> None:
        """Make all images of the next cost; before, the lists of one less, which only these need."""
        self.cost += 1
        self._make(self.cost - 1, are_lists=True)
        self._make(self.cost, are_lists=False)

    def _declare(self, word: Word) -> bool:
        name, *given = (text.encode() for text in [word.name, *map(str, word.arguments), "", ""][:3])
        is_computed_there = ctypes.c_int32()
        call("declare", self._graph, name, *given, ctypes.byref(is_computed_there))
        return bool(is_computed_there.value)

    def _make(self, cost: int, are_lists: bool) -> None:
        for source_cost in range(cost):
            for is_list in (False, True):
                count = call("level_size", self._graph, source_cost, is_list)
                for number, word in enumerate(self._words):
                    if source_cost + word.cost != cost or word.makes_list(is_list) is not are_lists:
                        continue
                    if self._limits.are_reached(len(self), len(self.table)):
                        self.is_cut = True
                        return
                    self._apply(number, source_cost, is_list, count, cost)

    def _apply(self, number: int, source_cost: int, is_list: bool, count: int, cost: int) -> None:
        word = self._words[number]
        if not self._is_computed_there[number]:
            self._compute(number, source_cost, is_list)
        for start in range(0, count, _CHUNK):
            if start > 0 and self._limits.are_reached(len(self), len(self.table)):
                self.is_cut = True
                return
            end = min(start + _CHUNK, count)
            given = (number, source_cost, is_list, start, end, cost, word in NEW_ALONE)
            call("expand", self._graph, *given)
            self.num_applied += end - start

    def _compute(self, number: int, source_cost: int, is_list: bool) -> None:
        """Compute a word in NumPy for the images of a level that are new to it."""
        new = np.empty(len(self.table), np.int64)
        new = new[: call("unknown", self._graph, number, source_cost, is_list, new)]
        function = image_function(self._words[number])
        for places, images in by_frame(self.table, new):
            some = np.ascontiguousarray(new[places])
            results = self.table.add(function(images))
            call("learn", self._graph, number, len(some), some, results)


Graph: TypeAlias = StateGraph | NativeGraph
"""Graph of states, in NumPy or in C++."""
