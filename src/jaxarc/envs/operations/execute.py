"""The executor: checked actions and canvases in, edited canvases out, for a whole batch at once.

One step, from the environment's method to the new state::

    environment.step              compiled; finds the pairs that the state plays
      executor.take_step          the C++ library, or step_by_rules; both work under vmap
        check_action              values in range, legal or not         structured_actions.py
        choose_pair               the pair that operations 35..41 load  pairs.py
        execute                   one environment of a batch kernel     this file, primitives.py
          resolve_selection       chosen cells within the active area   grid_edits.py
          flood_fill              10..19                                flood_fill.py
          rearrange_cells         20..30: moves, turns, copy and paste  grid_edits.py
          load                    32, 35..41                            pairs.py
          write                   fill, cut, clear, edge of a resize
          count_matches           cells equal to the target             canvas.py
          next_selection          what the state keeps of it            grid_edits.py
        decide_ending             the last submit, the step limit       step.py
        append_record             the action, in the history            state.py
      outcome_of                  the reward                            step.py
      observe, make_info          what the agent gets                   observations.py

With the native executor one call of the C++ library does what stands below take_step. The native executor of this file
is for those who edit without a step.

XLA computes each family of operations for all environments, without a branch for which an accelerator would make the
host wait, and takes its result where it is needed. An operation is of one family at most, so their order is free.
"""

import dataclasses
import functools
from collections.abc import Callable

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int8, Int32

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.constants import PADDING
from jaxarc.envs.canvas import (
    CLIPBOARD_HEIGHT,
    HEIGHT,
    TARGET_HEIGHT,
    WIDTH,
    BoundingBox,
    Canvas,
    CheckedAction,
    GridShape,
    active_area,
    count_matches,
    grid_size,
)
from jaxarc.envs.operations.flood_fill import flood_fill
from jaxarc.envs.operations.grid_edits import (
    ResolvedSelection,
    effective_cells,
    next_selection,
    rearrange_cells,
    resolve_selection,
)
from jaxarc.envs.pairs import PairTable, load_grids, stack_tables
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
    OperationSet,
)
from jaxarc.fusion import compute_once, materialize_call
from jaxarc.primitives import choose_executor, native_call, with_batch_rule

Grids = Int8[Array, "B HW"]
Sizes = Int8[Array, "B 6"]
Operations = Int32[Array, " B"]
Edit = tuple[Canvas, Int32[Array, "*B"]]  # the edited canvas, and how many of its cells match the target


@dataclasses.dataclass(frozen=True)
class KernelStatics:
    """The static arguments of the kernels of a step."""

    shape: GridShape  # rows and columns of the canvas, (H, W)
    executor: str  # "native" or "xla"; the results are the same bit for bit
    operations: tuple[int, ...]  # the only ones that can occur; families that cannot are left out

    def has(self, operations: OperationSet) -> bool:
        """Whether any operation of the set can occur."""
        return any(operation in operations for operation in self.operations)


def statics_of(config: JaxArcConfig, operations: tuple[int, ...]) -> KernelStatics:
    """Return the statics of kernels for a config and the backend that programs are compiled for."""
    return KernelStatics(config.grid_shape, choose_executor(config.environment.executor), operations)


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
    sizes = _new_sizes(canvas.sizes, operation, use)  # of a resize, copy or cut; those of a load follow further down
    # Families that cannot occur are not traced: where only fills are legal, _write does everything. A cut is done in
    # two places: here its cells go to the clipboard, and _write clears them in the grid.
    if statics.has(FLOODS):
        grid = _flood(grid, operation, use, shape)
    if statics.has(SHIFTS | TURNS):
        # Of nothing, a move and a turn take the whole active area; a paste, copy or cut does not apply.
        needs = TURNS.has(operation) | (SHIFTS.has(operation) & (MOVES.has(operation) | ~use.is_empty))
        active = active_area(canvas.sizes[:, HEIGHT], canvas.sizes[:, WIDTH], shape)
        # From the canvas as it was, not from what another family made of it: then all families are one kernel.
        new = rearrange_cells(canvas.grid, clipboard, operation, use, active, shape)
        grid, clipboard = _choose(needs, new, (grid, clipboard))
    if statics.has(LOADS_INPUT):
        loaded = load_grids(pairs.inputs, action.row, action.colors)
        # Of the six sizes only the first two, of the grid, are new; those of target and clipboard stay.
        loaded_sizes = jnp.concatenate([_size(loaded, shape), sizes[:, TARGET_HEIGHT:]], axis=1)
        grid, sizes = _choose(LOADS_INPUT.has(operation), (loaded, loaded_sizes), (grid, sizes))
    if statics.has(CHANGES_PAIR):
        # Start on another pair: its input as grid, its output as target, an empty clipboard, of size 0 x 0.
        loaded, answer = (load_grids(grids, action.row, action.colors) for grids in (pairs.inputs, pairs.outputs))
        empty = jnp.full_like(clipboard, PADDING)
        loaded_sizes = jnp.concatenate(
            [_size(loaded, shape), _size(answer, shape), jnp.zeros_like(sizes[:, CLIPBOARD_HEIGHT:])], axis=1
        )
        new, old = (loaded, answer, empty, loaded_sizes), (grid, target, clipboard, sizes)
        grid, target, clipboard, sizes = _choose(CHANGES_PAIR.has(operation), new, old)
    grid = _write(grid, operation, use, sizes, statics)
    # All families are computed here; else an accelerator repeats them in a reset and in a sum.
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
    *edited, matches = native_call("edit", numbers, arguments, range(6), 5, _edit_in_xla(statics))
    return Canvas(*edited), matches


@functools.cache
def _edit_in_xla(statics: KernelStatics) -> Callable[..., tuple[Array, ...]]:
    """Return what the library does, of the same arrays."""
    in_xla = dataclasses.replace(statics, executor="xla")

    def edit(*arrays: Array) -> tuple[Array, ...]:
        *first, inputs, outputs = arrays
        rows, operation, selection, row, *colors = first[:5], *first[5:]
        action = CheckedAction(operation, selection, row, *(colors or [None]))
        canvas, matches = execute_batch(Canvas(*rows), action, PairTable(inputs, outputs), in_xla)
        return canvas.grid, canvas.clipboard, canvas.target, canvas.selection, canvas.sizes, matches

    return edit


def _is_applied(operation: Operations, use: ResolvedSelection, holds_content: Bool[Array, " B"]) -> Bool[Array, " B"]:
    """Whether the operation can apply; one that cannot leaves the canvas as it was."""
    # An operation cannot apply if it lacks cells (a fill, copy, paste, cut or resize of none), if it lacks content (a
    # paste of an empty clipboard), or if it needs exactly one cell (a flood). Moves, turns and the rest always apply.
    needs_cells = NEEDS_ACTIVE_CELLS.has(operation) | (operation == c.RESIZE)
    has_cells = ~(needs_cells & use.is_empty)
    has_content = holds_content | (operation != c.PASTE)
    possible = jnp.where(NEEDS_ONE_CELL.has(operation), use.is_single, has_cells & has_content)
    return possible & (operation >= 0)


def _flood(grid: Grids, operation: Operations, use: ResolvedSelection, shape: GridShape) -> Grids:
    """Flood from the chosen cell; on none or several cells a flood does not apply."""
    needs = FLOODS.has(operation) & use.is_single
    # The others start at cell (0, 0), which always exists.
    row = jnp.where(needs, use.effective.top, 0)
    column = jnp.where(needs, use.effective.left, 0)
    return _choose(needs, (flood_fill(grid, operation, row, column, shape),), (grid,))[0]


def _choose(needs: Bool[Array, " B"], new: tuple[Array, ...], old: tuple[Array, ...]) -> tuple[Array, ...]:
    return tuple(jnp.where(needs[:, None], one, other) for one, other in zip(new, old, strict=True))


def _size(grid: Grids, shape: GridShape) -> Int8[Array, "B 2"]:
    return jnp.stack(grid_size(grid, shape), axis=1)


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
