"""Sets of cells of a small grid as Python integers, one bit per cell: a flood of hundreds of steps takes microseconds.

Row ``r``, column ``c`` of a grid with ``w`` columns is bit ``r * (w + 1) + c``. Each row has one bit more than the grid
has columns, which is never set, so a shift by one cannot reach the next row. A grid of 2x3 has these bits:

    bit  0 1 2 (3)        cells  . x .       integer  1 << 1 | 1 << 4 | 1 << 5 = 50
         4 5 6 (7)               x x .

A shift by 1 moves all cells right, by ``w + 1`` moves them down; ``&`` with the cells that exist drops the spare bits.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Bool, Int8


def pack_cells(cells: Bool[np.ndarray, "h w"]) -> int:
    """Turn cells into bits."""
    height, width = cells.shape
    # Bit 0 is the first cell of the padded rows. The 2x3 cells . x . / x x . are padded to . x . . / x x . . and set
    # the bits 1, 4 and 5: 50.
    padded = np.zeros((height, width + 1), np.bool_)
    padded[:, :width] = cells
    return int.from_bytes(np.packbits(padded, bitorder="little").tobytes(), "little")


def unpack_cells(bits: int, shape: tuple[int, int]) -> Bool[np.ndarray, "h w"]:
    """Turn bits into cells."""
    height, width = shape
    count = height * (width + 1)
    # 8 bits of 2x3 with its spare column are one byte; the last byte of other sizes has a few bits too many.
    stored = np.frombuffer(bits.to_bytes(-(-count // 8), "little"), np.uint8)
    return np.unpackbits(stored, bitorder="little")[:count].reshape(height, width + 1)[:, :width].astype(np.bool_)


def spread(bits: int, among: int, width: int) -> int:
    """Grow a set to all cells of ``among`` that are connected to it by sides.

    Each step adds the neighbors of all cells at once, so a flood takes as many steps as its longest path has cells.

    Args:
        bits: the set to grow; a part of ``among``.
        among: the cells that it may grow into.
        width: columns of the grid.
    """
    row = width + 1
    # In one row of four cells, from the first: 0001, 0011, 0111, 1111. What a shift takes to a spare bit, above the
    # first row or below the last one, is not in `among` and drops out.
    while True:
        grown = (bits | bits << 1 | bits >> 1 | bits << row | bits >> row) & among
        if grown == bits:
            return bits
        bits = grown


def components(bits: int, width: int) -> Iterator[int]:
    """Yield the connected parts of a set, in the order of their first cells."""
    while bits:
        lowest = bits & -bits  # of 0b0110 the bit 0b0010
        part = spread(lowest, bits, width)
        yield part
        # The part is a subset, so the exclusive or removes it: 11011 without 00011 is 11000, the next part.
        bits ^= part


def first_cell(bits: int, width: int) -> tuple[int, int]:
    """Return row and column of the first cell of a set that is not empty."""
    # The lowest bit's index, in rows of w + 1 bits: of 1000 it is 3, and with 2 columns divmod(3, 3) is row 1, column
    # 0.
    return divmod((bits & -bits).bit_length() - 1, width + 1)


def components_among(
    grid: Int8[np.ndarray, "h w"], seeds: Bool[np.ndarray, "h w"]
) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the regions of one color that hold any of the seeds, each with the row and column of its first seed."""
    width = grid.shape[1]
    # Each seed that no region holds yet begins a region of its own color. The cells of a color are packed once.
    of_color: dict[int, int] = {}
    remaining = pack_cells(seeds)
    while remaining:
        row, column = first_cell(remaining, width)
        color = int(grid[row, column])
        if color not in of_color:
            of_color[color] = pack_cells(grid == color)
        region = spread(remaining & -remaining, of_color[color], width)
        yield region, (row, column)
        remaining &= ~region


def with_neighbors(bits: int, width: int) -> int:
    """Return the cells and their neighbors by sides; some of these may be outside the grid."""
    row = width + 1
    return bits | bits << 1 | bits >> 1 | bits << row | bits >> row


def iter_cells(bits: int, width: int) -> Iterator[tuple[int, int]]:
    """Yield row and column of each cell, row by row."""
    while bits:
        yield first_cell(bits, width)
        bits &= bits - 1  # removes the lowest bit
