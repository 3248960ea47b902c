"""Flood fill, exact for any corridor: columns are words of bits, and one carry fills a run of cells.

Measured on a CPU: sweeping whole columns right and left until nothing changes takes 2 to 4 rounds on ARC
grids and 8 on spirals, where growing by one cell a round takes up to 403.
"""

import functools

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int8, Int32, UInt32

from jaxarc.constants import FLOOD_FILL
from jaxarc.envs.operations.bits import pack_columns, unpack_columns
from jaxarc.envs.operations.compaction import staged
from jaxarc.envs.operations.geometry import GridShape, per_cell


def flood_fill(
    grid: Int8[Array, "B HW"],
    operation: Int32[Array, " B"],
    row: Int32[Array, " B"],
    column: Int32[Array, " B"],
    shape: GridShape,
    executor: str,
) -> Int8[Array, "B HW"]:
    """Recolor the 4-connected component of equal color around one active cell per environment."""
    stage = functools.partial(staged, executor, jnp.any(row >= 0))
    start = jnp.take_along_axis(grid, (row * shape[1] + column)[:, None], axis=1)
    same = stage(lambda grid, start: pack_columns(grid == start, shape), grid, start).T  # padding never is the color
    columns = jnp.arange(shape[1], dtype=jnp.int32)[:, None]
    seed = jnp.where(columns == column[None], (jnp.uint32(1) << row.astype(jnp.uint32))[None], jnp.uint32(0)) & same
    region = stage(jnp.transpose, _connected(seed, same))
    return jnp.where(unpack_columns(region, shape, stage), per_cell(operation - FLOOD_FILL), grid)


def _connected(seed: UInt32[Array, "W B"], open_cells: UInt32[Array, "W B"]) -> UInt32[Array, "W B"]:
    """All open cells that a seed reaches through open cells."""

    def sweep(beside: UInt32[Array, " B"], column: tuple[Array, Array]) -> tuple[Array, Array]:
        reached, passable = column
        filled = _fill_runs((reached | beside) & passable, passable)
        return filled, filled

    def body(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        reached, _ = carry
        nothing = jnp.zeros_like(reached[0])
        _, reached = lax.scan(sweep, nothing, (reached, open_cells))
        _, reached = lax.scan(sweep, nothing, (reached, open_cells), reverse=True)
        before = jnp.concatenate([nothing[None], reached[:-1]])  # the last sweep left nothing to spread the other way
        return reached, jnp.any((open_cells & ~reached & before) != 0)

    return lax.while_loop(lambda carry: carry[1], body, (seed, jnp.any(seed != 0)))[0]


def _fill_runs(seed: UInt32[Array, " B"], open_cells: UInt32[Array, " B"]) -> UInt32[Array, " B"]:
    """Spread the seeds over the runs of open cells that they lie in: down by doubling, up by one carry."""
    spread, run = seed, open_cells
    for step in (1, 2, 4, 8, 16):
        spread = spread | (run & (spread >> jnp.uint32(step)))
        run = run & (run >> jnp.uint32(step))
    return spread | (open_cells & ~(open_cells + spread))
