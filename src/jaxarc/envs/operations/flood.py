"""Flood fill: the connected component of a cell, on columns of bits."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Int8, Int32, UInt32

from jaxarc.constants import FLOOD_FILL
from jaxarc.envs.canvas import GridShape, pack_columns, per_cell, unpack_columns
from jaxarc.fusion import materialize_call

Words = UInt32[Array, " B"]  # one column of each grid


def flood_fill(
    grid: Int8[Array, "B HW"],
    operation: Int32[Array, " B"],
    row: Int32[Array, " B"],
    column: Int32[Array, " B"],
    shape: GridShape,
    is_fused: bool = False,
) -> Int8[Array, "B HW"]:
    """Recolor the 4-connected component of equal color around one active cell per environment.

    Exact for any corridor. Columns are words of bits, and one carry fills a run of cells. Sweeping whole columns right
    and left until nothing changes takes 2 to 4 rounds on ARC grids and 8 on spirals, where growing by one cell a round
    takes up to 403.
    """
    # int8[B, 1], the color to replace; then uint32[W, B], the cells that have it: word [c, b] is column c of grid b.
    start = jnp.take_along_axis(grid, (row * shape[1] + column)[:, None], axis=1)
    pack_same = lambda grid, start: pack_columns(grid == start, shape)  # padding never is the color
    same = materialize_call(pack_same, grid, start, predicate_of=row)
    if is_fused:
        # The barrier keeps XLA from packing the columns, and from finding the start in a box, once for each use.
        start_cell = row.astype(jnp.int8), column.astype(jnp.int8)
        region = _connected_at_once(*lax.optimization_barrier((*start_cell, same)))
        return jnp.where(unpack_columns(region, shape), per_cell(operation - FLOOD_FILL), grid)
    same = same.T
    columns = jnp.arange(shape[1], dtype=jnp.int32)[:, None]
    # One bit in one word: a start at row 1, column 2 of a 3x3 grid is 000 000 010.
    start_bit = (jnp.uint32(1) << row.astype(jnp.uint32))[None]
    seed = jnp.where(columns == column[None], start_bit, jnp.uint32(0)) & same
    region = materialize_call(jnp.transpose, _connected(seed, same), predicate_of=row)
    return jnp.where(unpack_columns(region, shape), per_cell(operation - FLOOD_FILL), grid)


def _connected(seed: UInt32[Array, "W B"], open_cells: UInt32[Array, "W B"]) -> UInt32[Array, "W B"]:
    """Find all open cells that a seed reaches through open cells.

    A sweep to the right gives each column what its left neighbor reached, then fills the runs it touches; a sweep to
    the left does the same from the right. ``o`` is open, ``x`` reached, ``#`` closed::

        seed       right      left
        # o o      # o x      # x x
        x # o  ->  x # x  ->  x # x    nothing is left to spread to the right: done
        o o o      x x x      x x x
    """

    def sweep(beside: Words, column: tuple[Words, Words]) -> tuple[Words, Words]:
        # `beside` is what the neighbor column reached. Its open cells in the same rows are reached too, and spread up
        # and down: beside 100 and passable 110 meet in 100, which fills the run 110.
        reached, passable = column
        filled = _fill_runs((reached | beside) & passable, passable)
        return filled, filled

    def sweep_both_ways(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        reached, _ = carry
        zeros = jnp.zeros_like(reached[0])
        _, reached = lax.scan(sweep, zeros, (reached, open_cells))
        _, reached = lax.scan(sweep, zeros, (reached, open_cells), reverse=True)
        # The sweep to the left left nothing to spread to the left; is there anything to spread to the right?
        left_neighbor = jnp.concatenate([zeros[None], reached[:-1]])
        return reached, jnp.any((open_cells & ~reached & left_neighbor) != 0)

    # Seeds of all environments share the loop, so it runs as many rounds as the hardest of the grids needs.
    return lax.while_loop(lambda carry: carry[1], sweep_both_ways, (seed, jnp.any(seed != 0)))[0]


def _connected_at_once(
    row: Int8[Array, " B"], column: Int8[Array, " B"], open_cells: UInt32[Array, "B W"]
) -> UInt32[Array, "B W"]:
    """Find what one cell of each grid reaches, as :func:`_connected` does, written out for an accelerator.

    All columns are one kernel, instead of three launches for each column. Some environment floods in nearly every
    step, so the first round runs without asking whether it is needed, which saves the loop a wait for the device.
    """
    num_columns = open_cells.shape[1]

    def sweep_both_ways(carry: tuple[list[Words], Array]) -> tuple[list[Words], Array]:
        passable = [open_cells[:, c] for c in range(num_columns)]
        reached = list(carry[0])
        beside = jnp.zeros_like(reached[0])
        for turn in (range(len(reached)), reversed(range(len(reached)))):
            beside = jnp.zeros_like(beside)
            for c in turn:
                beside = reached[c] = _fill_runs((reached[c] | beside) & passable[c], passable[c])
        spreads = jnp.zeros(beside.shape, jnp.bool_)
        for c in range(1, len(reached)):
            spreads = spreads | ((passable[c] & ~reached[c] & reached[c - 1]) != 0)
        return reached, jnp.any(spreads)

    start_bit = jnp.uint32(1) << row.astype(jnp.uint32)
    seed = [jnp.where(column == c, start_bit, jnp.uint32(0)) & open_cells[:, c] for c in range(num_columns)]
    first = sweep_both_ways((seed, jnp.bool_(True)))
    return jnp.stack(lax.while_loop(lambda carry: carry[1], sweep_both_ways, first)[0], axis=1)


def _fill_runs(seed: Words, open_cells: Words) -> Words:
    """Spread the seeds over the runs of open cells that hold them: to lower bits by doubling, to higher by one carry.

    Adding a seed to its run carries through the run's ones up to its end: the ones that the sum turns to 0, and the
    seed itself, are what the seed reaches. In bits, highest first, with the run 01110 and the seed 00100::

        to lower bits      00100 | (01110 & 00100 >> 1) = 00110   the loop moves by 1, 2, 4, 8, 16
        to higher bits     01110 + 00110 = 10100, and 01110 & ~10100 = 01010
        together           00110 | 01010 = 01110
    """
    spread = seed
    run = open_cells
    # Before the step of s, bit i of `run` says that the s cells i .. i + s - 1 are open, so that a seed s cells higher
    # reaches cell i. The steps add up to 31, and a column has at most 30 cells.
    for step in (1, 2, 4, 8, 16):
        spread = spread | (run & (spread >> jnp.uint32(step)))
        run = run & (run >> jnp.uint32(step))
    return spread | (open_cells & ~(open_cells + spread))
