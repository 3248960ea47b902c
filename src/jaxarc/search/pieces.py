"""Pieces of answers, and how they are stacked until they equal the outputs.

A piece is a state of the search on the cells of the outputs. All cells of all demonstrations stand in one row of bits;
of each piece two rows are kept: the cells that it colors right, and those that it colors wrong.
"""

import time
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Int64, UInt8, UInt64

from jaxarc.search.graph import StateGraph
from jaxarc.search.search_library import call

NO_STATE: Final = -1
UNFORESEEN_COST: Final = 10
"""What a program costs more for each demonstration that it would not explain if that were left out."""
_WORD_BITS: Final = 64
_COLOR_PLACE: Final = 256


class Layer(NamedTuple):
    """A piece of a stack: a state, or a plain color; a solid one covers all cells, another those that are not 0."""

    state: int  # NO_STATE for a plain color
    color: int
    is_solid: bool
    is_placed: bool = False  # whether an image that has the size of its output stands at its position all the same


@dataclass(frozen=True)
class Stack:
    """Layers from top to bottom, with how well they explain the demonstrations."""

    layers: tuple[Layer, ...]
    cost: int
    fits: tuple[bool, ...]  # whether each demonstration comes out exactly
    share: float  # of the cells of all outputs that come out right
    answer: UInt8[np.ndarray, "h w"]


class OutputCells:
    """The cells of all outputs in one row: those of the demonstrations, then those of the guessed answer."""

    def __init__(self, outputs: list[np.ndarray], answer_size: tuple[int, int]) -> None:
        self.sizes = [*(output.shape for output in outputs), answer_size]
        self.outputs = outputs
        self.target = np.concatenate([output.ravel() for output in outputs]).astype(np.uint8)
        counts = np.array([height * width for height, width in self.sizes])
        ends = np.cumsum(counts)
        self.slices = [slice(end - count, end) for end, count in zip(ends.tolist(), counts.tolist(), strict=True)]
        self.num_cells = int(ends[-1])

    def draw(self, graph: StateGraph, numbers: Int64[np.ndarray, "S P"]) -> UInt8[np.ndarray, "S M"]:
        """Return the cells of states: of an image of the size of the output as it is, of others at their position."""
        return graph.draw(numbers, self.sizes, self.num_cells)

    def stack(self, layers: tuple[Layer, ...], cost: int, cells: UInt8[np.ndarray, " M"]) -> Stack:
        """Compare the cells of a stack with the outputs."""
        right = cells[: len(self.target)] == self.target
        fits = tuple(bool(right[pair].all()) for pair in self.slices[:-1])
        answer = cells[self.slices[-1]].reshape(self.sizes[-1])
        return Stack(layers, cost, fits, float(right.mean()), answer)

    def is_exact(self, graph: StateGraph, numbers: Int64[np.ndarray, "S P"]) -> Bool[np.ndarray, " S"]:
        """Whether each image of a state has the size of its output."""
        height, width = np.array(self.sizes).T
        heights, widths = graph.sizes(numbers)
        return ((heights == height) & (widths == width)).all(1)

    def is_placed(self, graph: StateGraph, numbers: Int64[np.ndarray, " P"]) -> bool:
        """Whether :meth:`draw` puts an image of a state at its position that a program would take as it is."""
        images = graph.images(numbers)
        height, width = np.array(self.sizes).T
        has_size = (images.height == height) & (images.width == width)
        is_moved = (images.row != 0) | (images.column != 0)
        return bool(not has_size.all() and (has_size & is_moved).any())


class Pieces:
    """All pieces for one canvas, as bits, the cheapest first.

    Args:
        graph: the states.
        canvas: the outputs and the size of the answer.
        colors: of the outputs; each gives a plain piece.
    """

    def __init__(self, graph: StateGraph, canvas: OutputCells, colors: list[int]) -> None:
        self.canvas = canvas
        self._graph = graph
        states, numbers, costs = graph.image_states
        order = np.argsort(costs, kind="stable")
        self._states, self._numbers, costs = states[order], numbers[order], costs[order]
        self._cells: dict[int, np.ndarray] = {}  # of the states that stand in a stack
        right, solid, place = graph.pieces(self._numbers, canvas.sizes, colors, canvas.target)
        color = np.where(place < 0, place + _COLOR_PLACE, -1)
        cost = np.where(place < 0, 0, costs[np.maximum(place, 0)])
        good, bad = _laid_out(right, solid, packed(np.ones((1, len(canvas.target)), np.bool_))[0])
        # One word shows most pieces to be wrong; the word that shows most of them comes first.
        self._order = np.argsort(-np.count_nonzero(bad, axis=1), kind="stable")
        self.good, self.bad = good[self._order], bad[self._order]
        self.place = np.tile(place, 2)
        self.color = np.tile(color, 2)
        self.cost = np.tile(cost, 2)
        self.is_solid = np.repeat([False, True], len(place))
        self.pairs = [self._mask_of(pair) for pair in canvas.slices[:-1]]
        self._counts = np.bitwise_count(self.good).sum(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.cost)

    def exact(self) -> Int64[np.ndarray, " K"]:
        """Return the pieces that equal all outputs alone, the cheapest first."""
        found = np.flatnonzero(self.is_solid & ~self.bad.any(0))
        return found[np.argsort(self.cost[found], kind="stable")]

    def stacks(
        self, needed: UInt64[np.ndarray, " W"], num_starts: int, max_layers: int, deadline: float
    ) -> list[Stack]:
        """Stack pieces greedily on the needed cells, from several first pieces.

        On top is a piece without a wrong cell; below it a piece may be wrong where it is covered. The next piece is the
        one that adds most right cells, of equals the cheapest. Where none is left, the one that is right most often is
        the last.
        """
        gains = self._gains(needed)
        starts = np.lexsort((self.cost, -gains))[:num_starts]
        found: list[Stack] = []
        seen: set[bytes] = set()
        for start in starts[gains[starts] > 0]:
            if found and time.monotonic() > deadline:
                break
            key = (needed & ~self.good[:, start]).tobytes()
            if key in seen:  # another first piece left the same cells open, so the rest of the stack would be the same
                continue
            seen.add(key)
            chosen = self._grown(needed, int(start), max_layers)
            found.append(self.stack(chosen))
        return found

    def nearest(self, count: int) -> list[Stack]:
        """Return the single pieces that color most cells right."""
        order = np.lexsort((self.cost, -self._counts, ~self.is_solid))[:count]
        return [self.stack([int(one)]) for one in order]

    def stack(self, chosen: list[int]) -> Stack:
        """Put pieces upon one another, the first on top, and compare them with the outputs."""
        cells = np.zeros(self.canvas.num_cells, np.uint8)
        open_cells = np.ones(self.canvas.num_cells, np.bool_)
        layers = []
        owners = []  # of the layers that cells of one demonstration need alone
        for piece in chosen:
            place = int(self.place[piece])
            drawn = np.full(self.canvas.num_cells, self.color[piece], np.uint8) if place < 0 else self._drawn(place)
            is_solid = bool(self.is_solid[piece])
            covers = open_cells & (is_solid | (drawn != 0))
            cells[covers] = drawn[covers]
            open_cells &= ~covers
            shown = [bool(covers[pair].any()) for pair in self.canvas.slices[:-1]]
            owners += [shown.index(True)] if sum(shown) == 1 < len(shown) else []
            state = NO_STATE if place < 0 else int(self._states[place])
            is_placed = place >= 0 and self.canvas.is_placed(self._graph, self._numbers[place])
            layers.append(Layer(state, int(self.color[piece]), is_solid, is_placed))
        cost = int(self.cost[chosen].sum()) + 2 * (len(chosen) - 1) + UNFORESEEN_COST * len(set(owners))
        return self.canvas.stack(tuple(layers), cost, cells)

    def _drawn(self, place: int) -> UInt8[np.ndarray, " M"]:
        if place not in self._cells:
            self._cells[place] = self.canvas.draw(self._graph, self._numbers[place : place + 1])[0]
        return self._cells[place]

    def _grown(self, needed: UInt64[np.ndarray, " W"], start: int, max_layers: int) -> list[int]:
        """Return the pieces of the stack that grows from a first one."""
        found = np.empty(max_layers + 1, np.int64)
        given = (len(self), len(needed), self.good, self.bad, self.cost, needed, start, max_layers)
        return found[: call("stack", *given, found)].tolist()

    def _gains(self, still_open: UInt64[np.ndarray, " W"]) -> Int64[np.ndarray, " K"]:
        """Return how many open cells each piece colors right; 0 of a piece that colors one wrong."""
        gains = np.empty(len(self), np.int64)
        call("gains", len(self), len(still_open), self.good, self.bad, still_open, gains)
        return gains

    def _mask_of(self, pair: slice) -> UInt64[np.ndarray, " W"]:
        mask = np.zeros((1, len(self.canvas.target)), np.bool_)
        mask[0, pair] = True
        return packed(mask)[0, self._order]


def _laid_out(
    right: UInt64[np.ndarray, "K W"], solid: UInt64[np.ndarray, "K W"], all_cells: UInt64[np.ndarray, " W"]
) -> tuple[UInt64[np.ndarray, "W 2*K"], UInt64[np.ndarray, "W 2*K"]]:
    """Return right and wrong cells of each piece twice: it covers the cells that are not 0, or all cells."""
    count, words = right.shape
    good, bad = np.empty((words, 2 * count), np.uint64), np.empty((words, 2 * count), np.uint64)
    call("lay_out", count, words, right, solid, all_cells, good, bad)
    return good, bad


def packed(mask: Bool[np.ndarray, "S M"]) -> UInt64[np.ndarray, "S W"]:
    """Pack each row into words of 64 bits."""
    found = np.packbits(mask, axis=1, bitorder="little")
    words = np.zeros((len(mask), -(-mask.shape[1] // _WORD_BITS) * 8), np.uint8)
    words[:, : found.shape[1]] = found
    return words.view(np.uint64)
