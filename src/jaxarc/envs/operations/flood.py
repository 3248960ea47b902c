"""Flood fill, exact for any corridor: rows are words of bits, and one carry fills a run of cells.

Measured on a CPU: sweeping whole rows down and up until nothing changes takes 2 to 4 rounds on ARC
grids and 8 on spirals, where growing by one cell a round takes up to 403.
"""

import functools

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int8, Int32, UInt32

from jaxarc.constants import FLOOD_FILL
from jaxarc.envs.operations.geometry import GridShape, cell_columns, cell_rows, per_cell

HALF_WORD = 15  # bits whose sum of powers of two is exact in float32, with room


def flood_fill(
    grid: Int8[Array, "B HW"],
    operation: Int32[Array, " B"],
    row: Int32[Array, " B"],
    column: Int32[Array, " B"],
    shape: GridShape,
) -> Int8[Array, "B HW"]:
    """Recolor the 4-connected component of equal color around one active cell per environment."""
    start = jnp.take_along_axis(grid, (row * shape[1] + column)[:, None], axis=1)
    same = _pack_rows(grid == start, shape)  # padding is never the color of an active cell
    rows = jnp.arange(shape[0], dtype=jnp.int32)[:, None]
    seed = jnp.where(rows == row[None], (jnp.uint32(1) << column.astype(jnp.uint32))[None], jnp.uint32(0)) & same
    region = _connected(seed, same)
    words = jnp.take(region.T, cell_rows(shape).astype(np.int32), axis=1, mode="clip")
    filled = (words >> cell_columns(shape)[None].astype(np.uint32)) & jnp.uint32(1)
    return jnp.where(filled != 0, per_cell(operation - FLOOD_FILL), grid)


def _connected(seed: UInt32[Array, "H B"], open_cells: UInt32[Array, "H B"]) -> UInt32[Array, "H B"]:
    """All open cells that a seed reaches through open cells."""

    def sweep(above: UInt32[Array, " B"], row: tuple[Array, Array]) -> tuple[Array, Array]:
        reached, passable = row
        filled = _fill_runs((reached | above) & passable, passable)
        return filled, filled

    def body(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        reached, _ = carry
        nothing = jnp.zeros_like(reached[0])
        _, reached = lax.scan(sweep, nothing, (reached, open_cells))
        _, reached = lax.scan(sweep, nothing, (reached, open_cells), reverse=True)
        edge = nothing[None]
        beside = jnp.concatenate([reached[1:], edge]) | jnp.concatenate([edge, reached[:-1]])
        return reached, jnp.any((open_cells & ~reached & beside) != 0)

    return lax.while_loop(lambda carry: carry[1], body, (seed, jnp.any(seed != 0)))[0]


def _fill_runs(seed: UInt32[Array, " B"], open_cells: UInt32[Array, " B"]) -> UInt32[Array, " B"]:
    """Spread the seeds over the runs of open cells that they lie in: down by doubling, up by one carry."""
    spread, run = seed, open_cells
    for step in (1, 2, 4, 8, 16):
        spread = spread | (run & (spread >> jnp.uint32(step)))
        run = run & (run >> jnp.uint32(step))
    return spread | (open_cells & ~(open_cells + spread))


@functools.cache
def _powers(width: int) -> np.ndarray:
    bits = np.arange(width)
    low = np.where(bits < HALF_WORD, 2.0**bits, 0)
    high = np.where(bits >= HALF_WORD, 2.0 ** (bits - HALF_WORD), 0)
    return np.stack([low, high], axis=1).astype(np.float32)


def _pack_rows(cells: Bool[Array, "B HW"], shape: GridShape) -> UInt32[Array, "H B"]:
    """One word per row, bit ``c`` for column ``c``; a product with powers of two, exact in float32."""
    height, width = shape
    halves = cells.astype(jnp.float32).reshape(-1, width) @ _powers(width)
    words = halves.astype(jnp.uint32).reshape(-1, height, 2)
    return (words[..., 0] | (words[..., 1] << jnp.uint32(HALF_WORD))).T
