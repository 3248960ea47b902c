"""Rules learned from the demonstrations: the color of an output cell is looked up by what some images say there.

An image is a cheap state of the search, or a feature of each cell, such as the size of its object. A table of two
images of one bit each with ``0 0 -> 0, 0 1 -> 3, 1 0 -> 3, 1 1 -> 0`` is their exclusive or in color 3.
"""

import math
from itertools import chain, combinations
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Int64, UInt8

from jaxarc.search.features import FEATURES
from jaxarc.search.graph import StateGraph
from jaxarc.search.images import hash_bytes
from jaxarc.search.pieces import OutputCells
from jaxarc.search.words import Word

_STATES: Final = 100  # cheapest states that a rule may look at
_STATE_COST: Final = 2  # of such a state at most
_LARGEST_TABLE: Final = 6_000
_FEW: Final = 8  # values of a source that three may stand together with
_KEPT: Final = 4  # rules of a task
_KEYS_OF_ONE_COST: Final = 4  # rows of a table that cost as much as half a function


class TableRule(NamedTuple):
    """A table from the values of some images at a cell to its color."""

    sources: tuple[tuple[Word, ...], ...]  # the words that make each image
    table: tuple[tuple[tuple[int, ...], int], ...]  # values of the images -> color
    cost: int
    answer: UInt8[np.ndarray, "h w"]


class _Source(NamedTuple):
    words: tuple[Word, ...]
    values: UInt8[np.ndarray, " M"]
    codes: Int64[np.ndarray, " M"]  # the values numbered from 0
    num_values: int
    cost: int


def learn_rules(graph: StateGraph, canvas: OutputCells) -> list[TableRule]:
    """Return rules that give every cell of every output, and know all that the test input shows; the shortest first."""
    sources = _sources(graph, canvas)
    if not sources:
        return []
    size = len(canvas.target)
    demonstrated, asked, target = _different_cells(sources, canvas)
    own = sources[0]
    pairs = combinations(sources, 2)
    triples = combinations([one for one in sources[1:] if one.num_values <= _FEW], 2)
    found: list[tuple[int, tuple[_Source, ...], np.ndarray]] = []
    for chosen in chain(((one,) for one in sources), pairs, ((own, *pair) for pair in triples)):
        if len(chosen) > 2 and len(found) >= _KEPT:
            break
        count = math.prod(one.num_values for one in chosen)
        if count > _LARGEST_TABLE or count < 2:
            continue
        seen = np.zeros(count * 10, np.bool_)
        seen[_codes(chosen, demonstrated) * 10 + target] = True
        colors = seen.reshape(count, 10).sum(1)
        if colors.max() > 1 or not colors[_codes(chosen, asked)].all():
            continue
        cost = sum(one.cost for one in chosen) + 2 * (len(chosen) - 1) + int(colors.sum()) // _KEYS_OF_ONE_COST
        found.append((cost, chosen, seen.reshape(count, 10).argmax(1).astype(np.uint8)[_codes(chosen, slice(None))]))
    rules: dict[bytes, TableRule] = {}
    for cost, chosen, cells in sorted(found, key=lambda one: one[0]):
        answer = cells[size:]
        if answer.tobytes() not in rules and len(rules) < _KEPT:
            keys, first = np.unique(np.stack([one.values for one in chosen], 1), axis=0, return_index=True)
            table = tuple((tuple(key), int(cells[at])) for key, at in zip(keys.tolist(), first, strict=True))
            shaped = answer.reshape(canvas.sizes[-1])
            rules[answer.tobytes()] = TableRule(tuple(one.words for one in chosen), table, cost, shaped)
    return list(rules.values())


def _codes(chosen: tuple[_Source, ...], cells: np.ndarray | slice) -> Int64[np.ndarray, " M"]:
    """Number the values of some sources together: with counts 3 and 4, the values 2 and 1 are number 9."""
    codes = chosen[0].codes[cells]
    for one in chosen[1:]:
        codes = codes * one.num_values + one.codes[cells]
    return codes


def _different_cells(sources: list[_Source], canvas: OutputCells) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose cells that differ in a source or in their color: a rule that is right on these is right on all.

    Returns:
        Cells of the demonstrations, cells of the test input, and the colors of the former.
    """
    size = len(canvas.target)
    values = np.stack([one.codes for one in sources], 1).astype(np.uint8)
    demonstrated = np.concatenate([values[:size], canvas.target[:, None]], 1)
    _, first = np.unique(hash_bytes(demonstrated), return_index=True)
    _, asked = np.unique(hash_bytes(values[size:]), return_index=True)
    return first, size + asked, canvas.target[first].astype(np.int64)


def _sources(graph: StateGraph, canvas: OutputCells) -> list[_Source]:
    """Return the images that a rule may look at, each different one once; the input comes first if it has the size."""
    states, numbers, costs = graph.images
    cheap = np.flatnonzero(costs <= _STATE_COST)
    cheap = cheap[np.argsort(costs[cheap], kind="stable")]
    cheap = cheap[canvas.is_exact(graph.table, numbers[cheap])][:_STATES]
    found: dict[bytes, _Source] = {}
    drawn = canvas.draw(graph.table, numbers[cheap])
    for index, cells in zip(cheap, drawn, strict=True):
        _add(found, graph.program(int(states[index])), cells, int(costs[index]))
    for index in cheap[:1]:  # the input, if it has the size, or else the cheapest state that has it
        base = graph.program(int(states[index]))
        for name in FEATURES:
            word = Word("cell_feature", (name,))
            values = graph.machine.apply(word, numbers[index][None, :, None])[:, :, 0]
            _add(found, (*base, word), canvas.draw(graph.table, values)[0], int(costs[index]) + word.cost)
    return list(found.values())


def _add(found: dict[bytes, _Source], words: tuple[Word, ...], cells: np.ndarray, cost: int) -> None:
    values, codes = np.unique(cells, return_inverse=True)
    key = codes.astype(np.uint8).tobytes()
    if key not in found:
        found[key] = _Source(words, cells.copy(), codes.astype(np.int64), len(values), cost)
