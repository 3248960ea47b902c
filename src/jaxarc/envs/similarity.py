"""How much a grid agrees with its target: the one definition that rewards, endings and scores read."""

import functools

import jax.numpy as jnp
from jaxtyping import Array, Float32, Int8, Int32

from jaxarc.constants import PADDING
from jaxarc.envs.operations.compaction import Stage, call

SLICES = (4, 9)  # cells are added up in int8, in slices: at most 36 a lane, far from overflow
LONG_ROW = 64  # cells from which on that pays


def count_matches(
    grid: Int8[Array, "... HW"], target: Int8[Array, "... HW"], stage: Stage = call
) -> Int32[Array, "..."]:
    """Number of active cells where grid and target have the same color.

    Args:
        grid: colors, -1 as padding.
        target: the same of the target.
        stage: how to call a kernel; see :func:`jaxarc.envs.operations.compaction.staged`.
    """
    if grid.shape[-1] < LONG_ROW:
        return jnp.sum(_alike(grid, target), axis=-1, dtype=jnp.int32)
    first, *others = SLICES
    counts = stage(lambda *grids: _add_slices(_alike(*grids), first), grid, target)
    for slices in others:  # XLA's CPU backend is many times slower to add up a long row in one go
        counts = stage(functools.partial(_add_slices, slices=slices), counts)
    return jnp.sum(counts, axis=-1, dtype=jnp.int32)


def count_union(sizes: Int8[Array, "... 4"]) -> Int32[Array, "..."]:
    """Cells in the union of two top-left anchored areas, whose (height, width, height, width) are given."""
    height, width, target_height, target_width = (sizes[..., i].astype(jnp.int32) for i in range(4))
    return jnp.maximum(height, target_height) * jnp.maximum(width, target_width)


def similarity(matches: Int32[Array, "..."], union: Int32[Array, "..."]) -> Float32[Array, "..."]:
    """Matching cells over cells of the union, in [0, 1]; 1 exactly when grid and target are equal, size included."""
    return matches.astype(jnp.float32) / union.astype(jnp.float32)


def _alike(grid: Int8[Array, "... HW"], target: Int8[Array, "... HW"]) -> Int8[Array, "... HW"]:
    return ((grid == target) & (target > PADDING)).astype(jnp.int8)


def _add_slices(counts: Int8[Array, "... N"], slices: int) -> Int8[Array, "... M"]:
    """Add so many slices of equal length, and keep what is left over."""
    length = counts.shape[-1] // slices
    total, *rest = (counts[..., i * length : (i + 1) * length] for i in range(slices))
    for part in rest:
        total = total + part
    left = counts[..., slices * length :]
    return jnp.concatenate([total, left], axis=-1) if left.shape[-1] else total
