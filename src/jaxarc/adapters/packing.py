"""One copy to the host for many arrays: a pytree packed into bytes on the device, and unpacked by the host.

A copy costs about the same for one number as for a whole grid, and a step shows a dozen arrays.
"""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, PyTree, Shaped, UInt8


@partial(jax.tree_util.register_dataclass, data_fields=["data"], meta_fields=["structure", "layout"])
@dataclasses.dataclass(frozen=True)
class Packed:
    """A pytree of arrays as bytes, with what it takes to read them; a compiled function can return it."""

    data: UInt8[Array, " bytes"]
    structure: Any  # of the pytree
    layout: tuple[tuple[int, tuple[int, ...], np.dtype], ...]  # of each leaf: first byte, shape, dtype

    def unpack(self, data: UInt8[np.ndarray, " bytes"] | None = None) -> Any:
        """Copy everything to the host at once, and return the pytree as NumPy arrays that may be written to.

        Args:
            data: such a copy, of which the arrays are views.
        """
        data = np.array(self.data) if data is None else data
        return jax.tree.unflatten(
            self.structure, [np.ndarray(shape, dtype, data, at) for at, shape, dtype in self.layout]
        )


def pack(tree: PyTree[Array]) -> Packed:
    """Pack the leaves one behind the other, those of the largest items first, so that each begins at a multiple of its.

    Example: a bool, an int32 and an int8[3] take the bytes 4, 0..3 and 5..7 of eight.
    """
    leaves, structure = jax.tree.flatten(tree)
    order = sorted(range(len(leaves)), key=lambda index: -leaves[index].dtype.itemsize)
    layout: dict[int, tuple[int, tuple[int, ...], np.dtype]] = {}
    start = 0
    for index in order:
        leaf = leaves[index]
        layout[index] = (start, leaf.shape, np.dtype(leaf.dtype))
        start += leaf.size * leaf.dtype.itemsize
    data = jnp.concatenate([_bytes_of(leaves[index]) for index in order])
    return Packed(data, structure, tuple(layout[index] for index in range(len(leaves))))


def _bytes_of(leaf: Shaped[Array, "*shape"]) -> UInt8[Array, " bytes"]:
    if leaf.dtype == jnp.bool_:  # which has no bits to cast; NumPy's bools are bytes of 0 and 1
        return leaf.astype(jnp.uint8).reshape(-1)
    return lax.bitcast_convert_type(leaf, jnp.uint8).reshape(-1)
