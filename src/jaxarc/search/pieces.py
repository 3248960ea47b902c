"""Pieces of answers, and how they are stacked until they equal the outputs, or multiplied.

A piece is a state of the search on the cells of the outputs. The library finds and stacks them.
"""

import re
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, islice
from typing import Any, Final

import numpy as np
from jaxtyping import Int64, UInt8

from jaxarc.search.graph import OutputCells
from jaxarc.search.interpreter import State
from jaxarc.search.limits import LIMITS
from jaxarc.search.program_layers import (
    UNFORESEEN_COST,
    Candidate,
    Chain,
    Layer,
    ProgramError,
    on_canvas,
    placed,
    read_chain,
    run,
    text_of,
)
from jaxarc.search.search_library import call

_SOLID: Final = "solid "
_PLACED: Final = "placed "
_BY: Final = " by "
_SHAPE: Final = "shape of "
_COLOR_PLACE: Final = 256
_STACK_NUMBERS: Final = 32  # of a stack, in search.cc
_NEAREST: Final = 2  # single pieces that are candidates whatever they explain
_PRODUCT_COST: Final = 2  # beside its pieces


@dataclass(frozen=True)
class ImageLayer(Layer):
    """An image that words make of the input, or a plain color."""

    words: Chain
    color: int = -1  # of a plain layer; -1: words make it
    is_solid: bool = False
    is_placed: bool = False  # stands at its position also where it has the size of the answer; else as it is there

    def __str__(self) -> str:
        text = f"color {self.color}" if self.color >= 0 else text_of(self.words)
        return _SOLID * self.is_solid + _PLACED * self.is_placed + text

    @classmethod
    def parse(cls, text: str) -> "ImageLayer":
        text = text.strip()
        is_solid = text.startswith(_SOLID)
        text = text.removeprefix(_SOLID).strip()
        if text.startswith("color "):
            color = re.fullmatch(r"color +([0-9])", text)
            if color is None:
                raise ProgramError(f"{text!r:.200} is no plain layer; write a color from 0 to 9, such as color 3")
            return cls((), int(color[1]), is_solid)
        return cls(read_chain(text.removeprefix(_PLACED)), -1, is_solid, text.startswith(_PLACED))

    @property
    def chains(self) -> list[Chain]:
        return [self.words]

    def draw(self, start: State, size: tuple[int, int]) -> UInt8[np.ndarray, "h w"]:
        if self.color >= 0:
            return np.full(size, self.color, np.uint8)
        return placed(run(start, self.words), *size, is_moved=self.is_placed)

    def in_words(self) -> str:
        where = "On all cells" if self.is_solid else "On the cells that are not 0"
        if self.color >= 0:
            return f"{where} the color {self.color}."
        steps = ". ".join(word.in_words for word in self.words) or "the input"
        return f"{where}: {steps}{', at its place' * self.is_placed}."


def find_stacks(canvas: OutputCells, deadline: float, explains_some: bool = False) -> list[Candidate]:
    """Return pieces upon one another: those that equal all outputs alone, greedy stacks, and the nearest single ones.

    After the deadline, of ``time.monotonic``, no other stack is begun.

    Args:
        canvas: the states, and the outputs.
        deadline: see above.
        explains_some: whether stacks that explain only some demonstrations are looked for where none explains all.
    """
    pieces = _Pieces(canvas)
    if time.monotonic() > deadline:
        return pieces.nearest()
    places = range(len(canvas.outputs))
    found = pieces.exact() + pieces.stacks(places, LIMITS.starts, deadline)
    if explains_some and not any(all(one.fits) for one in found):
        some = chain.from_iterable(combinations(places, size) for size in range(len(places) - 1, 0, -1))
        for chosen in islice(some, LIMITS.sets_of_some):
            if time.monotonic() > deadline:
                break
            found += pieces.stacks(chosen, LIMITS.starts_of_some, deadline)
    return found + pieces.nearest()


def find_last_stacks(canvas: OutputCells, deadline: float) -> list[Candidate]:
    """Return what :func:`find_stacks` does, and stacks for some of the demonstrations if none explains all."""
    return find_stacks(canvas, deadline, explains_some=True)


class _Pieces:
    """All pieces for one canvas: the states of its graph, and the plain colors of the outputs."""

    def __init__(self, canvas: OutputCells) -> None:
        self._canvas = canvas
        sizes = np.array(canvas.sizes, np.int32)
        given = (len(sizes), sizes, len(canvas.target), canvas.target)
        self._pieces = call("new_pieces", canvas.graph.address, *given)
        weakref.finalize(self, call, "delete_pieces", self._pieces)

    def exact(self) -> list[Candidate]:
        """Return the cheapest single pieces that equal all outputs."""
        return self._made("exact_pieces", LIMITS.exact_pieces)

    def stacks(self, places: Sequence[int], num_starts: int, deadline: float) -> list[Candidate]:
        """Stack pieces greedily on the cells of some demonstrations, from several first pieces.

        On top is a piece without a wrong cell; below it a piece may be wrong where it is covered. The next piece is the
        one that adds most right cells, of equals the cheapest. Where none is left, the one that is right most often is
        the last.
        """
        shown = np.zeros(len(self._canvas.outputs), np.bool_)
        shown[list(places)] = True
        return self._made("stacks", num_starts, shown, LIMITS.layers, deadline - time.monotonic())

    def nearest(self) -> list[Candidate]:
        """Return the single pieces that color most cells right."""
        return self._made("nearest_pieces", _NEAREST)

    def _made(self, name: str, most: int, *given: Any) -> list[Candidate]:
        numbers = np.empty((most, _STACK_NUMBERS), np.int64)
        cells = np.empty((most, self._canvas.num_cells), np.uint8)
        count = call(name, self._pieces, most, numbers, cells, *given)
        return [self._candidate(*row, cells=own) for row, own in zip(numbers[:count].tolist(), cells, strict=False)]

    def _candidate(self, cost: int, unforeseen: int, num_layers: int, *numbers: int, cells: np.ndarray) -> Candidate:
        layers = []
        for place in range(0, 3 * num_layers, 3):
            state, is_solid, is_placed = numbers[place : place + 3]
            words, color = ((), state + _COLOR_PLACE) if state < 0 else (self._canvas.graph.program(state), -1)
            layers.append(ImageLayer(words, color, bool(is_solid), bool(is_placed)))
        return self._canvas.candidate(tuple(layers), cost + UNFORESEEN_COST * unforeseen, cells)


@dataclass(frozen=True)
class ProductLayer(Layer):
    """The outer product of two images: a copy of the fine one stands at each cell of the coarse one that is not 0.

    ``1 0`` by ``2 3`` is ``2 3 0 0``, and ``1 4`` by the shape of ``0 3`` is ``0 1 0 4``. The copies have the colors of
    ``input`` in ``product input by shape of keep_color(2)``.
    """

    coarse: Chain
    fine: Chain
    has_coarse_colors: bool
    name = "product"

    def __str__(self) -> str:
        return f"{self.name} {text_of(self.coarse)}{_BY}{_SHAPE * self.has_coarse_colors}{text_of(self.fine)}"

    @classmethod
    def parse(cls, text: str) -> "ProductLayer":
        coarse, by, fine = text.strip().removeprefix(cls.name).partition(_BY)
        if not by:
            raise ProgramError(f"{text.strip()!r} is no product; write product input by crop")
        return cls(read_chain(coarse), read_chain(fine.removeprefix(_SHAPE)), fine.startswith(_SHAPE))

    @property
    def chains(self) -> list[Chain]:
        return [self.coarse, self.fine]

    def draw(self, start: State, size: tuple[int, int]) -> UInt8[np.ndarray, "h w"]:
        coarse, fine = (run(start, words).grid(0) for words in self.chains)
        return on_canvas(_multiplied(coarse, fine, self.has_coarse_colors), 0, 0, *size)

    def in_words(self) -> str:
        copy = "the shape of " * self.has_coarse_colors + text_of(self.fine)
        return f"At each cell of {text_of(self.coarse)} that is not 0 a copy of: {copy}."


def find_products(canvas: OutputCells, deadline: float) -> list[Candidate]:
    """Return the cheapest product for each way to divide the outputs into blocks.

    The outputs say what the coarse and the fine state must be, so that no pairs of states are tried. After the
    deadline, of ``time.monotonic``, no other way is looked at.
    """
    graph = canvas.graph
    states, numbers, costs = graph.image_states
    sizes = np.stack(graph.sizes(numbers), 2)
    whole = np.array(canvas.sizes)
    divides = (whole % sizes == 0).all((1, 2)) & (sizes != whole).any((1, 2)) & (sizes > 1).any((1, 2))
    chosen = np.flatnonzero(divides)
    if not len(chosen):
        return []
    # States by the sizes of all their images. The coarse state of a product has one row of sizes, the fine one the
    # quotient: an output of 6x6 may be 2x2 blocks of 3x3 cells, or 3x3 blocks of 2x2 cells.
    kinds, kind = np.unique(sizes[chosen].reshape(len(chosen), -1), axis=0, return_inverse=True)
    by_size = {tuple(row): chosen[kind == index] for index, row in enumerate(kinds.tolist())}
    found = []
    for row in by_size:
        other = tuple((whole.ravel() // np.array(row)).tolist())
        if other not in by_size:
            continue
        if time.monotonic() > deadline:
            break
        for has_coarse_colors in (False, True):
            factors = list(_all_factors(canvas.outputs, row, has_coarse_colors))
            if len(factors) < len(canvas.outputs):
                continue
            places = []
            for side, size, is_shape in ((0, row, not has_coarse_colors), (1, other, has_coarse_colors)):
                part = OutputCells(graph, [factor[side] for factor in factors], size[-2:])
                candidates = by_size[size]
                cells = part.draw(numbers[candidates])
                shown = cells[:, : len(part.target)]
                fits = ((shown != 0 if is_shape else shown) == part.target).all(1)
                fitting = candidates[fits]
                if len(fitting):  # the cheapest state that is this factor in all demonstrations
                    best = costs[fitting].argmin()
                    places.append((fitting[best], cells[fits][best][part.slices[-1]].reshape(part.sizes[-1])))
            if len(places) == 2:
                (coarse, over), (fine, under) = places
                words = (graph.program(int(states[one])) for one in (coarse, fine))
                layer = ProductLayer(*words, has_coarse_colors=has_coarse_colors)
                cost = int(costs[coarse] + costs[fine]) + _PRODUCT_COST
                answer = _multiplied(over, under, has_coarse_colors)
                found.append(Candidate(answer, (layer,), cost, (True,) * len(factors), 1.0))
    return found


def _multiplied(coarse: np.ndarray, fine: np.ndarray, has_coarse_colors: bool) -> UInt8[np.ndarray, "h w"]:
    over, under = (coarse, fine != 0) if has_coarse_colors else (coarse != 0, fine)
    product = over[:, None, :, None] * under[:, None]  # as numpy.kron does, which takes ten times as long
    return product.reshape(len(over) * len(under), -1).astype(np.uint8)


def _all_factors(
    outputs: Sequence[np.ndarray], sizes: tuple[int, ...], has_coarse_colors: bool
) -> Iterator[tuple[Int64[np.ndarray, "H W"], Int64[np.ndarray, "h w"]]]:
    """Yield the coarse and the fine grid whose product is each output, up to one that is none."""
    for place, output in enumerate(outputs):
        height, width = sizes[2 * place : 2 * place + 2]
        blocks = output.reshape(height, output.shape[0] // height, width, -1).transpose(0, 2, 1, 3)
        # A block is empty where the coarse grid is 0, and all others are one fine grid, up to a color for each block.
        coarse = np.asarray(blocks.max((2, 3)), np.int64)
        if not coarse.any():
            return
        fine = np.asarray(blocks[coarse != 0][0], np.int64)
        coarse, fine = (coarse, np.sign(fine)) if has_coarse_colors else (np.sign(coarse), fine)
        if not np.array_equal(_multiplied(coarse, fine, has_coarse_colors), output):
            return
        yield coarse, fine
