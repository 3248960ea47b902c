"""What words do with numbered images.

A state is ``int[P, L]``: for each of P inputs a list of at most L images, by number, -1 where a list has ended. A word
turns S states into S states; -1 in the first place of a list says that there is no answer.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from jaxtyping import Int64

from jaxarc.search import lists
from jaxarc.search.images import Images, Table, by_frame, hash_bytes
from jaxarc.search.words import FUNCTIONS, Word

States = Int64[np.ndarray, "S P L"]


def image_function(word: Word) -> Callable[[Images], Images]:
    """Return what an image word does, in NumPy."""
    function = FUNCTIONS[word.name].of_images
    assert function is not None
    return lambda images: function(images, *word.arguments)


@dataclass
class Machine:
    """Applies words to states, and remembers what it has computed for each image."""

    table: Table
    _results: dict[Word, np.ndarray] = field(default_factory=dict)  # word -> number of the result by image; -2 unknown
    _features: dict[str, np.ndarray] = field(default_factory=dict)  # feature -> value by image; or _UNKNOWN

    def apply(self, word: Word, states: States, numbers: Int64[np.ndarray, " N"] | None = None) -> States:
        """Return the states after a word; -1 first in a list where it has no answer.

        Args:
            word: a function with its arguments.
            states: of the parents.
            numbers: the different images of the states, where they are known.
        """
        if FUNCTIONS[word.name].of_images is not None:
            return self._mapped(word, states, np.unique(states) if numbers is None else numbers)
        if word.name == "split":
            return self._split(str(word.arguments[0]), states[:, :, 0])
        lists_of = states.reshape(-1, states.shape[2])
        found = self._of_lists(word, lists_of)
        return found.reshape(*states.shape[:2], -1)

    def _mapped(self, word: Word, states: States, numbers: Int64[np.ndarray, " N"]) -> States:
        known = _grown(self._results.get(word), len(self.table), -2)
        numbers = numbers[numbers >= 0]
        new = numbers[known[numbers] == -2]
        if len(new):
            function = image_function(word)
            if FUNCTIONS[word.name].can_grow:  # it needs the whole frame
                known[new] = self.table.add(function(self.table.images(new)))
            else:
                for places, images in by_frame(self.table, new):
                    known[new[places]] = self.table.add(function(images))
        self._results[word] = known
        return np.where(states >= 0, known[states], -1)

    def _split(self, name: str, states: Int64[np.ndarray, "S P"]) -> States:
        numbers, inverse = np.unique(states, return_inverse=True)
        real = numbers[numbers >= 0]
        rows = np.full((len(numbers), lists.LENGTH), -1, np.int64)
        for places, images in by_frame(self.table, real):
            parts, owner = lists.SPLITS[name](images)
            place = np.arange(len(owner)) - np.searchsorted(owner, owner)
            few = place < lists.LENGTH
            owner = (len(numbers) - len(real)) + places[owner[few]]
            rows[owner, place[few]] = self.table.add(parts.take(few))
        return rows[inverse.reshape(states.shape)]

    def values(self, feature: str, numbers: np.ndarray) -> np.ndarray:
        """Return a feature of images by number; of -1, any value."""
        values = _grown(self._features.get(feature), len(self.table), _UNKNOWN)
        wanted = np.zeros(len(self.table), np.bool_)
        wanted[numbers[numbers >= 0]] = True
        new = np.flatnonzero(wanted & (values[: len(wanted)] == _UNKNOWN))
        if len(new):
            for places, images in by_frame(self.table, new):
                values[new[places]] = {**lists.FEATURES, **lists.KEYS}[feature](images)
        self._features[feature] = values
        return values[numbers]

    def _of_lists(self, word: Word, rows: Int64[np.ndarray, "N L"]) -> Int64[np.ndarray, "N K"]:
        name, arguments = word.name, word.arguments
        if name in ("pick", "order", "keep"):
            values = self.values(str(arguments[1]), rows)
            if name == "pick":
                return lists.pick(values, rows, arguments[0] == "most")[:, None]
            if name == "order":
                return lists.ordered(values, rows, arguments[0] == "most")
            return lists.kept(values, rows, str(arguments[0]))
        if name == "odd":
            return lists.odd_one(self.values(str(arguments[1]), rows), rows, arguments[0] == "common")[:, None]
        if name == "item":
            return rows[:, [int(arguments[0])]]
        if name == "compare":
            return self._compared(str(arguments[0]), rows)
        unique, inverse = _unique_rows(rows)
        owner, place = np.nonzero(unique >= 0)
        images = self.table.images(unique[owner, place])
        if name == "stack":
            made = lists.stacked(images, owner, len(unique), arguments[0] == "first")
        else:
            made = lists.joined(images, owner, len(unique), 1 if arguments[0] == "rows" else 2)
        return self.table.add(made)[inverse][:, None]

    def _compared(self, kind: str, rows: Int64[np.ndarray, "N L"]) -> Int64[np.ndarray, "N 1"]:
        two = (rows >= 0).sum(1) == 2
        result = np.full(len(rows), -1, np.int64)
        unique, inverse = _unique_rows(rows[two, :2])
        pair = self.table.images(unique[:, 0]), self.table.images(unique[:, 1])
        result[two] = self.table.add(lists.combined(*pair, kind))[inverse]
        return result[:, None]


_UNKNOWN: Final = np.iinfo(np.int64).min


def _grown(values: np.ndarray | None, size: int, fill: int) -> Int64[np.ndarray, " N"]:
    """Return an array with room for one value of each image; it doubles, so that it is seldom copied."""
    if values is not None and len(values) >= size:
        return values
    grown = np.full(2 * size, fill, np.int64)
    if values is not None:
        grown[: len(values)] = values
    return grown


def _unique_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    hashes = hash_bytes(np.ascontiguousarray(rows).view(np.uint8).reshape(len(rows), rows.shape[1] * rows.itemsize))
    _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
    return rows[first], inverse
