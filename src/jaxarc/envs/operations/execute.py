"""The executor: a checked command and a canvas in, the edited canvas out, for a whole batch at once."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jaxtyping import Array, Bool, Int8, Int32

from jaxarc import constants as c
from jaxarc.constants import PADDING
from jaxarc.envs.canvas import CLIPBOARD_HEIGHT, HEIGHT, TARGET_HEIGHT, WIDTH, Canvas, Command, PairTable
from jaxarc.envs.operations.compaction import staged, update_rows
from jaxarc.envs.operations.flood import flood_fill
from jaxarc.envs.operations.geometry import GridShape, active_area, grid_size, inside, per_cell
from jaxarc.envs.operations.selection import UsedSelection, remembered_selection, used_selection
from jaxarc.envs.operations.transform import copy_to_origin, transform
from jaxarc.envs.similarity import count_matches

Loadable = tuple[Array, Array, Array, Array]  # grid, target, clipboard, sizes
Edit = tuple[Canvas, Int32[Array, "*B"]]
# Blocks of the compact executor hold one row in so many: about half of the rows that usually need the family.
FLOOD_DIVISOR, TRANSFORM_DIVISOR, COPY_DIVISOR, LOAD_DIVISOR = 16, 32, 16, 16


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is fixed when the kernel is compiled."""

    shape: GridShape  # rows and columns of the canvas, (H, W)
    executor: str  # "compact" or "dense"; the results are the same bit for bit
    operations: tuple[int, ...]  # the only ones that can occur; families that cannot are left out

    def has(self, first: int, last: int) -> bool:
        """Whether any operation in ``first .. last`` can occur."""
        return any(first <= operation <= last for operation in self.operations)


def execute(canvas: Canvas, command: Command, pairs: PairTable, plan: Plan) -> Edit:
    """Apply one command to one canvas; under ``jax.vmap``, however nested, one batch kernel serves all canvases.

    Args:
        canvas: the canvas of one environment.
        command: what to do, already checked.
        pairs: the pairs that may be loaded, shared by a batch or one table per environment.
        plan: what is fixed when the kernel is compiled.

    Returns:
        The edited canvas, and the number of cells that match the target.
    """
    canvas, command = jax.tree.map(lambda x: x[None], (canvas, command))
    edit = batch_kernel(plan)(canvas, command, pairs)
    return jax.tree.map(lambda x: x[0], edit)


@functools.cache
def batch_kernel(plan: Plan) -> Callable[[Canvas, Command, PairTable], Edit]:
    """Make the function of a batch whose vmap rule folds any further batch axis into the first."""

    @custom_vmap
    def kernel(canvas: Canvas, command: Command, pairs: PairTable) -> Edit:
        return execute_batch(canvas, command, pairs, plan)

    @kernel.def_vmap
    def fold(size: int, is_batched: Any, canvas: Canvas, command: Command, pairs: PairTable) -> tuple[Edit, Any]:
        lead = lambda x, batched: x if batched else jnp.broadcast_to(x, (size, *x.shape))
        canvas, command = jax.tree.map(lead, (canvas, command), (is_batched[0], is_batched[1]))
        row = command.row
        if any(jax.tree.leaves(is_batched[2])):  # one table per environment: stack them into one
            pairs = jax.tree.map(lead, pairs, is_batched[2])
            row = row + jnp.arange(size, dtype=jnp.int32)[:, None] * pairs.inputs.shape[1]
            pairs = jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), pairs)
        command = Command(command.operation, command.selection, row)
        canvas, command = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), (canvas, command))
        edit = jax.tree.map(lambda x: x.reshape(size, -1, *x.shape[1:]), kernel(canvas, command, pairs))
        return edit, jax.tree.map(lambda _: True, edit)

    return kernel


def execute_batch(canvas: Canvas, command: Command, pairs: PairTable, plan: Plan) -> Edit:
    """Apply one command to each canvas of a batch; see :func:`execute`."""
    operation, shape, grid, clipboard, target = (
        command.operation,
        plan.shape,
        canvas.grid,
        canvas.clipboard,
        canvas.target,
    )
    use = used_selection(canvas, command, shape)
    sizes = _new_sizes(canvas.sizes, operation, use)
    if plan.has(c.FLOOD_FILL, c.MOVE_UP - 1):
        grid = _flood(grid, operation, use, plan)
    if plan.has(c.MOVE_UP, c.FLIP_UP_DOWN) or plan.has(c.PASTE, c.PASTE):
        grid = _transform(grid, canvas, operation, use, plan)
    if plan.has(c.COPY, c.COPY) or plan.has(c.CUT, c.CUT):
        clipboard = _copy(clipboard, grid, operation, use, plan)
    if plan.has(c.COPY_INPUT, c.COPY_INPUT):
        grid, sizes = _copy_input((grid, sizes), operation, command.row, pairs, plan)
    if plan.has(c.NEXT_DEMO_PAIR, c.NUM_OPERATIONS):
        grid, target, clipboard, sizes = _change_pair(
            (grid, target, clipboard, sizes), operation, command.row, pairs, plan
        )
    always = jnp.any(operation < c.NUM_OPERATIONS)
    write = functools.partial(_write, shape)
    grid = staged(plan.executor, always, write, grid, operation, use, sizes[:, HEIGHT], sizes[:, WIDTH])
    matches = staged(plan.executor, always, count_matches, grid, target)
    height, width = (sizes[:, i].astype(jnp.int32) for i in (HEIGHT, WIDTH))
    applied = _is_applied(operation, use, canvas.sizes[:, CLIPBOARD_HEIGHT] > 0)
    selection = remembered_selection(canvas, operation, applied, use.chosen, height, width, shape, plan.executor)
    return Canvas(grid, clipboard, target, selection, sizes), matches


def _among(operation: Int32[Array, " B"], first: int, last: int) -> Bool[Array, " B"]:
    return (operation >= first) & (operation <= last)


def _is_applied(
    operation: Int32[Array, " B"], use: UsedSelection, holds_content: Bool[Array, " B"]
) -> Bool[Array, " B"]:
    """Whether the operation can apply; one that cannot leaves the canvas as it was."""
    fills = _among(operation, c.FILL, c.FLOOD_FILL - 1)
    floods = _among(operation, c.FLOOD_FILL, c.MOVE_UP - 1)
    pastes = operation == c.PASTE
    needs_cells = fills | pastes | (operation == c.COPY) | (operation == c.CUT) | (operation == c.RESIZE)
    possible = jnp.where(floods, use.is_single, ~(needs_cells & use.is_empty) & (holds_content | ~pastes))
    return possible & (operation >= 0)


def _flood(
    grid: Int8[Array, "B HW"], operation: Int32[Array, " B"], use: UsedSelection, plan: Plan
) -> Int8[Array, "B HW"]:
    need = _among(operation, c.FLOOD_FILL, c.MOVE_UP - 1) & use.is_single
    box = use.effective.box
    kernel = lambda grid, ins: flood_fill(grid, ins[0], ins[1], ins[2], plan.shape)
    row, column = jnp.where(need, box.top, 0), jnp.where(need, box.left, 0)
    return update_rows(plan.executor, need, kernel, grid, (operation, row, column), FLOOD_DIVISOR)


def _transform(
    grid: Int8[Array, "B HW"],
    canvas: Canvas,
    operation: Int32[Array, " B"],
    use: UsedSelection,
    plan: Plan,
) -> Int8[Array, "B HW"]:
    pastes = (operation == c.PASTE) & ~use.is_empty
    need = _among(operation, c.MOVE_UP, c.FLIP_UP_DOWN) | pastes

    def kernel(grid: Array, ins: tuple[Any, ...]) -> Array:
        clipboard, operation, selection, sizes = ins
        active = active_area(sizes[:, HEIGHT], sizes[:, WIDTH], plan.shape)
        return transform(grid, clipboard, operation, selection, active, plan.shape, plan.executor)

    ins = (canvas.clipboard, operation, use.effective, canvas.sizes)
    return update_rows(plan.executor, need, kernel, grid, ins, TRANSFORM_DIVISOR)


def _copy(
    clipboard: Int8[Array, "B HW"],
    grid: Int8[Array, "B HW"],
    operation: Int32[Array, " B"],
    use: UsedSelection,
    plan: Plan,
) -> Int8[Array, "B HW"]:
    need = ((operation == c.COPY) | (operation == c.CUT)) & ~use.is_empty
    kernel = lambda _, ins: copy_to_origin(ins[0], ins[1], plan.shape, plan.executor)
    return update_rows(plan.executor, need, kernel, clipboard, (grid, use.chosen), COPY_DIVISOR)


def _copy_input(
    out: tuple[Array, Array], operation: Int32[Array, " B"], row: Int32[Array, " B"], pairs: PairTable, plan: Plan
) -> tuple[Array, Array]:
    """Make grid and active area those of the pair's input; ``out`` is grid and sizes."""

    def kernel(out: tuple[Array, Array], row: Int32[Array, " K"]) -> tuple[Array, Array]:
        grid = jnp.take(pairs.inputs, row, axis=0, mode="clip")
        active = jnp.stack(grid_size(grid, plan.shape), axis=1)
        return grid, jnp.concatenate([active, out[1][:, TARGET_HEIGHT:]], axis=1)

    return update_rows(plan.executor, operation == c.COPY_INPUT, kernel, out, row, LOAD_DIVISOR)


def _change_pair(
    out: Loadable, operation: Int32[Array, " B"], row: Int32[Array, " B"], pairs: PairTable, plan: Plan
) -> Loadable:
    """Start on the pair in ``row``: its input as grid, its output as target, nothing on the clipboard."""

    def kernel(out: Loadable, row: Int32[Array, " K"]) -> Loadable:
        grid, target = (jnp.take(table, row, axis=0, mode="clip") for table in (pairs.inputs, pairs.outputs))
        nothing = jnp.zeros_like(out[3][:, 0])
        sizes = jnp.stack([*grid_size(grid, plan.shape), *grid_size(target, plan.shape), nothing, nothing], axis=1)
        return grid, target, jnp.full_like(out[2], PADDING), sizes

    return update_rows(plan.executor, operation > c.SUBMIT, kernel, out, row, LOAD_DIVISOR)


def _new_sizes(sizes: Int8[Array, "B 6"], operation: Int32[Array, " B"], use: UsedSelection) -> Int8[Array, "B 6"]:
    """Sizes after a resize, copy or cut."""
    box = use.chosen.box
    resizes = ((operation == c.RESIZE) & ~use.is_empty)[:, None]
    copies = (((operation == c.COPY) | (operation == c.CUT)) & ~use.is_empty)[:, None]
    corner = jnp.stack([box.bottom + 1, box.right + 1], axis=1).astype(jnp.int8)
    copied = jnp.stack([box.bottom - box.top + 1, box.right - box.left + 1], axis=1).astype(jnp.int8)
    active = jnp.where(resizes, corner, sizes[:, :TARGET_HEIGHT])
    held = jnp.where(copies, copied, sizes[:, CLIPBOARD_HEIGHT:])
    return jnp.concatenate([active, sizes[:, TARGET_HEIGHT:CLIPBOARD_HEIGHT], held], axis=1)


def _write(
    shape: GridShape,
    grid: Int8[Array, "B HW"],
    operation: Int32[Array, " B"],
    use: UsedSelection,
    height: Int8[Array, " B"],
    width: Int8[Array, " B"],
) -> Int8[Array, "B HW"]:
    """Fill, cut, clear and the edge of a resized grid: one masked write for every environment."""
    leave = jnp.int32(-2)
    fills = _among(operation, c.FILL, c.FLOOD_FILL - 1) & ~use.is_empty
    erases = ((operation == c.CUT) & ~use.is_empty) | (operation == c.CLEAR)
    color = per_cell(jnp.where(fills, operation, jnp.where(erases, 0, leave)))
    selection = use.effective
    cells = inside(selection.box, shape) if selection.cells is None else selection.cells
    painted = jnp.where(cells & (color >= 0), color, grid)
    active = active_area(height, width, shape)
    return jnp.where(active, jnp.maximum(painted, jnp.int8(0)), jnp.int8(PADDING))
