"""Cells as bits: one 32-bit word per column of a grid, bit ``r`` for row ``r``.

The rows of a flat grid are contiguous, so packing combines contiguous slices; one word per row would read every 30th
cell, which takes XLA's CPU backend ten times as long.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, UInt8, UInt32

from jaxarc.envs.operations.compaction import Stage, call
from jaxarc.envs.operations.geometry import GridShape


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
