"""The selection before an operation uses it, and the one that the state remembers after it."""

import functools
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int, Int8, Int32, UInt32

from jaxarc import constants as c
from jaxarc.envs.canvas import (
    HEIGHT,
    WIDTH,
    BoundingBox,
    Canvas,
    Command,
    GridShape,
    clip_box,
    inside,
    pack_box,
    pack_columns,
    whole_if_empty,
)
from jaxarc.envs.operations.compaction import staged


class ResolvedSelection(NamedTuple):
    """The selection as an operation uses it."""

    chosen: BoundingBox  # around the chosen cells, within the active area; raw for a resize
    effective: BoundingBox  # the same, or the whole active area when nothing is chosen
    is_empty: Bool[Array, " B"]  # nothing is chosen
    is_single: Bool[Array, " B"]  # exactly one cell is chosen
    columns: UInt32[Array, "B W"] | None  # the chosen cells as bits; None: every cell of the box
    raw: Bool[Array, "B HW"] | None  # the cells before they are limited to the active area


def resolve_selection(canvas: Canvas, command: Command, shape: GridShape, executor: str) -> ResolvedSelection:
    """Intersect the raw selection with the active area (but for a resize) and find its box."""
    height, width = (canvas.sizes[:, i].astype(jnp.int32) for i in (HEIGHT, WIDTH))
    resizes, columns, raw = command.operation == c.RESIZE, None, None
    height_limit, width_limit = jnp.where(resizes, shape[0], height), jnp.where(resizes, shape[1], width)
    if command.selection.dtype == jnp.bool_:
        raw = command.selection
        stage = functools.partial(staged, executor, jnp.any(command.operation < c.NUM_OPERATIONS))
        columns = stage(functools.partial(pack_columns, shape=shape), raw)
        columns = columns & active_columns(height_limit, width_limit, shape)
        box = stage(_bounding_box, stage(jnp.transpose, columns))  # faster on the words of a batch side by side
    else:
        box = clip_box(BoundingBox(*(command.selection[:, i] for i in range(4))), height_limit, width_limit)
    single = (box.top == box.bottom) & (box.left == box.right)
    return ResolvedSelection(box, whole_if_empty(box, height, width), box.is_empty, single, columns, raw)


def effective_cells(
    effective: BoundingBox,
    is_empty: Bool[Array, " B"],
    raw: Bool[Array, "B HW"] | None,
    active: Bool[Array, "B HW"],
    shape: GridShape,
) -> Bool[Array, "B HW"]:
    """The cells that any operation but a resize uses: the chosen ones, or the whole active area."""
    return inside(effective, shape) if raw is None else active & (raw | is_empty[:, None])


def active_columns(height: Int[Array, " B"], width: Int[Array, " B"], shape: GridShape) -> UInt32[Array, "B W"]:
    """The top-left ``height x width`` cells as bits."""
    rows = (jnp.uint32(1) << height.astype(jnp.uint32)) - jnp.uint32(1)
    return jnp.where(jnp.arange(shape[1], dtype=jnp.int32)[None] < width[:, None], rows[:, None], jnp.uint32(0))


def next_selection(
    before: Canvas,
    operation: Int32[Array, " B"],
    applied: Bool[Array, " B"],
    use: ResolvedSelection,
    height: Int32[Array, " B"],
    width: Int32[Array, " B"],
    shape: GridShape,
    executor: str,
) -> Int8[Array, "B 4"] | UInt32[Array, "B W"]:
    """The selection that the state keeps: as it was where nothing applied, empty on another pair, moved by a move.

    Otherwise the chosen cells within the active area after the operation, which has ``height`` and ``width``.
    """
    if use.columns is None:
        after = pack_box(clip_box(_moved_box(use.chosen, operation), height, width))
        cleared = jnp.array([[0, 0, -1, -1]], jnp.int8)
    else:
        after = _moved_columns(use.columns, operation, executor) & active_columns(height, width, shape)
        cleared = jnp.uint32(0)
    after = jnp.where((operation > c.SUBMIT)[:, None], cleared, after)
    return jnp.where(applied[:, None], after, before.selection)


def _bounding_box(columns: UInt32[Array, "W B"]) -> BoundingBox:
    """Smallest box around the cells; empty (top and left beyond bottom and right) when there is none."""
    place = jnp.uint32(1) << jnp.arange(columns.shape[0], dtype=jnp.uint32)[:, None]
    used = jnp.where(columns != 0, place, jnp.uint32(0))
    (top, bottom), (left, right) = _extent(_union(columns)), _extent(_union(used))
    return BoundingBox(top, left, bottom, right)


def _union(words: UInt32[Array, "W B"]) -> UInt32[Array, " B"]:
    return functools.reduce(jnp.bitwise_or, words)


def _extent(bits: UInt32[Array, " B"]) -> tuple[Int32[Array, " B"], Int32[Array, " B"]]:
    """Places of the lowest and the highest bit; 32 and -1 when there is none."""
    lowest = lax.population_count((bits & -bits) - jnp.uint32(1))
    return lowest.astype(jnp.int32), 31 - lax.clz(bits).astype(jnp.int32)


def _moved_box(box: BoundingBox, operation: Int32[Array, " B"]) -> BoundingBox:
    moved = lambda code: (~box.is_empty & (operation == code)).astype(jnp.int32)
    down = moved(c.MOVE_DOWN) - moved(c.MOVE_UP)
    across = moved(c.MOVE_RIGHT) - moved(c.MOVE_LEFT)
    return BoundingBox(box.top + down, box.left + across, box.bottom + down, box.right + across)


def _moved_columns(columns: UInt32[Array, "B W"], operation: Int32[Array, " B"], executor: str) -> UInt32[Array, "B W"]:
    # Padded in a stage of its own: shifts are then slices, without a question for each word.
    always = jnp.any(operation < c.NUM_OPERATIONS)
    padded = staged(executor, always, lambda columns: jnp.pad(columns, ((0, 0), (1, 1))), columns)
    moved = {
        c.MOVE_UP: columns >> jnp.uint32(1),
        c.MOVE_DOWN: columns << jnp.uint32(1),
        c.MOVE_LEFT: padded[:, 2:],
        c.MOVE_RIGHT: padded[:, :-2],
    }
    for code, after in moved.items():
        columns = jnp.where((operation == code)[:, None], after, columns)
    return columns
