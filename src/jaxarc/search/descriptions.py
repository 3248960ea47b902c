"""What a network sees of a task: numbers of each demonstration, and of each word how near its first images come.

The words are described by the first level of the search itself: all states of a cost of at most 2. For ``crop``, for
example, it is looked how many cells of the outputs come out right after ``crop``, ``crop > pad(2, 2)`` and all other
states that use it, and the best of these numbers are its description. So a word that is new to the network is
described as well as others are. No number depends on which color is which, and turned or mirrored pairs have the same.
"""

import functools
import hashlib
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Float32
from scipy.ndimage import label

from jaxarc.search.graph import OutputCells, StateGraph
from jaxarc.search.limits import LIMITS
from jaxarc.search.words import LARGEST, Word, vocabulary

Pair = tuple[np.ndarray, np.ndarray]
MOST_PAIRS: Final = 6  # demonstrations that are described; further ones are left out
NO_WORD: Final = "input"  # the key of a program that needs no word of the search: a table of features of cells
_VERSION: Final = 1  # of the numbers of this file
_FOUR: Final = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]])
_EIGHT: Final = np.ones((3, 3), np.int64)


class Described(NamedTuple):
    """A task, as a network sees it."""

    pairs: Float32[np.ndarray, "N d 3"]  # numbers of inputs, of outputs, and of both; all 0 where there is no pair
    words: Float32[np.ndarray, "k F"]  # of the keys
    is_tried: Bool[np.ndarray, " k"]  # whether the search tries a word of this key at this task


@functools.cache
def word_keys() -> tuple[str, ...]:
    """Return what words are known by: their text, or the name alone of those whose arguments depend on the task."""
    always = dict.fromkeys(map(str, vocabulary((), (), (), ())))
    of_some = vocabulary(range(10), range(10), [(5, 7)], [(LARGEST, LARGEST)])
    return (NO_WORD, *always, *dict.fromkeys(word.name for word in of_some if str(word) not in always))


@functools.cache
def key_indices() -> dict[str, int]:
    """Return the place of each key."""
    return {key: index for index, key in enumerate(word_keys())}


def vocabulary_digest() -> str:
    """Return a hash of the keys and of what is described: weights are of use only where it is the same."""
    return hashlib.sha256("\n".join([str(_VERSION), *word_keys()]).encode()).hexdigest()[:16]


def keys_of(words: Iterable[Word]) -> set[int]:
    """Return the keys of words; a word that the search never tries, such as a feature of cells, has none."""
    places = key_indices()
    found = (places.get(str(word), places.get(word.name)) for word in words)
    return {one for one in found if one is not None}


def describe(graph: StateGraph, train: Sequence[Pair]) -> Described:
    """Describe a task by its demonstrations and the states of a search that knows those of a cost of at most 2."""
    pairs = np.zeros((MOST_PAIRS, _NUM_NUMBERS, 3), np.float32)
    for place, pair in enumerate(train[:MOST_PAIRS]):
        pairs[place] = _describe_pair(*pair)
    is_tried = np.zeros(len(word_keys()), np.bool_)
    is_tried[[key_indices()[NO_WORD], *keys_of(graph.words)]] = True
    return Described(pairs, _describe_words(graph, [target for _, target in train]), is_tried)


def _describe_words(graph: StateGraph, outputs: list[np.ndarray]) -> Float32[np.ndarray, "k F"]:
    states, numbers, costs = graph.image_states
    first = costs <= LIMITS.first_cost
    states, numbers = states[first], numbers[first, : len(outputs)]
    canvas = OutputCells(graph, outputs, (1, 1))  # without an answer
    sizes, count = canvas.sizes[:-1], len(canvas.target)
    cells = graph.draw(numbers, sizes, count)
    starts = [part.start for part in canvas.slices[:-1]]
    is_right = cells == canvas.target
    is_solid = cells != 0
    needed, kept = ~is_right[0], is_right[0]  # state 0 is the input
    differs = cells != cells[0]
    shares = np.add.reduceat(is_right, starts, axis=1) / np.diff([*starts, count])
    height, width = graph.sizes(numbers)
    has_size = (height == [size[0] for size in sizes]) & (width == [size[1] for size in sizes])
    of_states = np.stack(
        [
            np.ones(len(states)),
            (numbers != numbers[0]).any(1),
            shares.mean(1),
            shares.min(1),
            (is_right & needed).sum(1) / max(needed.sum(), 1),
            (is_right & kept).sum(1) / max(kept.sum(), 1),
            (is_right & is_solid).sum(1) / np.maximum(is_solid.sum(1), 1),
            (is_solid == (canvas.target != 0)).mean(1),
            (differs & needed).sum(1) / np.maximum((differs | needed).sum(1), 1),
            has_size.mean(1),
        ],
        1,
    )
    described = np.zeros((len(word_keys()), of_states.shape[1]), np.float32)
    for number, state in zip(of_states, states.tolist(), strict=True):
        for key in keys_of(graph.program(state)) or {key_indices()[NO_WORD]}:
            np.maximum(described[key], number, out=described[key])
    return described


def _describe_pair(source: np.ndarray, target: np.ndarray) -> Float32[np.ndarray, "d 3"]:
    ours, theirs = _describe_grid(source), _describe_grid(target)
    both = theirs - ours
    both[0] = 1.0
    colors_in, colors_out = set(np.unique(source).tolist()), set(np.unique(target).tolist())
    down, right = (np.log(big / small) for big, small in zip(target.shape, source.shape, strict=True))
    is_same_size = source.shape == target.shape
    changed = source != target if is_same_size else np.ones(source.shape, np.bool_)
    related = [
        [is_same_size, changed.mean() * is_same_size, (changed & (source == 0)).sum() / max(changed.sum(), 1)],
        [max(down, right), min(down, right), target.size == source.size],
        [len(colors_out - colors_in) / 10, len(colors_in - colors_out) / 10, colors_in == colors_out],
    ]
    return np.concatenate([np.stack([ours, theirs, both], 1), np.array(related)]).astype(np.float32)


def _describe_grid(grid: np.ndarray) -> np.ndarray:
    counts = np.sort(np.bincount(grid.ravel(), minlength=10)[1:])[::-1]
    found: Any = label(grid != 0, _EIGHT)
    rooms: Any = label(grid == 0, _FOUR)
    objects, num_objects = found
    sizes = np.bincount(objects.ravel())[1:] if num_objects else np.zeros(1)
    rows, columns = np.flatnonzero((grid != 0).any(1)), np.flatnonzero((grid != 0).any(0))
    box = (rows[-1] - rows[0] + 1) * (columns[-1] - columns[0] + 1) if len(rows) else 0
    mirrored = sorted([np.mean(grid == grid[::-1]), np.mean(grid == grid[:, ::-1])])
    alike = sorted([_alike(grid), _alike(grid.T)])
    height, width = grid.shape
    return np.array(
        [
            1.0,
            max(height, width) / LARGEST,
            min(height, width) / LARGEST,
            (counts > 0).sum() / 10,
            np.mean(grid == 0),
            counts[0] / grid.size,
            np.log1p(num_objects) / 4,
            np.max(sizes) / grid.size,
            np.mean(sizes == 1),
            np.log1p(rooms[1]) / 4,
            box / grid.size,
            *mirrored,
            *alike,
        ]
    )


def _alike(grid: np.ndarray) -> float:
    """Return the share of cells that equal the one above."""
    return float(np.mean(grid[1:] == grid[:-1])) if len(grid) > 1 else 0.0


_NUM_NUMBERS: Final = len(_describe_pair(*2 * (np.zeros((1, 1), np.int8),)))
