"""What tables look at: cheap states of the search, and features of each cell, on the cells of the outputs."""

import math
import time
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Int64, UInt8

from jaxarc.search.features import COLORED, FEATURES, NUMBERS, cell_feature
from jaxarc.search.graph import StateGraph
from jaxarc.search.images import hash_bytes
from jaxarc.search.pieces import OutputCells
from jaxarc.search.words import Word

_STATES: Final = 300  # cheapest states that a rule may look at
_STATE_COST: Final = 3  # of such a state at most
_FEW_CELLS: Final = 16  # of an output, whose colors may depend on the place and a number of the input
_SAYING: Final = ("cell_feature", "number", "place")  # words whose images hold bytes


class Source(NamedTuple):
    """What a table may look at: its value at each cell of the outputs."""

    words: tuple[Word, ...]
    values: UInt8[np.ndarray, " M"]
    codes: Int64[np.ndarray, " M"]  # the values numbered from 0
    num_values: int
    cost: int
    has_colors: bool


def find_sources(graph: StateGraph, canvas: OutputCells, deadline: float) -> list[Source]:
    """Return the images that a rule may look at, each different one once; the input comes first if it has the size."""
    states, numbers, costs = graph.image_states
    cheap = np.flatnonzero(costs <= _STATE_COST)
    cheap = cheap[np.argsort(costs[cheap], kind="stable")]
    cheap = cheap[canvas.is_exact(graph, numbers[cheap])][:_STATES]
    found: dict[bytes, Source] = {}
    drawn = canvas.draw(graph, numbers[cheap])
    for index, cells in zip(cheap, drawn, strict=True):
        _add(found, graph.program(int(states[index])), cells, int(costs[index]))
    for index in cheap[:1]:  # the input, if it has the size, or else the cheapest state that has it
        base = graph.program(int(states[index]))
        for name, cells in _cell_features(graph, numbers[index], deadline).items():
            word = Word("cell_feature", (name,))
            _add(found, (*base, word), cells, int(costs[index]) + word.cost)
    sizes = set(canvas.sizes)
    if len(sizes) == 1 and math.prod(canvas.sizes[0]) <= _FEW_CELLS:  # a table of all cells for each number of an input
        start = graph.images(numbers[np.argmin(costs)], graph.frame)
        for word in (Word("place", (canvas.sizes[0][1],)), *(Word("number", (name,)) for name in NUMBERS)):
            drawn = canvas.draw(graph, graph.add(word.of_images(start))[None])[0]
            _add(found, (word,), drawn, word.cost)
    return list(found.values())


def _cell_features(
    graph: StateGraph, numbers: Int64[np.ndarray, " P"], deadline: float
) -> dict[str, UInt8[np.ndarray, " M"]]:
    """Return all features of the cells of some images, which the graph remembers."""
    key = numbers.tobytes()
    found = graph.cell_features.setdefault(key, {})
    if len(found) < len(FEATURES):
        images = graph.images(numbers)
        inside = images.inside
        for name in FEATURES:
            if time.monotonic() > deadline:
                break
            if name not in found:
                found[name] = cell_feature(images, name).cells[inside]
    return found


def _add(found: dict[bytes, Source], words: tuple[Word, ...], cells: np.ndarray, cost: int) -> None:
    is_there = np.bincount(cells, minlength=256) > 0
    values = np.flatnonzero(is_there)
    codes = (np.cumsum(is_there) - 1)[cells]
    has_colors = not words or words[-1].name not in _SAYING or words[-1].arguments[0] in COLORED
    key = (cells if has_colors else codes).astype(np.uint8).tobytes()
    if key not in found:
        found[key] = Source(words, cells.copy(), codes, len(values), cost, has_colors)


class Cells(NamedTuple):
    """Cells that differ in a source, in their color or their demonstration: a rule right on these is right on all."""

    demonstrated: Int64[np.ndarray, " D"]
    colors: Int64[np.ndarray, " D"]
    pairs: Int64[np.ndarray, " D"]  # their demonstrations
    counts: Int64[np.ndarray, " D"]  # how many cells each stands for
    asked: Int64[np.ndarray, " A"]  # of the test input
    num_pairs: int


def different_cells(sources: list[Source], canvas: OutputCells) -> Cells:
    """Join the cells that look the same to all sources and have the same color in the output, and count them."""
    size = len(canvas.target)
    num_pairs = len(canvas.slices) - 1
    pairs = np.repeat(np.arange(num_pairs), [pair.stop - pair.start for pair in canvas.slices[:-1]])
    values = np.stack([one.codes for one in sources], 1).astype(np.uint8)
    demonstrated = np.concatenate([values[:size], canvas.target[:, None], pairs[:, None].astype(np.uint8)], 1)
    _, first, counts = np.unique(hash_bytes(demonstrated), return_index=True, return_counts=True)
    _, asked = np.unique(hash_bytes(values[size:]), return_index=True)
    return Cells(first, canvas.target[first].astype(np.int64), pairs[first], counts, size + asked, num_pairs)
