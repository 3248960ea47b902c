"""The states of a search: all words on all states, the cheapest first, each different one once; and their cells.

The library does the work.
"""

import time
import weakref
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Int64, UInt8

from jaxarc.search.features import FEATURES
from jaxarc.search.images import Images, images_of
from jaxarc.search.limits import LIMITS
from jaxarc.search.program_layers import Candidate, Layer, RuleLayer
from jaxarc.search.search_library import call
from jaxarc.search.words import NEW_ALONE, Word

_LONGEST: Final = 64  # words of a program
_MOST_BYTES: Final = 2**40  # of a graph by itself; a search sets what its views may share
_SMALLEST: Final = 3  # side of a frame


class StateGraph:
    """States reached from the inputs of a task; :meth:`expand` adds those of the next costs.

    A state is one image for each input, or one list of images for each. A new state is a word applied to a known one.
    Equal images have one number.

    Args:
        inputs: of the demonstrations, then the test input.
        frame: rows and columns that an image may have.
        words: all functions.
        max_states: from which on no word is applied.
    """

    def __init__(self, inputs: Sequence[np.ndarray], frame: int, words: Sequence[Word], max_states: int) -> None:
        self.address = call("new", frame, len(inputs))  # of the graph in the library
        weakref.finalize(self, call, "delete", self.address)
        self.inputs = list(inputs)
        self.frame = frame
        self.words = words
        self.is_full = False  # whether there are as many states or bytes as there may be
        self.is_late = False  # whether the deadline was reached
        self.num_applied = 0
        self.cost = 0  # up to which states are known
        self._programs: dict[int, tuple[Word, ...]] = {}
        self.max_states = max_states
        self.max_bytes = _MOST_BYTES  # of memory, from which on no word is applied either
        for word in words:
            name, *given = (text.encode() for text in [word.name, *map(str, word.arguments), "", ""][:3])
            if call("declare", self.address, name, *given, word.cost, word in NEW_ALONE) < 0:
                raise LookupError(f"the library has no word {word.name}; add its kernel to native/search/graph.h")
        if inputs:
            call("start", self.address, self.add(images_of(self.inputs, frame)).astype(np.int32))

    def __len__(self) -> int:
        return call("num_states", self.address)

    @property
    def is_cut(self) -> bool:
        """Whether a limit was reached."""
        return self.is_full or self.is_late

    @property
    def num_bytes(self) -> int:
        """The memory that it takes in the library."""
        return call("num_bytes", self.address)

    @property
    def image_states(self) -> tuple[Int64[np.ndarray, " S"], Int64[np.ndarray, "S P"], Int64[np.ndarray, " S"]]:
        """All states that are one image for each input: the state, its images, and its cost."""
        count = call("num_image_states", self.address)
        states, costs = np.empty(count, np.int64), np.empty(count, np.int64)
        numbers = np.empty((count, len(self.inputs)), np.int64)
        call("image_states", self.address, len(self.inputs), states, numbers, costs)
        return states, numbers, costs

    def program(self, state: int) -> tuple[Word, ...]:
        """Return the words that lead from the inputs to a state."""
        if state not in self._programs:
            words = np.empty(_LONGEST, np.int32)
            count = call("program", self.address, state, _LONGEST, words)
            self._programs[state] = tuple(self.words[number] for number in reversed(words[:count].tolist()))
        return self._programs[state]

    def expand(self, cost: int, deadline: float) -> None:
        """Make all images up to a cost, the cheapest first.

        Where the deadline, of ``time.monotonic``, cuts this, the next call goes on from there.
        """
        progress = np.empty(3, np.int64)
        seconds = deadline - time.monotonic()
        self.is_late = bool(call("expand", self.address, cost, self.max_states, self.max_bytes, seconds, progress))
        self.cost, self.num_applied, is_full = map(int, progress)
        self.is_full = bool(is_full)

    def add(self, images: Images) -> Int64[np.ndarray, " N"]:
        """Return the number of each image, and -1 for no image."""
        cells = np.ascontiguousarray(images.cells)
        boxes = np.stack([images.row, images.column, images.height, images.width], 1).astype(np.int32)
        numbers = np.empty(len(images), np.int64)
        call("add", self.address, len(images), images.frame, cells, boxes, numbers)
        return numbers

    def images(self, numbers: Int64[np.ndarray, " N"], frame: int | None = None) -> Images:
        """Return images by their numbers, in a frame as large as the largest of them, or in another one."""
        numbers = np.ascontiguousarray(numbers, np.int64)
        side = frame or min(max(int(np.max(self.sizes(numbers))), _SMALLEST), self.frame)
        cells = np.zeros((len(numbers), side, side), np.uint8)
        boxes = np.empty((len(numbers), 4), np.int32)
        call("images", self.address, len(numbers), numbers, side, cells, boxes)
        return Images(cells, *(np.ascontiguousarray(column) for column in boxes.T))

    def sizes(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return height and width of images by their numbers."""
        numbers = np.ascontiguousarray(numbers, np.int64)
        heights, widths = np.empty(numbers.shape, np.int32), np.empty(numbers.shape, np.int32)
        call("sizes", self.address, numbers.size, numbers, heights, widths)
        return heights, widths

    def features(self, numbers: Int64[np.ndarray, " P"]) -> UInt8[np.ndarray, "K M"]:
        """Return all features of the cells of some images, in the order of their names, the cells in one row."""
        heights, widths = self.sizes(numbers)
        rows = np.empty((len(FEATURES), int((heights * widths).sum())), np.uint8)
        call("features", self.address, len(numbers), np.ascontiguousarray(numbers, np.int64), rows.shape[1], rows)
        return rows

    def draw(
        self, numbers: Int64[np.ndarray, "S P"], sizes: Sequence[tuple[int, int]], num_cells: int
    ) -> UInt8[np.ndarray, "S M"]:
        """Return the cells of states on canvases of some sizes; see :meth:`OutputCells.draw`."""
        numbers = np.ascontiguousarray(numbers, np.int64)
        shapes = np.array(sizes, np.int32)
        cells = np.empty((len(numbers), num_cells), np.uint8)
        call("draw", self.address, len(numbers), len(shapes), numbers, shapes, num_cells, cells)
        return cells


class OutputCells:
    """The cells of all outputs in one row: those of the demonstrations, then those of the guessed answer.

    It is what a finder of candidates looks at, with the states of a search.
    """

    def __init__(self, graph: StateGraph, outputs: Sequence[np.ndarray], answer_size: tuple[int, int]) -> None:
        self.graph = graph
        self.outputs = outputs
        self.sizes = [*(output.shape for output in outputs), answer_size]
        self.target = np.concatenate([output.ravel() for output in outputs]).astype(np.uint8)
        counts = np.array([height * width for height, width in self.sizes])
        ends = np.cumsum(counts)
        self.slices = [slice(end - count, end) for end, count in zip(ends.tolist(), counts.tolist(), strict=True)]
        self.num_cells = int(ends[-1])
        self.known: dict[Any, Any] = {}  # what finders remember of it

    def draw(self, numbers: Int64[np.ndarray, "S P"]) -> UInt8[np.ndarray, "S M"]:
        """Return the cells of states: of an image of the size of the output as it is, of others at their position."""
        return self.graph.draw(numbers, self.sizes, self.num_cells)

    def is_exact(self, numbers: Int64[np.ndarray, "S P"]) -> Bool[np.ndarray, " S"]:
        """Whether each image of a state has the size of its output."""
        height, width = np.array(self.sizes).T
        heights, widths = self.graph.sizes(numbers)
        return ((heights == height) & (widths == width)).all(1)

    def candidate(self, layers: tuple[Layer, ...], cost: int, cells: UInt8[np.ndarray, " M"]) -> Candidate:
        """Compare the cells that layers draw with the outputs."""
        right = cells[: len(self.target)] == self.target
        fits = tuple(bool(right[pair].all()) for pair in self.slices[:-1])
        answer = cells[self.slices[-1]].reshape(self.sizes[-1])
        return Candidate(answer, layers, cost, fits, np.count_nonzero(right) / len(right))

    def ruled(self, rules: list[tuple[RuleLayer, int]]) -> list[Candidate]:
        """Return the cheapest rules with what they make of the test input; all of them draw every output."""
        source = self.graph.inputs[-1].astype(np.uint8)
        fits = (True,) * len(self.outputs)
        cheapest = sorted(rules, key=lambda one: one[1])[: LIMITS.rules]
        return [Candidate(rule.drawn(source), (rule,), cost, fits, 1.0) for rule, cost in cheapest]
