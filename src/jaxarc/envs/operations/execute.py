"""The executor: checked actions and canvases in, edited canvases out, for a whole batch at once.

One step, from the environment's method to the new state::

    environment.step              compiled; finds the pairs that the state plays
      transition.take_step        one environment; everything below it works under vmap
        check_action              values in range, legal or not         structured_actions.py
        choose_pair               the pair that operations 35..41 load  pairs.py
        execute                   one environment of a batch kernel     this file, compilation.py
          resolve_selection       chosen cells within the active area   kernels.py
          compact, update_rows    the rows that need a family           compilation.py
          flood, shift, turn      run on those rows only                kernels.py
          copy_input, change_pair                                       pairs.py
          write                   fill, cut, clear, edge of a resize
          count_matches           cells equal to the target             canvas.py
          next_selection          what the state keeps of it            kernels.py
        decide_ending, compute_reward                                   transition.py
        append_record             the action, in the history            state.py
      observe, make_info          what the agent gets                   observations.py

With the native executor one call of the C++ library does what stands below take_step, but for the reward; it is made by
``native_batch.py``. The native executor of this file is for those who edit without a step.

Each family of operations is one kernel, and an operation is of one family at most, so the families' updates commute.
"""

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int8, Int32, PyTree

from jaxarc import constants as c
from jaxarc.constants import PADDING
from jaxarc.envs.batch_rule import with_batch_rule
from jaxarc.envs.canvas import (
    CLIPBOARD_HEIGHT,
    HEIGHT,
    TARGET_HEIGHT,
    WIDTH,
    BoundingBox,
    Canvas,
    CheckedAction,
    active_area,
    count_matches,
    grid_size,
)
from jaxarc.envs.compilation import CompactedRows, KernelStatics, call_native, compact, update_rows
from jaxarc.envs.operations.flood import flood_fill
from jaxarc.envs.operations.kernels import (
    ResolvedSelection,
    effective_cells,
    next_selection,
    rearrange_cells,
    resolve_selection,
    shift_cells,
    turn_box,
)
from jaxarc.envs.pairs import PairTable, stack_tables
from jaxarc.envs.structured_actions import (
    CHANGES_PAIR,
    COPIES,
    ERASES,
    FILLS,
    FLOODS,
    LOADS_INPUT,
    MOVES,
    NEEDS_ACTIVE_CELLS,
    NEEDS_ONE_CELL,
    SHIFTS,
    TURNS,
)
from jaxarc.fusion import compute_once, materialize_call

Grids = Int8[Array, "B HW"]
Sizes = Int8[Array, "B 6"]
Operations = Int32[Array, " B"]
LoadedRows = tuple[Int32[Array, " B"], Int8[Array, "B 10"] | None]  # of the pair table, and the new colors of each
Edit = tuple[Canvas, Int32[Array, "*B"]]  # the edited canvas, and how many of its cells match the target

# Rows of a block of the compact executor, over rows of the batch: about half of those that usually need the family.
FLOOD_FRACTION = 1 / 64
TURN_FRACTION = 1 / 7
LOAD_FRACTION = 1 / 16
SHIFT_FRACTION = 1 / 5
SHIFT_FRACTION_OF_MASKS = 1 / 4  # a random box is often empty, and then not pasted or copied
_FAMILIES = {
    "flood": FLOODS,
    "shift": SHIFTS,
    "turn": TURNS,
    "rearrange": SHIFTS | TURNS,
    "copy_input": LOADS_INPUT,
    "change_pair": CHANGES_PAIR,
}


def execute(canvas: Canvas, action: CheckedAction, pairs: PairTable, statics: KernelStatics) -> Edit:
    """Apply one action to one canvas; under ``jax.vmap``, however nested, one batch kernel serves all canvases.

    Args:
        canvas: the canvas of one environment.
        action: what to do, already checked.
        pairs: the pairs that may be loaded, shared by a batch or one table per environment.
        statics: what is fixed when the kernel is compiled.

    Returns:
        The edited canvas, and the number of cells that match the target.
    """
    return kernel_of(statics)((canvas, action), pairs)


@functools.cache
def kernel_of(statics: KernelStatics) -> Callable[[tuple[Canvas, CheckedAction], PairTable], Edit]:
    """Return the kernel of one environment, the same function for equal statics, so that JAX traces it once."""

    def kernel(rows: tuple[Canvas, CheckedAction], pairs: PairTable) -> Edit:
        return execute_batch(*rows, pairs, statics)

    def with_row(rows: tuple[Canvas, CheckedAction], offset: Int32[Array, "..."]) -> tuple[Canvas, CheckedAction]:
        canvas, action = rows
        return canvas, dataclasses.replace(action, row=action.row + offset)

    return with_batch_rule(kernel, functools.partial(stack_tables, with_row))


def execute_batch(canvas: Canvas, action: CheckedAction, pairs: PairTable, statics: KernelStatics) -> Edit:
    """Apply one action to each canvas of a batch; see :func:`execute`."""
    if statics.executor == "native":
        return _edit_natively(canvas, action, pairs, statics)
    operation = action.operation
    shape = statics.shape
    # B environments with HW = H * W cells each. No row needs two of the families below, so their order does not matter.
    use = resolve_selection(canvas, action, shape)
    grid = canvas.grid
    clipboard = canvas.clipboard
    target = canvas.target
    # Resize, copy and cut: their sizes follow from the box alone. A load writes the sizes of what it loads further
    # down.
    sizes = _new_sizes(canvas.sizes, operation, use)
    load = (action.row, action.colors)
    # Families that cannot occur are not traced: where only fills are legal, `needs` is empty and _write does
    # everything. For the operations "fill, move, flood, move" rows 1 and 3 need a shift and row 2 a flood (of one
    # cell); the fill needs no family.
    needs = {name: need for name, need in _needs(operation, use, statics).items() if statics.has(_FAMILIES[name])}
    rows = dict(zip(needs, compact(list(needs.values())), strict=True)) if needs else {}
    if "flood" in rows:
        grid = _flood(grid, operation, use, rows["flood"], statics)
    # A cut is done in two places: here its cells go to the clipboard, and _write clears them in the grid.
    if "rearrange" in rows:
        grid, clipboard = _rearrange((grid, clipboard), canvas, operation, use, rows["rearrange"], statics)
    if "shift" in rows:
        grid, clipboard = _shift((grid, clipboard), canvas.sizes, operation, use, rows["shift"], statics)
    if "turn" in rows:
        grid = _turn(grid, canvas.sizes, operation, use, rows["turn"], statics)
    if "copy_input" in rows:
        grid, sizes = _copy_input((grid, sizes), load, pairs, rows["copy_input"], statics)
    if "change_pair" in rows:
        out = (grid, target, clipboard, sizes)
        grid, target, clipboard, sizes = _change_pair(out, load, pairs, rows["change_pair"], statics)
    grid = _write(grid, operation, use, sizes, statics)
    if statics.is_fused:
        # All families are computed here; else XLA repeats them in a reset and in a sum.
        grid, clipboard = compute_once((grid, clipboard))
    matches = count_matches(grid, target)
    # The kept selection is limited to the active area as it is now, after a resize or a load.
    height, width = (sizes[:, i].astype(jnp.int32) for i in (HEIGHT, WIDTH))
    applied = _is_applied(operation, use, canvas.sizes[:, CLIPBOARD_HEIGHT] > 0)
    selection = next_selection(canvas, operation, applied, use, height, width, shape)
    return Canvas(grid, clipboard, target, selection, sizes), matches


def _edit_natively(canvas: Canvas, action: CheckedAction, pairs: PairTable, statics: KernelStatics) -> Edit:
    """Do the same by one call of the C++ library, which edits the canvas in place; see :mod:`jaxarc.native`."""
    rows = (canvas.grid, canvas.clipboard, canvas.target, canvas.selection, canvas.sizes)
    colors = () if action.colors is None else (action.colors,)
    arguments = (*rows, action.operation, action.selection, action.row, *colors, pairs.inputs, pairs.outputs)
    numbers = (*statics.shape, action.selection.dtype == jnp.bool_, len(colors))
    # The matches are a number for each row, as the operations are.
    *edited, matches = call_native("edit", numbers, arguments, range(6), 5, _edit_in_xla(statics))
    return Canvas(*edited), matches


@functools.cache
def _edit_in_xla(statics: KernelStatics) -> Callable[..., tuple[Array, ...]]:
    """Return what the library does, of the same arrays."""
    in_xla = dataclasses.replace(statics, executor="compact")

    def edit(*arrays: Array) -> tuple[Array, ...]:
        *first, inputs, outputs = arrays
        rows, operation, selection, row, *colors = first[:5], *first[5:]
        action = CheckedAction(operation, selection, row, *(colors or [None]))
        canvas, matches = execute_batch(Canvas(*rows), action, PairTable(inputs, outputs), in_xla)
        return canvas.grid, canvas.clipboard, canvas.target, canvas.selection, canvas.sizes, matches

    return edit


def _needs(operation: Operations, use: ResolvedSelection, statics: KernelStatics) -> dict[str, Bool[Array, " B"]]:
    """Which environments need which family; each needs one at most."""
    # A flood on none or several cells and a paste, copy or cut of nothing cannot apply: no kernel runs for them. A move
    # of nothing moves the whole active area.
    shifts = SHIFTS.has(operation) & (MOVES.has(operation) | ~use.is_empty)
    turns = TURNS.has(operation)
    return {
        "flood": FLOODS.has(operation) & use.is_single,
        **({"rearrange": shifts | turns} if statics.is_fused else {"shift": shifts, "turn": turns}),
        "copy_input": LOADS_INPUT.has(operation),
        "change_pair": CHANGES_PAIR.has(operation),
    }


def _is_applied(operation: Operations, use: ResolvedSelection, holds_content: Bool[Array, " B"]) -> Bool[Array, " B"]:
    """Whether the operation can apply; one that cannot leaves the canvas as it was."""
    # An operation cannot apply if it lacks cells (a fill, copy, paste, cut or resize of none), if it lacks content (a
    # paste of an empty clipboard), or if it needs exactly one cell (a flood). Moves, turns and the rest always apply.
    needs_cells = NEEDS_ACTIVE_CELLS.has(operation) | (operation == c.RESIZE)
    has_cells = ~(needs_cells & use.is_empty)
    has_content = holds_content | (operation != c.PASTE)
    possible = jnp.where(NEEDS_ONE_CELL.has(operation), use.is_single, has_cells & has_content)
    return possible & (operation >= 0)


def _flood(
    grid: Grids, operation: Operations, use: ResolvedSelection, rows: CompactedRows, statics: KernelStatics
) -> Grids:
    def kernel(grid: Grids, ins: tuple[Operations, Int32[Array, " B"], Int32[Array, " B"]]) -> Grids:
        operation, row, column = ins
        return flood_fill(grid, operation, row, column, statics.shape, statics.is_fused)

    # The last block may be filled up with rows that need no flood; they start at cell (0, 0), which always exists.
    row = jnp.where(rows.need, use.effective.top, 0)
    column = jnp.where(rows.need, use.effective.left, 0)
    return update_rows(statics.executor, rows, kernel, grid, (operation, row, column), FLOOD_FRACTION)


def _shift(
    out: tuple[Grids, Grids],
    sizes: Sizes,
    operation: Operations,
    use: ResolvedSelection,
    rows: CompactedRows,
    statics: KernelStatics,
) -> tuple[Grids, Grids]:
    """Move, paste, copy and cut; ``out`` is grid and clipboard."""

    def kernel(out: tuple[Grids, Grids], ins: PyTree[Array]) -> tuple[Grids, Grids]:
        grid, clipboard = out
        operation, box, is_empty, raw, sizes = ins
        active = active_area(sizes[:, HEIGHT], sizes[:, WIDTH], statics.shape)
        cells = effective_cells(box, is_empty, raw, active, statics.shape)
        result = shift_cells(grid, clipboard, operation, box, cells, active, statics.shape)
        # One result for each row: the new clipboard of a copy or cut, the new grid of a move or paste.
        copies = COPIES.has(operation)[:, None]
        return jnp.where(copies, grid, result), jnp.where(copies, result, clipboard)

    ins = (operation, use.effective, use.is_empty, use.raw, sizes)
    block_fraction = SHIFT_FRACTION if use.raw is None else SHIFT_FRACTION_OF_MASKS
    return update_rows(statics.executor, rows, kernel, out, ins, block_fraction)


def _turn(
    grid: Grids,
    sizes: Sizes,
    operation: Operations,
    use: ResolvedSelection,
    rows: CompactedRows,
    statics: KernelStatics,
) -> Grids:
    """Rotate and flip."""

    def kernel(grid: Grids, ins: tuple[Operations, BoundingBox, Sizes]) -> Grids:
        operation, box, sizes = ins
        active = active_area(sizes[:, HEIGHT], sizes[:, WIDTH], statics.shape)
        return turn_box(grid, operation, box, active, statics.shape)

    return update_rows(statics.executor, rows, kernel, grid, (operation, use.effective, sizes), TURN_FRACTION)


def _rearrange(
    out: tuple[Grids, Grids],
    canvas: Canvas,
    operation: Operations,
    use: ResolvedSelection,
    rows: CompactedRows,
    statics: KernelStatics,
) -> tuple[Grids, Grids]:
    """Shifts and turns of all rows; ``out`` is grid and clipboard."""
    active = active_area(canvas.sizes[:, HEIGHT], canvas.sizes[:, WIDTH], statics.shape)
    # From the canvas as it was, not from what another family made of it: then all families are one kernel.
    new = rearrange_cells(canvas.grid, canvas.clipboard, operation, use, active, statics.shape)
    return jax.tree.map(lambda new, old: jnp.where(rows.need[:, None], new, old), new, out)


def _copy_input(
    out: tuple[Grids, Sizes], load: LoadedRows, pairs: PairTable, rows: CompactedRows, statics: KernelStatics
) -> tuple[Grids, Sizes]:
    """Make grid and active area those of the pair's input; ``out`` is grid and sizes."""

    def kernel(out: tuple[Grids, Sizes], load: LoadedRows) -> tuple[Grids, Sizes]:
        grid = pairs.input_rows(*load)
        # Of the six sizes only the first two, of the grid, are new; those of target and clipboard stay.
        active = jnp.stack(grid_size(grid, statics.shape), axis=1)
        return grid, jnp.concatenate([active, out[1][:, TARGET_HEIGHT:]], axis=1)

    return update_rows(statics.executor, rows, kernel, out, load, LOAD_FRACTION)


def _change_pair(
    out: tuple[Grids, Grids, Grids, Sizes],
    load: LoadedRows,
    pairs: PairTable,
    rows: CompactedRows,
    statics: KernelStatics,
) -> tuple[Grids, Grids, Grids, Sizes]:
    """Start on the pair to load: its input as grid, its output as target, an empty clipboard."""

    def kernel(out: tuple[Grids, Grids, Grids, Sizes], load: LoadedRows) -> tuple[Grids, Grids, Grids, Sizes]:
        grid = pairs.input_rows(*load)
        target = pairs.output_rows(*load)
        # Nothing of the old row is kept: `out` only says which shapes to fill. The clipboard is empty, of size 0 x 0.
        zeros = jnp.zeros_like(out[3][:, 0])
        sizes = [*grid_size(grid, statics.shape), *grid_size(target, statics.shape), zeros, zeros]
        return grid, target, jnp.full_like(out[2], PADDING), jnp.stack(sizes, axis=1)

    return update_rows(statics.executor, rows, kernel, out, load, LOAD_FRACTION)


def _new_sizes(sizes: Sizes, operation: Operations, use: ResolvedSelection) -> Sizes:
    """Sizes after a resize, copy or cut."""
    box = use.chosen
    # A row of sizes holds height and width of the active area, the target and the clipboard. With the box of rows 1..2
    # and columns 0..2, a resize makes the active area 3x3, from the origin to the box's corner; a copy holds 2x3 cells.
    resizes = ((operation == c.RESIZE) & ~use.is_empty)[:, None]
    copies = (COPIES.has(operation) & ~use.is_empty)[:, None]
    corner = jnp.stack([box.bottom + 1, box.right + 1], axis=1).astype(jnp.int8)
    copied = jnp.stack([box.bottom - box.top + 1, box.right - box.left + 1], axis=1).astype(jnp.int8)
    active = jnp.where(resizes, corner, sizes[:, :TARGET_HEIGHT])
    held = jnp.where(copies, copied, sizes[:, CLIPBOARD_HEIGHT:])
    return jnp.concatenate([active, sizes[:, TARGET_HEIGHT:CLIPBOARD_HEIGHT], held], axis=1)


def _write(grid: Grids, operation: Operations, use: ResolvedSelection, sizes: Sizes, statics: KernelStatics) -> Grids:
    """Fill, cut, clear and the edge of a resized grid: one masked write, in place, of the grids that change.

    Every operation reduces to a color for the used cells, or -2 for none; then the active area is enforced: inside it
    padding becomes 0, outside it everything becomes padding. A resize of 2x2 to 2x3 of a 3x3 canvas, ``.`` is padding::

        1 2 .      color -2: no cell is painted      1 2 0
        3 4 .  ->  active area 2x3                   3 4 0
        . . .                                        . . .
    """

    def prepare(
        operation: Operations, box: BoundingBox, is_empty: Bool[Array, " B"]
    ) -> tuple[Bool[Array, " B"], Int8[Array, " B"], BoundingBox]:
        # A cut of nothing does nothing; a clear of nothing clears the whole active area.
        fills = FILLS.has(operation) & ~is_empty
        erases = ERASES.has(operation) & ~(is_empty & (operation == c.CUT))
        resizes = (operation == c.RESIZE) & ~is_empty
        color = jnp.where(fills, operation, jnp.where(erases, 0, -2))
        return fills | erases | resizes, color.astype(jnp.int8), box

    # In a step of its own: as a part of the write it would be repeated for each cell.
    writes, color, box = materialize_call(prepare, operation, use.effective, use.is_empty)
    active = active_area(sizes[:, HEIGHT], sizes[:, WIDTH], statics.shape)
    cells = effective_cells(box, use.is_empty, use.raw, active, statics.shape)
    # One color for each row: 3 for "fill 3", 0 for cut and clear, -2 for a resize, which paints nothing.
    painted = jnp.where(cells & (color >= 0)[:, None], color[:, None], grid)
    # Cells that a resize takes in held padding, -1, and become 0; cells that it leaves out become padding.
    new = jnp.where(active, jnp.maximum(painted, jnp.int8(0)), jnp.int8(PADDING))
    return jnp.where(writes[:, None], new, grid)
