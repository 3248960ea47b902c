"""Cells and boxes of a batch of flat grids.

A flat grid has ``HW = H * W`` cells, row by row: arrays of shape ``[B, H, W]`` are many times slower on XLA's CPU
backend than ``[B, HW]``. Coordinates fit int8, because a side has at most 30 cells.
"""

import functools
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int, Int8, Int32

from jaxarc.constants import PADDING

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
