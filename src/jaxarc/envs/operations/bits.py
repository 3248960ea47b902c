"""Cells as bits: byte ``j`` holds the cells ``j``, ``j + n``, ``j + 2n``, ... of a grid stored in ``n`` bytes.

So both ways are a few operations on contiguous slices; with neighbors in one byte they would be strided, and slow.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, UInt8


def num_bytes(cells: int) -> int:
    """Bytes that hold so many cells."""
    return -(-cells // 8)


def pack_cells(cells: Bool[Array, "... HW"]) -> UInt8[Array, "... bytes"]:
    """Put eight cells into a byte."""
    count = num_bytes(cells.shape[-1])
    missing = 8 * count - cells.shape[-1]
    padded = jnp.pad(cells.astype(jnp.uint8), [(0, 0)] * (cells.ndim - 1) + [(0, missing)])
    packed = padded[..., :count]
    for bit in range(1, 8):
        packed = packed | (padded[..., bit * count : (bit + 1) * count] << jnp.uint8(bit))
    return packed


def unpack_cells(packed: UInt8[Array, "... bytes"], cells: int) -> Bool[Array, "... HW"]:
    """Read the first ``cells`` cells back."""
    planes = [(packed >> jnp.uint8(bit)) & jnp.uint8(1) for bit in range(8)]
    return jnp.concatenate(planes, axis=-1)[..., :cells].astype(jnp.bool_)
