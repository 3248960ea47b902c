"""The canvas that operations edit, and its cells: flat grids, boxes, columns of bits, and the similarity of two grids.

A flat grid has ``HW = H * W`` cells, row by row: arrays of shape ``[B, H, W]`` are many times slower on XLA's CPU
backend than ``[B, HW]``. Coordinates fit int8, because a side has at most 30 cells.
"""

import functools
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float32, Int, Int8, Int32, UInt8, UInt32

from jaxarc.constants import PADDING
from jaxarc.fusion import compiles_for_cpu, materialize_call
from jaxarc.types import cell_columns, cell_rows

GridShape = tuple[int, int]
HEIGHT, WIDTH, TARGET_HEIGHT, TARGET_WIDTH, CLIPBOARD_HEIGHT, CLIPBOARD_WIDTH = range(6)
SLICES = (4, 9)  # cells are added up in int8, in slices: at most 36 a lane, far from overflow
LONG_ROW = 64  # cells from which on that pays


class Canvas(eqx.Module):
    """The editable part of a state."""

    grid: Int8[Array, "*B HW"]  # colors 0..9, -1 outside the active area
    clipboard: Int8[Array, "*B HW"]  # content at the origin, -1 where nothing is held
    target: Int8[Array, "*B HW"]  # the grid that a submit is compared with
    selection: Int8[Array, "*B 4"] | UInt32[Array, "*B columns"]  # last used: a box's bounds, or columns of bits
    sizes: Int8[Array, "*B 6"]  # height and width of the active area, of the target and of the clipboard's content


class CheckedAction(eqx.Module):
    """An action with values in range, ready to be executed; see :func:`jaxarc.envs.structured_actions.check_action`."""

    operation: Int32[Array, "*B"]  # 0 .. 41, or -1: leave the canvas as it is
    selection: Int32[Array, "*B 4"] | Bool[Array, "*B HW"]  # a box with ordered corners in the canvas, or raw cells
    row: Int32[Array, "*B"]  # row of the pair table that operations 32 and 35..41 load
    colors: Int8[Array, "*B 10"] | None = None  # the new color of each color of a loaded grid; None: they stay


class BoundingBox(NamedTuple):
    """Inclusive bounds of a rectangle per environment; empty when ``bottom < top``."""

    top: Int32[Array, " B"]
    left: Int32[Array, " B"]
    bottom: Int32[Array, " B"]
    right: Int32[Array, " B"]

    @property
    def is_empty(self) -> Bool[Array, " B"]:
        return (self.bottom < self.top) | (self.right < self.left)


def per_cell(value: Int[Array, " B"]) -> Int8[Array, "B 1"]:
    """Shape a small number per environment for comparisons with its cells."""
    return value.astype(jnp.int8)[:, None]


def inside(box: BoundingBox, shape: GridShape) -> Bool[Array, "B HW"]:
    """True for the cells in the box.

    Four comparisons per cell with constants. For the box (top 0, left 1, bottom 1, right 2) of a 3x3 grid::

        0 <= row <= 1    1 <= column <= 2    cells
        1 1 1            0 1 1               0 1 1
        1 1 1            0 1 1               0 1 1
        0 0 0            0 1 1               0 0 0
    """
    # [B, 1] bounds against [1, HW] constants, all int8: 32 cells in a vector register of 256 bits.
    rows = cell_rows(shape)[None]
    columns = cell_columns(shape)[None]
    in_rows = (per_cell(box.top) <= rows) & (per_cell(box.bottom) >= rows)
    return in_rows & (per_cell(box.left) <= columns) & (per_cell(box.right) >= columns)


def active_area(height: Int[Array, " B"], width: Int[Array, " B"], shape: GridShape) -> Bool[Array, "B HW"]:
    """True for the cells of the top-left ``height x width``."""
    return (per_cell(height) > cell_rows(shape)[None]) & (per_cell(width) > cell_columns(shape)[None])


def clip_box(box: BoundingBox, height: Int32[Array, " B"], width: Int32[Array, " B"]) -> BoundingBox:
    """Limit a box to the top-left ``height x width``; it may become empty."""
    zero = jnp.int32(0)
    return BoundingBox(
        jnp.maximum(box.top, zero),
        jnp.maximum(box.left, zero),
        jnp.minimum(box.bottom, height - 1),
        jnp.minimum(box.right, width - 1),
    )


def whole_if_empty(box: BoundingBox, height: Int32[Array, " B"], width: Int32[Array, " B"]) -> BoundingBox:
    """Replace an empty box by the whole active area."""
    is_empty = box.is_empty
    zero = jnp.int32(0)
    return BoundingBox(
        jnp.where(is_empty, zero, box.top),
        jnp.where(is_empty, zero, box.left),
        jnp.where(is_empty, height - 1, box.bottom),
        jnp.where(is_empty, width - 1, box.right),
    )


def pack_box(box: BoundingBox) -> Int8[Array, "B 4"]:
    """Store a box in four bytes; every empty box is stored alike, as (0, 0, -1, -1)."""
    bounds = jnp.stack(box, axis=1).astype(jnp.int8)
    # Clipping leaves empty boxes of many forms, such as top 5 and bottom 2; equal selections must be equal arrays.
    empty = jnp.array([[0, 0, -1, -1]], jnp.int8)
    return jnp.where(box.is_empty[:, None], empty, bounds)


def grid_size(grid: Int8[Array, "... HW"], shape: GridShape) -> tuple[Int8[Array, "..."], Int8[Array, "..."]]:
    """Height and width of the active area, read off the first column and the first row."""
    # Every W-th cell is the first of a row, and the first W cells are the first row: the active area begins at both.
    height = jnp.sum(grid[..., :: shape[1]] > PADDING, axis=-1, dtype=jnp.int8)
    width = jnp.sum(grid[..., : shape[1]] > PADDING, axis=-1, dtype=jnp.int8)
    return height, width


def count_matches(grid: Int8[Array, "... HW"], target: Int8[Array, "... HW"]) -> Int32[Array, "..."]:
    """Count the active cells where grid and target have the same color.

    XLA's CPU backend is many times slower to add up a long row in one go than to add contiguous slices of it. So the
    row is cut into 4 slices that are added, what results into 9, and only the rest is summed. With two slices, of the
    seven matches 1 0 1 1 1 1 1: 1 0 1 + 1 1 1 = 2 1 2, and the last cell is kept: 2 1 2 1, in sum 6.

    Args:
        grid: colors, -1 as padding.
        target: the same of the target.
    """
    if grid.shape[-1] < LONG_ROW or not compiles_for_cpu():
        return jnp.sum(_matches(grid, target), axis=-1, dtype=jnp.int32)
    # For 900 cells: 4 slices of 225 make 225 counts up to 4, 9 slices of 25 make 25 counts up to 36, and 25 are summed.
    first, *others = SLICES
    counts = materialize_call(lambda *grids: _add_slices(_matches(*grids), first), grid, target)
    for slices in others:
        counts = materialize_call(functools.partial(_add_slices, slices=slices), counts, predicate_of=grid)
    return jnp.sum(counts, axis=-1, dtype=jnp.int32)


def count_union(sizes: Int8[Array, "... 4"]) -> Int32[Array, "..."]:
    """Count the cells in the union of two areas anchored at the top left, of (height, width, height, width).

    For areas that overlap as 2x3 and 3x2 do, this is the box around both, 3x3: what neither covers counts as different.
    """
    height, width, target_height, target_width = (sizes[..., i].astype(jnp.int32) for i in range(4))
    return jnp.maximum(height, target_height) * jnp.maximum(width, target_width)


def similarity(matches: Int32[Array, "..."], union: Int32[Array, "..."]) -> Float32[Array, "..."]:
    """Matching cells over cells of the union, in [0, 1]; 1 exactly when grid and target are equal, size included."""
    return matches.astype(jnp.float32) / union.astype(jnp.float32)


def pack_columns(cells: Bool[Array, "... HW"], shape: GridShape) -> UInt32[Array, "... W"]:
    """Put the cells of each column into one 32-bit word, bit ``r`` for row ``r``.

    The rows of a flat grid are contiguous, so packing combines contiguous slices; one word per row would read every
    30th cell, which takes XLA's CPU backend ten times as long. For 3x3, with words in binary::

        0 1 1
        0 1 0    ->  000  011  101
        0 0 1
    """
    height, width = shape
    # Row r of all columns is one slice of W cells, and gives bit r of the W words: as row 2 the cells 0 1 1 add 000 100
    # 100.
    words = cells[..., :width].astype(jnp.uint32)
    for row in range(1, height):
        words = words | (cells[..., row * width : (row + 1) * width].astype(jnp.uint32) << jnp.uint32(row))
    return words


def unpack_columns(words: UInt32[Array, "... W"], shape: GridShape) -> Bool[Array, "... HW"]:
    """Read the cells back from the words of :func:`pack_columns`.

    A cell needs one byte of its column's word, so the bytes are laid out cell by cell first, in a step of their own,
    and then each cell shifts its byte by a constant: lanes of 8 bits instead of 32.
    """
    height, width = shape
    if not compiles_for_cpu():
        # The kernel that reads a cell computes its row and column, and moves the word right by the row. The pieces
        # below would be 30 branches for each cell, because it is not known to XLA which piece a cell is in.
        lead = words.shape[:-1]
        row = lax.broadcasted_iota(jnp.uint32, (*lead, height, width), len(lead))
        return ((words[..., None, :] >> row) & jnp.uint32(1)).astype(jnp.bool_).reshape(*lead, height * width)

    def spread(*parts: UInt8[Array, "... W"]) -> UInt8[Array, "... HW"]:
        return jnp.concatenate([parts[row // 8] for row in range(height)], axis=-1)

    # The words are cut into bytes of 8 rows each, [..., W]; the cells of rows 0..7 take the first, 8..15 the second.
    # Then cell (r, c) is bit r % 8 of its byte: for 3x3 the shifts are 0 0 0 1 1 1 2 2 2.
    byte_of_cell = materialize_call(spread, *_bytes_of_words(words, height))
    bit_of_cell = np.repeat(np.arange(height, dtype=np.uint8) % 8, width)
    bit_of_cell = bit_of_cell.reshape((1,) * (byte_of_cell.ndim - 1) + (-1,))
    return ((byte_of_cell >> bit_of_cell) & jnp.uint8(1)).astype(jnp.bool_)


def num_bytes(shape: GridShape) -> int:
    """Bytes that hold the cells of a grid."""
    # Whole bytes for each column: 30 rows take 4, so a canvas of 30x30 takes 120.
    return -(-shape[0] // 8) * shape[1]


def to_bytes(words: UInt32[Array, "... W"], shape: GridShape) -> UInt8[Array, "... bytes"]:
    """Store words in no more bytes than the grid has rows for."""
    return jnp.concatenate(_bytes_of_words(words, shape[0]), axis=-1)


def from_bytes(stored: UInt8[Array, "... bytes"], shape: GridShape) -> UInt32[Array, "... W"]:
    """Turn stored bytes into words again."""
    words = jnp.zeros((*stored.shape[:-1], shape[1]), jnp.uint32)
    # Byte i of every column is stored side by side, and holds the rows 8 i .. 8 i + 7.
    for i in range(num_bytes(shape) // shape[1]):
        part = stored[..., i * shape[1] : (i + 1) * shape[1]].astype(jnp.uint32)
        words = words | (part << jnp.uint32(8 * i))
    return words


def _bytes_of_words(words: UInt32[Array, "... W"], height: int) -> list[UInt8[Array, "... W"]]:
    return [(words >> jnp.uint32(8 * i)).astype(jnp.uint8) for i in range(-(-height // 8))]


def _matches(grid: Int8[Array, "... HW"], target: Int8[Array, "... HW"]) -> Int8[Array, "... HW"]:
    return ((grid == target) & (target > PADDING)).astype(jnp.int8)


def _add_slices(counts: Int8[Array, "... N"], slices: int) -> Int8[Array, "... M"]:
    """Add so many slices of equal length, and keep the remaining entries."""
    # Five entries 1 2 3 4 5 in two slices of 2: 1 2 + 3 4 = 4 6, and the remaining 5 is kept: 4 6 5.
    length = counts.shape[-1] // slices
    total, *rest = (counts[..., i * length : (i + 1) * length] for i in range(slices))
    for part in rest:
        total = total + part
    remaining = counts[..., slices * length :]
    return jnp.concatenate([total, remaining], axis=-1) if remaining.shape[-1] else total
