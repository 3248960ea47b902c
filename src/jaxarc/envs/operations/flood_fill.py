"""Flood fill: the connected component of a cell, on columns of bits."""

import functools
from collections.abc import Callable
from typing import Any, Final

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int8, Int32, UInt32

from jaxarc.constants import FLOOD_FILL
from jaxarc.envs.canvas import GridShape, pack_columns, per_cell, unpack_columns
from jaxarc.fusion import compiles_for_cpu, compiles_triton, compute_once, materialize_call

Words = UInt32[Array, " B"]  # one column of each grid
Sweep = tuple[list[Words], Bool[Array, ""]]  # what is reached, column by column, and whether that can spread
_WARP: Final = 32  # threads that run in step on a GPU


def flood_fill(
    grid: Int8[Array, "B HW"],
    operation: Int32[Array, " B"],
    row: Int32[Array, " B"],
    column: Int32[Array, " B"],
    shape: GridShape,
) -> Int8[Array, "B HW"]:
    """Recolor the 4-connected component of equal color around one active cell per environment.

    Exact for any corridor. Columns are words of bits, and one carry fills a run of cells. Sweeping whole columns right
    and left until nothing changes takes 2 to 4 rounds on ARC grids and 8 on spirals, where growing by one cell a round
    takes up to 403.
    """
    # int8[B, 1], the color to replace; then uint32[B, W], the cells that have it: word [b, c] is column c of grid b.
    start = jnp.take_along_axis(grid, (row * shape[1] + column)[:, None], axis=1)
    pack_same = lambda grid, start: pack_columns(grid == start, shape)  # padding never is the color
    same = materialize_call(pack_same, grid, start, predicate_of=row)
    # Else XLA packs the columns, and finds the start in a box, once for each use.
    start_cell = row.astype(jnp.int8), column.astype(jnp.int8)
    region = _connected(*compute_once((*start_cell, same)))
    return jnp.where(unpack_columns(region, shape), per_cell(operation - FLOOD_FILL), grid)


def _connected(
    row: Int8[Array, " B"], column: Int8[Array, " B"], open_cells: UInt32[Array, "B W"]
) -> UInt32[Array, "B W"]:
    """Find all open cells that one cell of each grid reaches through open cells.

    A sweep to the right gives each column what its left neighbor reached, then fills the runs it touches; a sweep to
    the left does the same from the right. ``o`` is open, ``x`` reached, ``#`` closed::

        seed       right      left
        # o o      # o x      # x x
        x # o  ->  x # x  ->  x # x    nothing is left to spread to the right: done
        o o o      x x x      x x x

    All environments share the loop, so it runs as many rounds as the hardest of the grids needs.
    """
    if compiles_for_cpu() or not compiles_triton():
        return _connected_in_xla(row, column, open_cells)
    return lax.platform_dependent(row, column, open_cells, cuda=_connected_in_triton, default=_connected_in_xla)


def _connected_in_xla(
    row: Int8[Array, " B"], column: Int8[Array, " B"], open_cells: UInt32[Array, "B W"]
) -> UInt32[Array, "B W"]:
    # Some environment floods in nearly every step, so the first round runs without asking whether it is needed, which
    # saves the loop a wait for the device.
    sweep, start = _rounds(row, column, [open_cells[:, c] for c in range(open_cells.shape[1])])
    return jnp.stack(lax.while_loop(lambda carry: carry[1], sweep, sweep(start))[0], axis=1)


def _connected_in_triton(
    row: Int8[Array, " B"], column: Int8[Array, " B"], open_cells: UInt32[Array, "B W"], interpret: bool = False
) -> UInt32[Array, "B W"]:
    """Find them by one kernel, whose loop needs no host: a thread has a grid, and a warp goes on until its 32 are done.

    Of 40 grids, warp 0 takes 0..31, and warp 1 takes 32..39; its other threads load and store nothing.
    """
    from jax.experimental import pallas  # here, because the core loads it for GPUs only
    from jax.experimental.pallas import triton

    batch, num_columns = open_cells.shape

    def kernel(row: Any, column: Any, open_cells: Any, region: Any) -> None:
        grid = pallas.program_id(0) * _WARP + jnp.arange(_WARP, dtype=jnp.int32)
        exists = grid < batch
        load = functools.partial(triton.load, mask=exists, other=0)
        passable = [load(open_cells.at[grid, c]) for c in range(num_columns)]
        sweep, start = _rounds(load(row.at[grid]), load(column.at[grid]), passable)
        reached, _ = lax.while_loop(lambda carry: carry[1], sweep, start)
        for c, words in enumerate(reached):
            triton.store(region.at[grid, c], words, mask=exists)

    in_memory = pallas.BlockSpec(memory_space=pallas.ANY)
    return pallas.pallas_call(
        kernel,
        out_shape=jax.eval_shape(lambda cells: cells, open_cells),  # with the devices over which it varies
        grid=(-(-batch // _WARP),),
        in_specs=[in_memory] * 3,
        out_specs=in_memory,
        interpret=interpret,
        compiler_params=triton.CompilerParams(num_warps=1),
        name="flood",
    )(row, column, open_cells)


def _rounds(
    row: Int8[Array, " B"], column: Int8[Array, " B"], passable: list[Words]
) -> tuple[Callable[[Sweep], Sweep], Sweep]:
    """Return a round of :func:`_connected`, and what the first one takes: words by column, and whether any spreads.

    All columns are written out: as a loop over them, XLA would launch three kernels for each.
    """

    def sweep_both_ways(carry: Sweep) -> Sweep:
        reached = list(carry[0])
        for turn in (range(len(reached)), reversed(range(len(reached)))):
            beside = jnp.zeros_like(reached[0])
            for c in turn:
                beside = reached[c] = _fill_runs((reached[c] | beside) & passable[c], passable[c])
        spreads = jnp.zeros_like(reached[0])
        for c in range(1, len(reached)):
            spreads = spreads | (passable[c] & ~reached[c] & reached[c - 1])
        return reached, jnp.max(spreads) != 0  # Triton has no `any`

    start_bit = jnp.uint32(1) << row.astype(jnp.uint32)
    seed = [jnp.where(column == c, start_bit, jnp.uint32(0)) & words for c, words in enumerate(passable)]
    return sweep_both_ways, (seed, jnp.max(start_bit) != 0)


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
