"""The search itself: all words on all states, cheapest first, each different state once."""

import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Int64

from jaxarc.search.images import HashIndex, ImageTable, hash_bytes, images_of
from jaxarc.search.machine import Machine, States
from jaxarc.search.words import NEW_ALONE, Word

START: Final = -1
_CHUNK: Final = 4096  # states between two looks at the clock


class Origin(NamedTuple):
    """Where states come from: each was made by a word from a parent."""

    parents: Int64[np.ndarray, " S"]
    word: Word | None


class Limits(NamedTuple):
    """What ends a search: no word is applied after one of these is reached."""

    max_states: int
    max_images: int
    deadline: float  # of ``time.monotonic``

    def are_reached(self, num_states: int, num_images: int) -> bool:
        is_full = num_states >= self.max_states or num_images >= self.max_images
        return is_full or time.monotonic() > self.deadline


class StateGraph:
    """States reached from the inputs of a task; :meth:`expand` adds those of the next cost.

    A state is one image for each input, or one list of images for each. A new state is a word applied to a known one.
    States of one cost are made together: a state of cost 1 with words of cost 2, then one of cost 2 with words of cost
    1, make those of cost 3.

    Args:
        inputs: of the demonstrations, then the test input.
        frame: rows and columns that an image may have.
        words: all functions.
        limits: when to stop.
    """

    def __init__(self, inputs: Sequence[np.ndarray], frame: int, words: Sequence[Word], limits: Limits) -> None:
        self.table = ImageTable(frame)
        self.machine = Machine(self.table)
        self.is_cut = False  # whether a limit was reached
        self.num_applied = 0
        self.cost = 0  # up to which states are known
        self.cell_features: dict[bytes, dict[str, np.ndarray]] = {}  # of the images with some numbers, by name
        self._words = words
        self._index = HashIndex()
        self._limits = limits
        self._starts: list[int] = []  # first states of chunks
        self._origins: list[Origin] = []  # where the states of a chunk come from
        self._costs: list[np.ndarray] = []
        self._images: list[np.ndarray] = []  # numbers of states that are one image each
        self._image_states: list[np.ndarray] = []  # their states
        self._levels: dict[tuple[int, bool], list[tuple[np.ndarray, States]]] = defaultdict(
            list
        )  # by cost, and is it a list
        numbers = self.table.add(images_of(list(inputs), frame))
        self._add(numbers[None, :, None], Origin(np.array([START]), None), 0)

    def __len__(self) -> int:
        return len(self._index)

    @property
    def images(self) -> tuple[Int64[np.ndarray, " S"], Int64[np.ndarray, "S P"], Int64[np.ndarray, " S"]]:
        """All states that are one image for each input: the state, its images, and its cost."""
        states = np.concatenate(self._image_states)
        return states, np.concatenate(self._images), np.concatenate(self._costs)[states]

    def program(self, state: int) -> tuple[Word, ...]:
        """Return the words that lead from the inputs to a state."""
        words: list[Word] = []
        while True:
            chunk = bisect_right(self._starts, state) - 1
            start, origin = self._starts[chunk], self._origins[chunk]
            if origin.word is None:
                return tuple(reversed(words))
            words.append(origin.word)
            state = int(origin.parents[state - start])

    def expand(self) -> None:
        """Make all images of the next cost; before, the lists of one less, which only these need."""
        self.cost += 1
        self._make(self.cost - 1, are_lists=True)
        self._make(self.cost, are_lists=False)

    def _make(self, cost: int, are_lists: bool) -> None:
        for source_cost in range(cost):
            for is_list in (False, True):
                states, numbers = self._level(source_cost, is_list)
                words = [word for word in self._words if word.makes_list(is_list) is are_lists]
                slices = [slice(start, start + _CHUNK) for start in range(0, len(states), _CHUNK)]
                chunks = [(states[one], numbers[one], np.unique(numbers[one])) for one in slices]
                for word in (word for word in words if source_cost + word.cost == cost):
                    for parents, images, different in chunks:
                        if self._limits.are_reached(len(self), len(self.table)):
                            self.is_cut = True
                            return
                        self.num_applied += len(parents)
                        self._add(self.machine.apply(word, images, different), Origin(parents, word), cost)

    def _level(self, cost: int, is_list: bool) -> tuple[np.ndarray, States]:
        """Return all states of a cost that are lists, or that are no lists."""
        found = self._levels[cost, is_list]
        if len(found) > 1:
            states, numbers = (np.concatenate(parts) for parts in zip(*found, strict=True))
            found[:] = [(states, numbers)]
        return found[0] if found else (np.zeros(0, np.int64), np.zeros((0, 1, 1), np.int64))

    def _add(self, numbers: States, origin: Origin, cost: int) -> None:
        """Keep the states that have an answer for every input and are new."""
        # numbers[s, p] is the list of images that state s has for input p, padded with -1: `7 9 -1` is two images.
        valid = (numbers[:, :, 0] >= 0).all(1)
        if numbers.shape[2] > 1:
            is_list = (numbers[:, :, 1] >= 0).any(1)
            # A list of one image for every input is that image. Of most lists a cheaper state has it already.
            single = valid & ~is_list
            if origin.word in NEW_ALONE and single.any():
                self._add(numbers[single, :, :1], Origin(origin.parents[single], origin.word), cost)
            valid &= is_list
        chosen = np.flatnonzero(valid)
        if not len(chosen):
            return
        # States are equal if the numbers of all their images are; 64 bits of a hash stand for these.
        rows = np.ascontiguousarray(numbers[chosen]).reshape(len(chosen), -1)
        hashes = hash_bytes(rows.astype(np.int32).view(np.uint8), seed=numbers.shape[2])
        before = len(self._index)
        _, new = self._index.number(hashes)
        if not len(new):
            return
        chosen = chosen[new]
        self._starts.append(before)
        self._origins.append(Origin(origin.parents[chosen], origin.word))
        self._costs.append(np.full(len(chosen), cost))
        states = before + np.arange(len(chosen))
        self._levels[cost, numbers.shape[2] > 1].append((states, numbers[chosen]))
        if numbers.shape[2] == 1:
            self._images.append(numbers[chosen, :, 0])
            self._image_states.append(states)
