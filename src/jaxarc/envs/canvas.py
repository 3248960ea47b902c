"""The canvas that operations edit, and its cells: flat grids, boxes, and columns of bits."""

import functools
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Int8, Int32, UInt8, UInt32

from jaxarc.constants import PADDING
from jaxarc.envs.operations.compaction import Stage, call
from jaxarc.tasks.buffer import LocalRows, RowLoader

GridShape = tuple[int, int]


class BoundingBox(NamedTuple):
    """Inclusive bounds of a rectangle per environment; empty when ``bottom < top``."""

    top: Int32[Array, " B"]
    left: Int32[Array, " B"]
    bottom: Int32[Array, " B"]
    right: Int32[Array, " B"]

    @property
    def is_empty(self) -> Bool[Array, " B"]:
        return (self.bottom < self.top) | (self.right < self.left)


@functools.cache
def cell_rows(shape: GridShape) -> Any:
    """Row of each cell of a flat grid, int8[HW], a NumPy constant."""
    return np.repeat(np.arange(shape[0]), shape[1]).astype(np.int8)


@functools.cache
def cell_columns(shape: GridShape) -> Any:
    """Column of each cell of a flat grid, int8[HW], a NumPy constant."""
    return np.tile(np.arange(shape[1]), shape[0]).astype(np.int8)


def per_cell(value: Int[Array, " B"]) -> Int8[Array, "B 1"]:
    """Make a small number per environment ready to meet its cells."""
    return value.astype(jnp.int8)[:, None]


def inside(box: BoundingBox, shape: GridShape) -> Bool[Array, "B HW"]:
    """Which cells lie in the box."""
    rows, columns = cell_rows(shape)[None], cell_columns(shape)[None]
    return (
        (rows >= per_cell(box.top))
        & (rows <= per_cell(box.bottom))
        & (columns >= per_cell(box.left))
        & (columns <= per_cell(box.right))
    )


def active_area(height: Int[Array, " B"], width: Int[Array, " B"], shape: GridShape) -> Bool[Array, "B HW"]:
    """Which cells lie in the top-left ``height x width``."""
    return (cell_rows(shape)[None] < per_cell(height)) & (cell_columns(shape)[None] < per_cell(width))


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
    empty, zero = box.is_empty, jnp.int32(0)
    return BoundingBox(
        jnp.where(empty, zero, box.top),
        jnp.where(empty, zero, box.left),
        jnp.where(empty, height - 1, box.bottom),
        jnp.where(empty, width - 1, box.right),
    )


def pack_box(box: BoundingBox) -> Int8[Array, "B 4"]:
    """Store a box in four bytes; every empty box is stored alike, as (0, 0, -1, -1)."""
    bounds = jnp.stack(box, axis=1).astype(jnp.int8)
    empty = jnp.array([[0, 0, -1, -1]], jnp.int8)
    return jnp.where(box.is_empty[:, None], empty, bounds)


def grid_size(grid: Int8[Array, "... HW"], shape: GridShape) -> tuple[Int8[Array, "..."], Int8[Array, "..."]]:
    """Height and width of the active area, read off the first column and the first row."""
    height = jnp.sum(grid[..., :: shape[1]] > PADDING, axis=-1, dtype=jnp.int8)
    width = jnp.sum(grid[..., : shape[1]] > PADDING, axis=-1, dtype=jnp.int8)
    return height, width


def pack_columns(cells: Bool[Array, "... HW"], shape: GridShape) -> UInt32[Array, "... W"]:
    """Put the cells of each column into a word."""
    height, width = shape
    words = cells[..., :width].astype(jnp.uint32)
    for row in range(1, height):
        words = words | (cells[..., row * width : (row + 1) * width].astype(jnp.uint32) << jnp.uint32(row))
    return words


def unpack_columns(words: UInt32[Array, "... W"], shape: GridShape, stage: Stage = call) -> Bool[Array, "... HW"]:
    """Read the cells back.

    Args:
        words: one per column.
        shape: rows and columns of the grid.
        stage: how to call a kernel; see :func:`jaxarc.envs.operations.compaction.staged`.
    """
    height, width = shape
    spread = lambda *parts: jnp.concatenate([parts[row // 8] for row in range(height)], axis=-1)
    parts = stage(spread, *_bytes_of_words(words, height))
    bits = np.repeat(np.arange(height, dtype=np.uint8) % 8, width)
    return ((parts >> bits.reshape((1,) * (parts.ndim - 1) + (-1,))) & jnp.uint8(1)).astype(jnp.bool_)


def num_bytes(shape: GridShape) -> int:
    """Bytes that hold the cells of a grid."""
    return -(-shape[0] // 8) * shape[1]


def to_bytes(words: UInt32[Array, "... W"], shape: GridShape) -> UInt8[Array, "... bytes"]:
    """Store words in no more bytes than the grid has rows for."""
    return jnp.concatenate(_bytes_of_words(words, shape[0]), axis=-1)


def from_bytes(stored: UInt8[Array, "... bytes"], shape: GridShape) -> UInt32[Array, "... W"]:
    """Turn stored bytes into words again."""
    words = jnp.zeros((*stored.shape[:-1], shape[1]), jnp.uint32)
    for i in range(num_bytes(shape) // shape[1]):
        part = stored[..., i * shape[1] : (i + 1) * shape[1]].astype(jnp.uint32)
        words = words | (part << jnp.uint32(8 * i))
    return words


def _bytes_of_words(words: UInt32[Array, "... W"], height: int) -> list[UInt8[Array, "... W"]]:
    return [(words >> jnp.uint32(8 * i)).astype(jnp.uint8) for i in range(-(-height // 8))]


HEIGHT, WIDTH, TARGET_HEIGHT, TARGET_WIDTH, CLIPBOARD_HEIGHT, CLIPBOARD_WIDTH = range(6)


class Canvas(eqx.Module):
    """The editable part of a state."""

    grid: Int8[Array, "*B HW"]  # colors 0..9, -1 outside the active area
    clipboard: Int8[Array, "*B HW"]  # content at the origin, -1 where nothing is held
    target: Int8[Array, "*B HW"]  # the grid that a submit is compared with
    selection: Int8[Array, "*B 4"] | UInt32[Array, "*B W"]  # last used: a box's bounds, or columns of bits
    sizes: Int8[Array, "*B 6"]  # height and width of the active area, of the target and of the clipboard's content


class Command(eqx.Module):
    """A checked action: nothing in it is out of range, and it may be applied."""

    operation: Int32[Array, "*B"]  # 0 .. 41, or -1: leave the canvas as it is
    selection: Int32[Array, "*B 4"] | Bool[Array, "*B HW"]  # a box with ordered corners, or cells; raw
    row: Int32[Array, "*B"]  # row of the pair table that operations 32 and 35..41 load
    colors: Int8[Array, "*B 10"] | None = None  # what the colors of loaded grids become; None: they stay


class PairTable(eqx.Module):
    """Inputs and outputs of pairs, one row each."""

    inputs: Int8[Array, "*B N HW"]
    outputs: Int8[Array, "*B N HW"]
    row_loader: RowLoader = eqx.field(static=True, default=LocalRows())  # where all environments share one table

    def input_rows(self, row: Int32[Array, "*B"]) -> Int8[Array, "*B HW"]:
        """Load inputs from the table that all share, or one from each table; a row past the last one is the last."""
        return self._rows(self.inputs, row)

    def output_rows(self, row: Int32[Array, "*B"]) -> Int8[Array, "*B HW"]:
        """Load outputs as :meth:`input_rows` does inputs."""
        return self._rows(self.outputs, row)

    def _rows(self, grids: Int8[Array, "*B N HW"], row: Int32[Array, "*B"]) -> Int8[Array, "*B HW"]:
        if grids.ndim > 2:
            return jnp.take_along_axis(grids, row[..., None, None], axis=-2, mode="clip")[..., 0, :]
        return self.row_loader.load(grids, row)
