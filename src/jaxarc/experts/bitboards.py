"""Sets of cells of a small grid as Python integers, one bit a cell: a flood of hundreds of steps takes microseconds.

A row has one bit more than the grid has columns, which is never set: so a shift by one does not run into the next row.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Int8


def pack_cells(cells: Bool[np.ndarray, "h w"]) -> int:
    """Turn cells into bits: row ``r``, column ``c`` is bit ``r * (w + 1) + c``."""
    height, width = cells.shape
    padded = np.zeros((height, width + 1), np.bool_)
    padded[:, :width] = cells
    return int.from_bytes(np.packbits(padded, bitorder="little").tobytes(), "little")


def unpack_cells(bits: int, shape: tuple[int, int]) -> Bool[np.ndarray, "h w"]:
    """Turn bits into cells again."""
    height, width = shape
    count = height * (width + 1)
    stored = np.frombuffer(bits.to_bytes(-(-count // 8), "little"), np.uint8)
    return np.unpackbits(stored, bitorder="little")[:count].reshape(height, width + 1)[:, :width].astype(np.bool_)


def spread(bits: int, among: int, width: int) -> int:
    """Grow to all cells of ``among`` that are connected, by sides, with the given ones.

    Args:
        bits: where to begin; a part of ``among``.
        among: what may be grown into.
        width: columns of the grid.
    """
    row = width + 1
    while True:
        grown = (bits | bits << 1 | bits >> 1 | bits << row | bits >> row) & among
        if grown == bits:
            return bits
        bits = grown


def components(bits: int, width: int) -> Iterator[int]:
    """Yield the parts that are connected by sides, in the order of their first cells."""
    while bits:
        part = spread(bits & -bits, bits, width)
        yield part
        bits ^= part


def first_cell(bits: int, width: int) -> tuple[int, int]:
    """Row and column of the first cell of a set that is not empty."""
    return divmod((bits & -bits).bit_length() - 1, width + 1)


def components_among(
    grid: Int8[np.ndarray, "h w"], seeds: Bool[np.ndarray, "h w"]
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the regions of one color that hold any of the seeds, each with the row and column of its first seed."""
    width = grid.shape[1]
    of_color: dict[int, int] = {}
    left = pack_cells(seeds)
    while left:
        row, column = first_cell(left, width)
        color = int(grid[row, column])
        if color not in of_color:
            of_color[color] = pack_cells(grid == color)
        region = spread(left & -left, of_color[color], width)
        yield region, (row, column)
        left &= ~region


def with_neighbors(bits: int, width: int) -> int:
    """Return the cells and all that share a side with them; some of these may be outside the grid."""
    row = width + 1
    return bits | bits << 1 | bits >> 1 | bits << row | bits >> row


def iter_cells(bits: int, width: int) -> Iterator[tuple[int, int]]:
    """Yield row and column of each cell, row by row."""
    while bits:
        yield first_cell(bits, width)
        bits &= bits - 1
