"""The search itself: all words on all states, cheapest first, each different state once. The library does the work."""

import time
import weakref
from collections.abc import Iterator, Sequence
from itertools import chain, product
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Int64, UInt8

from jaxarc.search.images import Images, images_of
from jaxarc.search.search_library import call
from jaxarc.search.words import NEW_ALONE, Word

_CHUNK: Final = 4096  # states between two looks at the number of states
_PART_CELLS: Final = 2_000_000  # of images between two looks at the clock
_TABLES_BYTES: Final = 8  # for each word and image
_LONGEST: Final = 64  # words of a program
_SMALLEST: Final = 3  # side of a frame


class Limits(NamedTuple):
    """What ends a search: no word is applied after one of these is reached; the deadline may be set anew."""

    max_states: int
    max_images: int
    deadline: float  # of ``time.monotonic``


class StateGraph:
    """States reached from the inputs of a task; :meth:`expand` adds those of the next cost.

    A state is one image for each input, or one list of images for each. A new state is a word applied to a known one.
    States of one cost are made together: a state of cost 1 with words of cost 2, then one of cost 2 with words of cost
    1, make those of cost 3. Equal images have one number.

    Args:
        inputs: of the demonstrations, then the test input.
        frame: rows and columns that an image may have.
        words: all functions.
        limits: when to stop.
    """

    def __init__(self, inputs: Sequence[np.ndarray], frame: int, words: Sequence[Word], limits: Limits) -> None:
        self._graph = call("new", frame, len(inputs))
        weakref.finalize(self, call, "delete", self._graph)
        self.frame = frame
        self.is_full = False  # whether there are as many states or images as there may be
        self.is_late = False  # whether the deadline was reached
        self.num_applied = 0
        self.cost = 0  # up to which states are known
        self.cell_features: dict[bytes, dict[str, np.ndarray]] = {}  # of the images with some numbers, by name
        self._num_inputs = len(inputs)
        self.words = words
        self._limits = limits
        self._left: Iterator[_Application] | None = None  # of a level that the deadline cut
        self._part = max(_PART_CELLS // (len(inputs) * frame**2), 1)  # states
        for word in words:
            self._declare(word)
        call("start", self._graph, self.add(images_of(list(inputs), frame)).astype(np.int32))

    def __len__(self) -> int:
        return call("num_states", self._graph)

    @property
    def is_cut(self) -> bool:
        """Whether a limit was reached."""
        return self.is_full or self.is_late

    @property
    def num_bytes(self) -> int:
        """The memory that it takes, about."""
        return call("num_images", self._graph) * (self.frame**2 + _TABLES_BYTES * len(self.words))

    def set_deadline(self, deadline: float) -> None:
        """Give more time; :meth:`expand` goes on where it was cut."""
        self._limits = self._limits._replace(deadline=deadline)
        self.is_late = False

    @property
    def image_states(self) -> tuple[Int64[np.ndarray, " S"], Int64[np.ndarray, "S P"], Int64[np.ndarray, " S"]]:
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
        return tuple(self.words[number] for number in reversed(words[:count].tolist()))

    def expand(self) -> None:
        """Make all images of the next cost; before, the lists of one less, which only these need.

        Where the deadline cuts this, the cost stays, and the next call goes on from there.
        """
        left = self._left or _applications(self._graph, self.words, self.cost + 1, self._part)
        for one in left:
            self._look_at_limits(one.start % _CHUNK == 0)
            if self.is_full:
                break
            if self.is_late:
                self._left = chain([one], left)
                return
            is_new_alone = self.words[one.word] in NEW_ALONE
            given = (one.word, one.source_cost, one.is_list, one.start, one.end, one.cost, is_new_alone)
            call("expand", self._graph, *given)
            self.num_applied += one.end - one.start
        self._left = None
        self.cost += 1

    def add(self, images: Images) -> Int64[np.ndarray, " N"]:
        """Return the number of each image, and -1 for no image."""
        cells = np.ascontiguousarray(images.cells)
        boxes = np.stack([images.row, images.column, images.height, images.width], 1).astype(np.int32)
        numbers = np.empty(len(images), np.int64)
        call("add", self._graph, len(images), images.frame, cells, boxes, numbers)
        return numbers

    def images(self, numbers: Int64[np.ndarray, " N"], frame: int | None = None) -> Images:
        """Return images by their numbers, in a frame as large as the largest of them, or in another one."""
        numbers = np.ascontiguousarray(numbers, np.int64)
        side = frame or min(max(int(np.max(self.sizes(numbers))), _SMALLEST), self.frame)
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
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Find the pieces among plain colors and states.

        Of those that are right and wrong at the same cells only the first is one, unless they are all right.

        Returns:
            right: bits of the cells that are right.
            solid: bits of the cells that are not 0.
            place: of its state in the order given, or the color less 256.
        """
        numbers = np.ascontiguousarray(numbers, np.int64)
        shapes, plain = np.array(sizes, np.int32), np.array(colors, np.uint8)
        words = -(-len(target) // 64)
        most = len(numbers) + len(colors) + 1  # one is written before it is known to be none
        right, solid = np.empty((most, words), np.uint64), np.empty((most, words), np.uint64)
        places = np.empty(most, np.int64)
        given = (len(numbers), len(shapes), numbers, shapes, len(plain), plain, len(target), target, words)
        count = call("pieces", self._graph, *given, right, solid, places)
        return right[:count], solid[:count], places[:count]

    def _declare(self, word: Word) -> None:
        name, *given = (text.encode() for text in [word.name, *map(str, word.arguments), "", ""][:3])
        if call("declare", self._graph, name, *given) < 0:
            raise LookupError(f"the library has no word {word.name}; add its kernel to native/search/graph.h")

    def _look_at_limits(self, begins_chunk: bool) -> None:
        limits = self._limits
        if begins_chunk:
            self.is_full |= len(self) >= limits.max_states or call("num_images", self._graph) >= limits.max_images
        self.is_late |= time.monotonic() > limits.deadline


class _Application(NamedTuple):
    """Some states of a level to which a word is applied."""

    word: int
    source_cost: int
    is_list: bool
    start: int
    end: int
    cost: int  # of what it makes


def _applications(graph: int, words: Sequence[Word], cost: int, part: int) -> Iterator[_Application]:
    """Yield what makes all images of a cost; before, the lists of one less."""
    for target, are_lists in ((cost - 1, True), (cost, False)):
        for source, is_list in product(range(target), (False, True)):
            count = call("level_size", graph, source, is_list)
            fitting = [
                number
                for number, word in enumerate(words)
                if source + word.cost == target and word.makes_list(is_list) is are_lists
            ]
            for number, chunk in product(fitting, range(0, max(count, 1), _CHUNK)):
                end = min(chunk + _CHUNK, count)
                for start in range(chunk, max(end, 1), part):
                    yield _Application(number, source, is_list, start, min(start + part, end), target)
