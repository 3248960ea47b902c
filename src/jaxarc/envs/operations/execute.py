"""The executor: a checked command and a canvas in, the edited canvas out, for a whole batch at once."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int8, Int32

from jaxarc import constants as c
from jaxarc.constants import PADDING
from jaxarc.envs.canvas import (
    CLIPBOARD_HEIGHT,
    HEIGHT,
    TARGET_HEIGHT,
    WIDTH,
    BoundingBox,
    Canvas,
    Command,
    GridShape,
    PairTable,
    active_area,
    grid_size,
)
from jaxarc.envs.compilation import Kernel, fold_rows, unfold_rows, with_batch_rule
from jaxarc.envs.operations.compaction import CompactedRows, compact, staged, update_rows
from jaxarc.envs.operations.kernels import flood_fill, shift_cells, turn_box
from jaxarc.envs.operations.selection import ResolvedSelection, effective_cells, next_selection, resolve_selection
from jaxarc.envs.scoring import count_matches
from jaxarc.tasks.augmentation import recolor

Loadable = tuple[Array, Array, Array, Array]  # grid, target, clipboard, sizes
Edit = tuple[Canvas, Int32[Array, "*B"]]
RowToLoad = tuple[Int32[Array, " B"], Int8[Array, "B 10"] | None]  # of the pair table, and how it is recolored
# Blocks of the compact executor hold one row in so many: about half of the rows that usually need the family.
FLOOD_FRACTION, TURN_FRACTION, LOAD_FRACTION = 1 / 64, 1 / 7, 1 / 16
SHIFT_FRACTION, SHIFT_FRACTION_OF_MASKS = 1 / 5, 1 / 4  # a random box is often empty, and then not pasted or copied
_FAMILIES = {  # first and last operation that can need it; copy and cut, 28 and 30, shift like 20..23 and 29 do
    "flood": (c.FLOOD_FILL, c.MOVE_UP - 1),
    "shift": (c.MOVE_UP, c.CUT),
    "turn": (c.ROTATE_CLOCKWISE, c.FLIP_UP_DOWN),
    "copy_input": (c.COPY_INPUT, c.COPY_INPUT),
    "change_pair": (c.NEXT_DEMO_PAIR, c.NUM_OPERATIONS),
}


@dataclasses.dataclass(frozen=True)
class KernelStatics:
    """What is fixed when the kernel is compiled."""

    shape: GridShape  # rows and columns of the canvas, (H, W)
    executor: str  # "compact" or "dense"; the results are the same bit for bit
    operations: tuple[int, ...]  # the only ones that can occur; families that cannot are left out

    def has(self, first: int, last: int) -> bool:
        """Whether any operation in ``first .. last`` can occur."""
        return any(first <= operation <= last for operation in self.operations)


def execute(canvas: Canvas, command: Command, pairs: PairTable, statics: KernelStatics) -> Edit:
    """Apply one command to one canvas; under ``jax.vmap``, however nested, one batch kernel serves all canvases.

    Args:
        canvas: the canvas of one environment.
        command: what to do, already checked.
        pairs: the pairs that may be loaded, shared by a batch or one table per environment.
        statics: what is fixed when the kernel is compiled.

    Returns:
        The edited canvas, and the number of cells that match the target.
    """
    return _single(statics)((canvas, command), pairs)


@functools.cache
def _single(statics: KernelStatics) -> Callable[[tuple[Canvas, Command], PairTable], Edit]:
    def kernel(rows: tuple[Canvas, Command], pairs: PairTable) -> Edit:
        return execute_batch(*rows, pairs, statics)

    def stack_tables(kernel: Kernel, has_axis: Any, rows: tuple[Canvas, Command], pairs: PairTable) -> Edit:
        """Make one table of those of several batches."""
        canvas, command = rows
        size = command.row.shape[0]
        pairs = jax.tree.map(lambda x, has: x if has else jnp.broadcast_to(x, (size, *x.shape)), pairs, has_axis)
        row = command.row + jnp.arange(size, dtype=jnp.int32)[:, None] * pairs.inputs.shape[1]
        rows = fold_rows((canvas, dataclasses.replace(command, row=row)))
        return unfold_rows(size, kernel(rows, fold_rows(pairs)))

    return with_batch_rule(kernel, stack_tables)


def execute_batch(canvas: Canvas, command: Command, pairs: PairTable, statics: KernelStatics) -> Edit:
    """Apply one command to each canvas of a batch; see :func:`execute`."""
    operation, shape, executor = command.operation, statics.shape, statics.executor
    use = resolve_selection(canvas, command, shape, executor)
    grid, clipboard, target = canvas.grid, canvas.clipboard, canvas.target
    sizes = _new_sizes(canvas.sizes, operation, use)
    needs = {name: need for name, need in _needs(operation, use).items() if statics.has(*_FAMILIES[name])}
    blocks = dict(zip(needs, compact(list(needs.values())), strict=True)) if needs else {}
    if "flood" in blocks:
        grid = _flood(grid, operation, use, blocks["flood"], statics)
    if "shift" in blocks:
        grid, clipboard = _shift((grid, clipboard), canvas.sizes, operation, use, blocks["shift"], statics)
    if "turn" in blocks:
        grid = _turn(grid, canvas.sizes, operation, use, blocks["turn"], statics)
    if "copy_input" in blocks:
        grid, sizes = _copy_input((grid, sizes), (command.row, command.colors), pairs, blocks["copy_input"], statics)
    if "change_pair" in blocks:
        out = (grid, target, clipboard, sizes)
        grid, target, clipboard, sizes = _change_pair(
            out, (command.row, command.colors), pairs, blocks["change_pair"], statics
        )
    always = jnp.any(operation < c.NUM_OPERATIONS)
    grid = _write(grid, operation, use, sizes, statics)
    matches = count_matches(grid, target, functools.partial(staged, executor, always))
    height, width = (sizes[:, i].astype(jnp.int32) for i in (HEIGHT, WIDTH))
    applied = _is_applied(operation, use, canvas.sizes[:, CLIPBOARD_HEIGHT] > 0)
    selection = next_selection(canvas, operation, applied, use, height, width, shape, executor)
    return Canvas(grid, clipboard, target, selection, sizes), matches


def _needs(operation: Int32[Array, " B"], use: ResolvedSelection) -> dict[str, Bool[Array, " B"]]:
    """Which environments need which family; each needs one at most."""
    pastes_or_copies = (operation == c.PASTE) | (operation == c.COPY) | (operation == c.CUT)
    return {
        "flood": _among(operation, c.FLOOD_FILL, c.MOVE_UP - 1) & use.is_single,
        "shift": _among(operation, c.MOVE_UP, c.MOVE_RIGHT) | (pastes_or_copies & ~use.is_empty),
        "turn": _among(operation, c.ROTATE_CLOCKWISE, c.FLIP_UP_DOWN),
        "copy_input": operation == c.COPY_INPUT,
        "change_pair": operation > c.SUBMIT,
    }


def _among(operation: Int32[Array, " B"], first: int, last: int) -> Bool[Array, " B"]:
    return (operation >= first) & (operation <= last)


def _is_applied(
    operation: Int32[Array, " B"], use: ResolvedSelection, holds_content: Bool[Array, " B"]
) -> Bool[Array, " B"]:
    """Whether the operation can apply; one that cannot leaves the canvas as it was."""
    fills = _among(operation, c.FILL, c.FLOOD_FILL - 1)
    floods = _among(operation, c.FLOOD_FILL, c.MOVE_UP - 1)
    pastes = operation == c.PASTE
    needs_cells = fills | pastes | (operation == c.COPY) | (operation == c.CUT) | (operation == c.RESIZE)
    possible = jnp.where(floods, use.is_single, ~(needs_cells & use.is_empty) & (holds_content | ~pastes))
    return possible & (operation >= 0)


def _flood(
    grid: Int8[Array, "B HW"],
    operation: Int32[Array, " B"],
    use: ResolvedSelection,
    blocks: CompactedRows,
    statics: KernelStatics,
) -> Int8[Array, "B HW"]:
    box = use.effective

    def kernel(grid: Array, ins: tuple[Array, Array, Array]) -> Array:
        operation, row, column = ins
        return flood_fill(grid, operation, row, column, statics.shape, statics.executor)

    row, column = jnp.where(blocks.need, box.top, 0), jnp.where(blocks.need, box.left, 0)
    return update_rows(statics.executor, blocks, kernel, grid, (operation, row, column), FLOOD_FRACTION)


def _shift(
    out: tuple[Array, Array],
    sizes: Int8[Array, "B 6"],
    operation: Int32[Array, " B"],
    use: ResolvedSelection,
    blocks: CompactedRows,
    statics: KernelStatics,
) -> tuple[Array, Array]:
    """Move, paste, copy and cut; ``out`` is grid and clipboard."""

    def kernel(out: tuple[Array, Array], ins: tuple[Any, ...]) -> tuple[Array, Array]:
        (grid, clipboard), (operation, box, is_empty, raw, sizes) = out, ins
        active = active_area(sizes[:, HEIGHT], sizes[:, WIDTH], statics.shape)
        cells = effective_cells(box, is_empty, raw, active, statics.shape)
        result = shift_cells(grid, clipboard, operation, box, cells, active, statics.shape, statics.executor)
        copies = ((operation == c.COPY) | (operation == c.CUT))[:, None]
        return jnp.where(copies, grid, result), jnp.where(copies, result, clipboard)

    ins = (operation, use.effective, use.is_empty, use.raw, sizes)
    block_fraction = SHIFT_FRACTION if use.raw is None else SHIFT_FRACTION_OF_MASKS
    return update_rows(statics.executor, blocks, kernel, out, ins, block_fraction)


def _turn(
    grid: Int8[Array, "B HW"],
    sizes: Int8[Array, "B 6"],
    operation: Int32[Array, " B"],
    use: ResolvedSelection,
    blocks: CompactedRows,
    statics: KernelStatics,
) -> Int8[Array, "B HW"]:
    def kernel(grid: Array, ins: tuple[Any, ...]) -> Array:
        operation, box, sizes = ins
        active = active_area(sizes[:, HEIGHT], sizes[:, WIDTH], statics.shape)
        return turn_box(grid, operation, box, active, statics.shape, statics.executor)

    return update_rows(statics.executor, blocks, kernel, grid, (operation, use.effective, sizes), TURN_FRACTION)


def _copy_input(
    out: tuple[Array, Array], row: RowToLoad, pairs: PairTable, blocks: CompactedRows, statics: KernelStatics
) -> tuple[Array, Array]:
    """Make grid and active area those of the pair's input; ``out`` is grid and sizes."""

    def kernel(out: tuple[Array, Array], row: RowToLoad) -> tuple[Array, Array]:
        grid = _load(pairs.input_rows, row)
        active = jnp.stack(grid_size(grid, statics.shape), axis=1)
        return grid, jnp.concatenate([active, out[1][:, TARGET_HEIGHT:]], axis=1)

    return update_rows(statics.executor, blocks, kernel, out, row, LOAD_FRACTION)


def _change_pair(
    out: Loadable, row: RowToLoad, pairs: PairTable, blocks: CompactedRows, statics: KernelStatics
) -> Loadable:
    """Start on the pair in ``row``: its input as grid, its output as target, nothing on the clipboard."""

    def kernel(out: Loadable, row: RowToLoad) -> Loadable:
        grid, target = (_load(rows_of, row) for rows_of in (pairs.input_rows, pairs.output_rows))
        zeros = jnp.zeros_like(out[3][:, 0])
        sizes = [*grid_size(grid, statics.shape), *grid_size(target, statics.shape), zeros, zeros]
        return grid, target, jnp.full_like(out[2], PADDING), jnp.stack(sizes, axis=1)

    return update_rows(statics.executor, blocks, kernel, out, row, LOAD_FRACTION)


def _load(rows_of: Callable[[Array], Array], row: RowToLoad) -> Int8[Array, "B HW"]:
    number, colors = row
    grid = rows_of(number)
    return grid if colors is None else recolor(grid, colors)


def _new_sizes(sizes: Int8[Array, "B 6"], operation: Int32[Array, " B"], use: ResolvedSelection) -> Int8[Array, "B 6"]:
    """Sizes after a resize, copy or cut."""
    box = use.chosen
    resizes = ((operation == c.RESIZE) & ~use.is_empty)[:, None]
    copies = (((operation == c.COPY) | (operation == c.CUT)) & ~use.is_empty)[:, None]
    corner = jnp.stack([box.bottom + 1, box.right + 1], axis=1).astype(jnp.int8)
    copied = jnp.stack([box.bottom - box.top + 1, box.right - box.left + 1], axis=1).astype(jnp.int8)
    active = jnp.where(resizes, corner, sizes[:, :TARGET_HEIGHT])
    held = jnp.where(copies, copied, sizes[:, CLIPBOARD_HEIGHT:])
    return jnp.concatenate([active, sizes[:, TARGET_HEIGHT:CLIPBOARD_HEIGHT], held], axis=1)


def _write(
    grid: Int8[Array, "B HW"],
    operation: Int32[Array, " B"],
    use: ResolvedSelection,
    sizes: Int8[Array, "B 6"],
    statics: KernelStatics,
) -> Int8[Array, "B HW"]:
    """Fill, cut, clear and the edge of a resized grid: one masked write, in place, of the grids that change."""
    always = jnp.any(operation < c.NUM_OPERATIONS)

    def prepare(operation: Array, box: BoundingBox, is_empty: Array) -> tuple[Array, Array, BoundingBox]:
        fills = _among(operation, c.FILL, c.FLOOD_FILL - 1) & ~is_empty
        erases = ((operation == c.CUT) & ~is_empty) | (operation == c.CLEAR)
        resizes = (operation == c.RESIZE) & ~is_empty
        color = jnp.where(fills, operation, jnp.where(erases, 0, -2))
        return fills | erases | resizes, color.astype(jnp.int8), box

    # A stage of its own: as a part of the write it would be repeated for each cell.
    writes, color, box = staged(statics.executor, always, prepare, operation, use.effective, use.is_empty)
    active = active_area(sizes[:, HEIGHT], sizes[:, WIDTH], statics.shape)
    cells = effective_cells(box, use.is_empty, use.raw, active, statics.shape)
    painted = jnp.where(cells & (color >= 0)[:, None], color[:, None], grid)
    new = jnp.where(active, jnp.maximum(painted, jnp.int8(0)), jnp.int8(PADDING))
    return jnp.where(writes[:, None], new, grid)
