"""How much a grid agrees with its target: the one definition that rewards, endings and scores read."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int8, Int32

from jaxarc.constants import PADDING

LANES = 32  # cells are added in this many int8 lanes; 900 cells give at most 29 a lane, far from overflow


def count_matches(grid: Int8[Array, "... HW"], target: Int8[Array, "... HW"]) -> Int32[Array, "..."]:
    """Number of active cells where grid and target have the same color."""
    return count_cells((grid == target) & (target > PADDING))


def count_union(sizes: Int8[Array, "... 4"]) -> Int32[Array, "..."]:
    """Cells in the union of two top-left anchored areas, whose (height, width, height, width) are given."""
    height, width, target_height, target_width = (sizes[..., i].astype(jnp.int32) for i in range(4))
    return jnp.maximum(height, target_height) * jnp.maximum(width, target_width)


def similarity(matches: Int32[Array, "..."], union: Int32[Array, "..."]) -> Float32[Array, "..."]:
    """Matching cells over cells of the union, in [0, 1]; 1 exactly when grid and target are equal, size included."""
    return matches.astype(jnp.float32) / union.astype(jnp.float32)


def count_cells(mask: Bool[Array, "... HW"]) -> Int32[Array, "..."]:
    """Number of true cells, by halving slices in int8: XLA's CPU reduction is many times slower."""
    cells = mask.shape[-1]
    folds = max(0, (cells - 1) // LANES).bit_length()
    even = cells >> folds << folds
    rest = jnp.sum(mask[..., even:], axis=-1, dtype=jnp.int32)
    counts = mask[..., :even].astype(jnp.int8)
    for _ in range(folds):
        half = counts.shape[-1] // 2
        counts = counts[..., :half] + counts[..., half:]
    return jnp.sum(counts, axis=-1, dtype=jnp.int32) + rest
