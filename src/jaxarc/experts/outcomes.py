"""How many cells are right after each of many edits of one grid.

Most candidates are fills. A fill makes ``popcount(wanted & cells) - popcount(right & cells)`` more cells right, where
``wanted`` has a bit for each cell whose target is of the color, ``right`` for each that is right already: 30 words a
candidate, where an edited grid has 900 cells. So no grids are made for fills. Flood fills and the other operations are
done in blocks of those rows.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int32, UInt32

from jaxarc import constants as c
from jaxarc.envs.canvas import BoundingBox, Canvas, Command, PairTable, pack_columns
from jaxarc.envs.compilation import Kernel, no_shared_arrays, with_batch_rule
from jaxarc.envs.operations.compaction import compact, staged, update_rows
from jaxarc.envs.operations.execute import KernelStatics, execute_batch
from jaxarc.envs.operations.kernels import flood_fill
from jaxarc.envs.operations.selection import ResolvedSelection, resolve_selection
from jaxarc.envs.scoring import count_matches, count_union
from jaxarc.experts.canvas_state import CanvasState, Commands

_FLOOD_FRACTION, _OTHER_FRACTION = 1 / 8, 1 / 16


class Outcomes(NamedTuple):
    """What edits of one grid lead to."""

    matches: Int32[Array, "*B k"]  # cells that match the target
    union: Int32[Array, "*B k"]  # cells in the union of grid and target


def count_outcomes(canvas_state: CanvasState, commands: Commands, statics: KernelStatics) -> Outcomes:
    """Apply each of k commands to the same canvas state; under ``vmap``, one batch kernel serves all canvas states."""
    return _native(statics)((canvas_state, commands), ())


@functools.cache
def _native(statics: KernelStatics) -> Kernel:
    def kernel(rows: tuple[CanvasState, Commands], _: tuple[()]) -> Outcomes:
        one = lambda row: _outcomes(row[0], row[1], statics)
        # On a CPU one canvas state after the other: what belongs to it then stays in the cache.
        return jax.vmap(one)(rows) if statics.executor == "dense" else jax.lax.map(one, rows)

    return with_batch_rule(kernel, no_shared_arrays)


def _outcomes(canvas_state: CanvasState, commands: Commands, statics: KernelStatics) -> Outcomes:
    canvas, operation = canvas_state.canvas, commands.operation
    count = operation.shape[0]
    command = Command(operation, commands.selection, jnp.zeros(count, jnp.int32))
    canvases = jax.tree.map(lambda leaf: _repeat(leaf, operation), canvas)
    use = resolve_selection(canvases, command, statics.shape, statics.executor)
    base = count_matches(canvas.grid, canvas.target)
    fills = (operation >= c.FILL) & (operation < c.FLOOD_FILL)
    floods = (operation >= c.FLOOD_FILL) & (operation < c.MOVE_UP) & use.is_single
    others = (operation >= c.MOVE_UP) & (operation != c.SUBMIT)
    out = Outcomes(
        base + jnp.where(fills, _gain_of_fills(canvas, operation, use, statics), 0),
        jnp.broadcast_to(count_union(canvas.sizes[:4]), (count,)),
    )
    flood_blocks, other_blocks = compact([floods, others])
    if statics.has(c.FLOOD_FILL, c.MOVE_UP - 1):
        kernel = functools.partial(_flood, canvas=canvas, statics=statics)
        ins = (operation, use.effective.top, use.effective.left)
        out = update_rows(statics.executor, flood_blocks, kernel, out, ins, _FLOOD_FRACTION)
    if statics.has(c.MOVE_UP, c.SUBMIT - 1):
        kernel = functools.partial(_edit, canvas_state=canvas_state, statics=statics)
        out = update_rows(statics.executor, other_blocks, kernel, out, command, _OTHER_FRACTION)
    return out


def _gain_of_fills(
    canvas: Canvas, operation: Int32[Array, " k"], use: ResolvedSelection, statics: KernelStatics
) -> Int32[Array, " k"]:
    stage = functools.partial(staged, statics.executor, jnp.any(operation < c.NUM_OPERATIONS))
    pack = functools.partial(pack_columns, shape=statics.shape)
    color = jnp.arange(c.NUM_COLORS, dtype=jnp.int8)[:, None]
    wanted = stage(lambda target: pack(target[None] == color), canvas.target)
    right = stage(lambda grid, target: pack((grid == target) & (target > c.PADDING)), canvas.grid, canvas.target)
    cells = _columns_of(use.chosen, statics.shape[1]) if use.columns is None else use.columns.T
    wanted = jnp.take(wanted.T, operation, axis=1, mode="clip")
    gain = jax.lax.population_count(wanted & cells).astype(jnp.int32)
    return (gain - jax.lax.population_count(right[:, None] & cells).astype(jnp.int32)).sum(axis=0, dtype=jnp.int32)


def _columns_of(box: BoundingBox, width: int) -> UInt32[Array, "W k"]:
    """The cells of boxes as bits."""
    up_to = lambda row: (jnp.uint32(1) << (row + 1).astype(jnp.uint32)) - jnp.uint32(1)
    rows = jnp.where(box.is_empty, jnp.uint32(0), up_to(box.bottom) ^ up_to(box.top - 1))[None]
    columns = jnp.arange(width, dtype=jnp.int32)[:, None]
    return jnp.where((columns >= box.left[None]) & (columns <= box.right[None]), rows, jnp.uint32(0))


def _flood(out: Outcomes, ins: tuple[Array, Array, Array], canvas: Canvas, statics: KernelStatics) -> Outcomes:
    operation, row, column = ins
    is_flood = (operation >= c.FLOOD_FILL) & (operation < c.MOVE_UP)  # a block's last rows may be others
    row, column = jnp.where(is_flood, row, 0), jnp.where(is_flood, column, 0)
    grid = _repeat(canvas.grid, operation)
    grid = flood_fill(grid, operation, row, column, statics.shape, statics.executor)
    return Outcomes(count_matches(grid, _repeat(canvas.target, operation)), out.union)


def _edit(out: Outcomes, command: Command, canvas_state: CanvasState, statics: KernelStatics) -> Outcomes:
    operation = command.operation
    needs = (operation >= c.MOVE_UP) & (operation != c.SUBMIT)
    command = Command(jnp.where(needs, operation, c.NO_OPERATION), command.selection, command.row)
    canvases = jax.tree.map(lambda leaf: _repeat(leaf, operation), canvas_state.canvas)
    table = PairTable(canvas_state.pair_input[None], canvas_state.canvas.target[None])
    rest = tuple(i for i in statics.operations if i >= c.MOVE_UP)
    canvases, matches = execute_batch(canvases, command, table, KernelStatics(statics.shape, statics.executor, rest))
    return Outcomes(matches, count_union(canvases.sizes[:, :4]))


def _repeat(leaf: Array, like: Int32[Array, " k"]) -> Array:
    return jnp.broadcast_to(leaf, (like.shape[0], *leaf.shape))
