"""The graph of states in C++: the same states as :class:`jaxarc.search.graph.StateGraph`, many times as fast.

The library computes most words; for those that it does not know, and for features of cells, it gives images to the
functions in NumPy. Its sources say what stands where: ``native/search/*.h``.
"""

import ctypes
import functools
import subprocess
import time
import warnings
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
from jaxtyping import Int64, UInt8

from jaxarc.errors import JaxarcError
from jaxarc.native.library import SEARCH_SOURCES, NativeLibraryWarning, load_library
from jaxarc.search.graph import NEW_ALONE
from jaxarc.search.images import Images, images_of, parts_of_frame
from jaxarc.search.words import Machine, Word, image_function

_INT, _LONG, _POINTER, _TEXT = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p
_FUNCTIONS: Final[dict[str, tuple[Any, ...]]] = {  # name -> the result, then the arguments, as in search.cc
    "new": (_POINTER, _INT, _INT),
    "delete": (None, _POINTER),
    "num_images": (_LONG, _POINTER),
    "num_states": (_LONG, _POINTER),
    "add": (None, _POINTER, _LONG, _INT, _POINTER, _POINTER, _POINTER),
    "images": (None, _POINTER, _LONG, _POINTER, _INT, _POINTER, _POINTER),
    "sizes": (None, _POINTER, _LONG, _POINTER, _POINTER, _POINTER),
    "declare": (_INT, _POINTER, _TEXT, _TEXT, _TEXT, _POINTER),
    "start": (None, _POINTER, _POINTER),
    "level_size": (_LONG, _POINTER, _INT, _INT),
    "unknown": (_LONG, _POINTER, _INT, _INT, _INT, _POINTER),
    "learn": (None, _POINTER, _INT, _LONG, _POINTER, _POINTER),
    "expand": (None, _POINTER, _INT, _INT, _INT, _LONG, _LONG, _INT, _INT),
    "num_image_states": (_LONG, _POINTER),
    "image_states": (None, _POINTER, _INT, _POINTER, _POINTER, _POINTER),
    "program": (_INT, _POINTER, _INT, _INT, _POINTER),
    "draw": (None, _POINTER, _LONG, _INT, _POINTER, _POINTER, _LONG, _POINTER),
}
_CHUNK: Final = 4096  # states between two looks at the clock
_LONGEST: Final = 64  # words of a program


@functools.cache
def search_library() -> dict[str, Any] | None:
    """Load the library, and build it before if it is not there; None, with one warning, where that fails."""
    try:
        _, loaded = load_library(SEARCH_SOURCES, tuple(f"search_{name}" for name in _FUNCTIONS))
    except (JaxarcError, OSError, subprocess.SubprocessError) as error:
        why = " ".join(str(error).split())
        warnings.warn_explicit(
            f"the search runs on NumPy, which is slower: {why}; set CXX to a C++ compiler and JAXARC_CACHE to a folder "
            "of your own",
            NativeLibraryWarning,
            filename=str(SEARCH_SOURCES),
            lineno=1,
        )
        return None
    functions = {}
    for name, (result, *arguments) in _FUNCTIONS.items():
        function = loaded[f"search_{name}"]
        function.restype, function.argtypes = result, arguments
        functions[name] = function
    return functions


class NativeTable:
    """The images of a native graph, for NumPy; see :class:`jaxarc.search.images.ImageTable`."""

    def __init__(self, library: dict[str, Any], graph: int, frame: int) -> None:
        self._library = library
        self._graph = graph
        self.frame = frame

    def __len__(self) -> int:
        return self._library["num_images"](self._graph)

    def add(self, images: Images) -> Int64[np.ndarray, " N"]:
        """Return the number of each image, and -1 for no image."""
        cells = np.ascontiguousarray(images.cells)
        boxes = np.stack([images.row, images.column, images.height, images.width], 1).astype(np.int32)
        numbers = np.empty(len(images), np.int64)
        given = (cells.ctypes.data, boxes.ctypes.data, numbers.ctypes.data)
        self._library["add"](self._graph, len(images), images.frame, *given)
        return numbers

    def images(self, numbers: Any, frame: int | None = None) -> Images:
        """Return images by their numbers, in a smaller frame if they fit into it."""
        numbers = np.ascontiguousarray(numbers, np.int64)
        side = self.frame if frame is None else min(frame, self.frame)
        cells = np.zeros((len(numbers), side, side), np.uint8)
        boxes = np.empty((len(numbers), 4), np.int32)
        given = (side, cells.ctypes.data, boxes.ctypes.data)
        self._library["images"](self._graph, len(numbers), numbers.ctypes.data, *given)
        return Images(cells, *(np.ascontiguousarray(column) for column in boxes.T))

    def sizes(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return height and width of images by their numbers."""
        numbers = np.ascontiguousarray(numbers, np.int64)
        heights, widths = np.empty(numbers.shape, np.int32), np.empty(numbers.shape, np.int32)
        given = (numbers.ctypes.data, heights.ctypes.data, widths.ctypes.data)
        self._library["sizes"](self._graph, numbers.size, *given)
        return heights, widths

    def by_frame(self, numbers: Int64[np.ndarray, " N"]) -> Iterator[tuple[Int64[np.ndarray, " K"], Images]]:
        """Yield images with their places among the numbers, small ones in a small frame, which saves time."""
        for places, frame in parts_of_frame(np.maximum(*self.sizes(numbers))):
            yield places, self.images(numbers[places], frame)

    def draw(
        self, numbers: Int64[np.ndarray, "S P"], sizes: Sequence[tuple[int, int]], num_cells: int
    ) -> UInt8[np.ndarray, "S M"]:
        """Return the cells of states on canvases of some sizes; see :meth:`jaxarc.search.pieces.OutputCells.draw`."""
        numbers = np.ascontiguousarray(numbers, np.int64)
        shapes = np.array(sizes, np.int32)
        cells = np.empty((len(numbers), num_cells), np.uint8)
        given = (len(shapes), numbers.ctypes.data, shapes.ctypes.data, num_cells, cells.ctypes.data)
        self._library["draw"](self._graph, len(numbers), *given)
        return cells


class NativeGraph:
    """States reached from the inputs of a task; see :class:`jaxarc.search.graph.StateGraph`."""

    def __init__(
        self,
        library: dict[str, Any],
        inputs: Sequence[np.ndarray],
        frame: int,
        words: Sequence[Word],
        max_states: int,
        max_images: int,
        deadline: float,
    ) -> None:
        self._library = library
        self._graph = library["new"](frame, len(inputs))
        weakref.finalize(self, library["delete"], self._graph)
        self.table = NativeTable(library, self._graph, frame)
        self.machine = Machine(self.table)
        self.is_cut = False  # whether a limit was reached
        self.num_applied = 0
        self.cost = 0  # up to which states are known
        self._num_inputs = len(inputs)
        self._words = words
        self._is_computed_there: list[bool] = [self._declare(word) for word in words]
        self._max_states = max_states
        self._max_images = max_images
        self._deadline = deadline
        numbers = self.table.add(images_of(list(inputs), frame)).astype(np.int32)
        library["start"](self._graph, numbers.ctypes.data)

    def __len__(self) -> int:
        return self._library["num_states"](self._graph)

    @property
    def images(self) -> tuple[Int64[np.ndarray, " S"], Int64[np.ndarray, "S P"], Int64[np.ndarray, " S"]]:
        """All states that are one image for each input: the state, its images, and its cost."""
        count = self._library["num_image_states"](self._graph)
        states, costs = np.empty(count, np.int64), np.empty(count, np.int64)
        numbers = np.empty((count, self._num_inputs), np.int64)
        given = (states.ctypes.data, numbers.ctypes.data, costs.ctypes.data)
        self._library["image_states"](self._graph, self._num_inputs, *given)
        return states, numbers, costs

    def program(self, state: int) -> tuple[Word, ...]:
        """Return the words that lead from the inputs to a state."""
        words = np.empty(_LONGEST, np.int32)
        count = self._library["program"](self._graph, state, _LONGEST, words.ctypes.data)
        return tuple(self._words[number] for number in reversed(words[:count].tolist()))

    def expand(self) -> None:
        """Make all images of the next cost; before, the lists of one less, which only these need."""
        self.cost += 1
        self._make(self.cost - 1, are_lists=True)
        self._make(self.cost, are_lists=False)

    def _declare(self, word: Word) -> bool:
        texts = [*map(str, word.arguments), "", ""][:2]
        is_computed_there = ctypes.c_int32()
        given = (word.name.encode(), *(text.encode() for text in texts), ctypes.byref(is_computed_there))
        self._library["declare"](self._graph, *given)
        return bool(is_computed_there.value)

    def _make(self, cost: int, are_lists: bool) -> None:
        for source_cost in range(cost):
            for is_list in (False, True):
                count = self._library["level_size"](self._graph, source_cost, is_list)
                for number, word in enumerate(self._words):
                    if source_cost + word.cost != cost or word.makes_list(is_list) is not are_lists:
                        continue
                    if self._is_over():
                        self.is_cut = True
                        return
                    self._apply(number, source_cost, is_list, count, cost)

    def _apply(self, number: int, source_cost: int, is_list: bool, count: int, cost: int) -> None:
        word = self._words[number]
        if not self._is_computed_there[number]:
            self._compute(number, source_cost, is_list)
        for start in range(0, count, _CHUNK):
            if start > 0 and self._is_over():
                self.is_cut = True
                return
            end = min(start + _CHUNK, count)
            given = (number, source_cost, is_list, start, end, cost, word in NEW_ALONE)
            self._library["expand"](self._graph, *given)
            self.num_applied += end - start

    def _compute(self, number: int, source_cost: int, is_list: bool) -> None:
        """Compute a word in NumPy for the images of a level that are new to it."""
        new = np.empty(len(self.table), np.int64)
        new = new[: self._library["unknown"](self._graph, number, source_cost, is_list, new.ctypes.data)]
        function = image_function(self._words[number])
        for places, images in self.table.by_frame(new):
            some = np.ascontiguousarray(new[places])
            results = self.table.add(function(images))
            self._library["learn"](self._graph, number, len(some), some.ctypes.data, results.ctypes.data)

    def _is_over(self) -> bool:
        is_full = len(self) >= self._max_states or len(self.table) >= self._max_images
        return is_full or time.monotonic() > self._deadline
