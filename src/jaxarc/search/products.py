"""Outer products of two pieces: a copy of the fine one stands at each cell of the coarse one that is not 0.

``1 0`` by ``2 3`` is ``2 3 0 0``, and ``1 4`` by the shape of ``0 3`` is ``0 1 0 4``.
"""

import time
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Int64, UInt8

from jaxarc.search.graph import StateGraph
from jaxarc.search.pieces import OutputCells

_COST: Final = 2  # of a product, beside its pieces


class Product(NamedTuple):
    """Two states whose product equals all outputs."""

    coarse: int
    fine: int
    has_coarse_colors: bool  # else a copy has the colors of the fine state
    cost: int
    answer: UInt8[np.ndarray, "h w"]


def find_products(graph: StateGraph, canvas: OutputCells, deadline: float) -> list[Product]:
    """Return the cheapest product for each way to divide the outputs into blocks.

    The outputs say what the coarse and the fine state must be, so that no pairs of states are tried. After the
    deadline, of ``time.monotonic``, no other way is looked at.
    """
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
        blocks = [_blocks(output, size) for output, size in zip(canvas.outputs, _pairs(row), strict=False)]
        for has_coarse_colors in (False, True):
            parts = [_factors(one, has_coarse_colors) for one in blocks]
            factors = [part for part in parts if part is not None]
            if len(factors) < len(parts):
                continue
            places = []
            for side, size, is_shape in ((0, row, not has_coarse_colors), (1, other, has_coarse_colors)):
                part = OutputCells([factor[side] for factor in factors], _pairs(size)[-1])
                candidates = by_size[size]
                cells = part.draw(graph, numbers[candidates])
                shown = cells[:, : len(part.target)]
                fits = ((shown != 0 if is_shape else shown) == part.target).all(1)
                fitting = candidates[fits]
                if len(fitting):  # the cheapest state that is this factor in all demonstrations
                    best = costs[fitting].argmin()
                    places.append((fitting[best], cells[fits][best][part.slices[-1]].reshape(part.sizes[-1])))
            if len(places) == 2:
                (coarse, over), (fine, under) = places
                answer = multiplied(over, under, has_coarse_colors)
                cost = int(costs[coarse] + costs[fine]) + _COST
                found.append(Product(int(states[coarse]), int(states[fine]), has_coarse_colors, cost, answer))
    return found


def multiplied(coarse: np.ndarray, fine: np.ndarray, has_coarse_colors: bool) -> UInt8[np.ndarray, "h w"]:
    """Return the product of two grids."""
    factors = (coarse, fine != 0) if has_coarse_colors else (coarse != 0, fine)
    return np.kron(*factors).astype(np.uint8)


def _pairs(row: tuple[int, ...]) -> list[tuple[int, int]]:
    return list(zip(row[::2], row[1::2], strict=True))


def _blocks(output: np.ndarray, size: tuple[int, int]) -> UInt8[np.ndarray, "H W h w"]:
    """Divide an output into as many blocks as a coarse image has cells."""
    height, width = (side // part for side, part in zip(output.shape, size, strict=True))
    return output.reshape(size[0], height, size[1], width).transpose(0, 2, 1, 3)


def _factors(
    blocks: UInt8[np.ndarray, "H W h w"], has_coarse_colors: bool
) -> tuple[Int64[np.ndarray, "H W"], Int64[np.ndarray, "h w"]] | None:
    """Return the coarse and the fine grid whose product has these blocks; None if there are none."""
    # A block is empty where the coarse grid is 0, and all others are one fine grid, up to a color for each block.
    coarse = np.asarray(blocks.max((2, 3)), np.int64)
    if not coarse.any():
        return None
    fine = np.asarray(blocks[coarse != 0][0], np.int64)
    coarse, fine = (coarse, np.sign(fine)) if has_coarse_colors else (np.sign(coarse), fine)
    height, width = coarse.shape
    is_product = np.array_equal(_blocks(multiplied(coarse, fine, has_coarse_colors), (height, width)), blocks)
    return (coarse, fine) if is_product else None
