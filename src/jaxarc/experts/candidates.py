"""Candidate actions: a few of the millions that a canvas has, with those among them that mend something.

Of ``count`` candidates the first are the same for every canvas, as far as the config allows them: a submit, a resize to
the target's size, copying the input, and for boxes and masks the operations 20 .. 27 and 31 on the whole grid. In the
mask format ten, the last ones, fill all wrong cells of a color. Of the rest an eighth are flood fills that start at a
wrong cell, a quarter fills of a random box with a random color, and the others fills that start from a wrong cell and
have its right color. Their boxes are, in turn: all rows around the cell whose target is of that color as far as in the
cell's row; row run times column run; the column run; the cell alone; a box to a random corner. Points are the cell
alone. What repeats an earlier candidate is replaced by another random fill, as long as there are any.
"""

from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int8, Int32, UInt32

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.envs.canvas import HEIGHT, TARGET_HEIGHT, TARGET_WIDTH, WIDTH
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction, StructuredAction
from jaxarc.experts.canvas_state import CanvasState, canvas_of_state
from jaxarc.prng import as_typed_key, random_bits
from jaxarc.types import PRNGKey

WHOLE_GRID: Final = (*range(c.MOVE_UP, c.FLIP_UP_DOWN + 1), c.CLEAR)
LEAST_DRAWN: Final = 8  # candidates besides the fixed ones
_FLOOD_DIVISOR, _ANYWHERE_DIVISOR = 8, 4
_STEPS: Final = (7919, 104_729, 611_953, 1_299_709)  # primes; 512 of the largest still fit 32 bits
_LAST_OF_SPAN: Final = np.repeat(np.arange(c.MAX_GRID_SIZE, dtype=np.int32), np.arange(1, c.MAX_GRID_SIZE + 1))
_SHAPES: Final = 5  # boxes around one wrong cell


class Candidates(NamedTuple):
    """k actions, and which of them do not repeat an earlier one."""

    actions: StructuredAction  # with a leading axis of k
    is_distinct: Bool[Array, " k"]


class _Drawn(NamedTuple):
    """Operations on boxes."""

    operation: Int32[Array, " k"]
    box: Int32[Array, "k 4"]  # top, left, bottom, right, inclusive


class _View(NamedTuple):
    """What boxes are made from."""

    target: Int8[Array, "H W"]
    size: Int32[Array, " 2"]  # of the active area
    wrong: Bool[Array, " HW"]  # active in grid and target, of different colors
    first_column: Int32[Array, "H W"]  # of the run of equal color in the target's row
    last_column: Int32[Array, "H W"]
    first_row: Int32[Array, "H W"]  # of the run in the target's column
    last_row: Int32[Array, "H W"]


def candidate_actions(key: PRNGKey, state: ArcEnvState, params: EnvParams, count: int) -> Candidates:
    """Draw ``count`` actions worth looking at in a state; the mix is described at the top of this file.

    All are inside the canvas; one whose color the config forbids is invalid, which :func:`look_ahead` says.

    Args:
        key: random key.
        state: of one environment, made by ``env.reset`` or ``env.step``.
        params: what the environment plays.
        count: k, static.

    Raises:
        ValueError: ``count`` leaves no room beside the fixed candidates, or the config allows neither fills nor floods.
    """
    return candidates_of_canvas(key, canvas_of_state(state, params), count, params.config)


def candidates_of_canvas(key: PRNGKey, canvas_state: CanvasState, count: int, config: JaxArcConfig) -> Candidates:
    """Do what :func:`candidate_actions` does, from a canvas state."""
    num_drawn = require_count(count, config)
    view, shape, form = _look(canvas_state, config.grid_shape), config.grid_shape, config.action.selection_format
    fills, floods = _colors(config, c.FILL), _colors(config, c.FLOOD_FILL)
    num_floods = (num_drawn // _FLOOD_DIVISOR if fills else num_drawn) if floods else 0
    num_anywhere = num_drawn // _ANYWHERE_DIVISOR if fills else 0
    num_guided = num_drawn - num_floods - num_anywhere
    words = random_bits(as_typed_key(key), 4 + 2 * num_guided)
    drawn = _join([_fixed(canvas_state, config), _floods(words[0], num_floods, view, shape)])
    if fills:
        corners = words[4:].reshape(2, num_guided)
        guided = _around_wrong_cells(words[1], corners, num_guided, view, shape, form)
        anywhere = _anywhere(words[2:4], 2 * num_drawn, fills, view, form)
        drawn = _join([drawn, guided, jax.tree.map(lambda leaf: leaf[:num_anywhere], anywhere)])
        drawn = _replace_repeats(drawn, jax.tree.map(lambda leaf: leaf[num_anywhere:], anywhere))
    (operation, box), is_distinct = drawn, _is_first(drawn)
    if form == "point":
        return Candidates(PointAction(operation, box[:, 0], box[:, 1]), is_distinct)
    if form == "bbox":
        return Candidates(BboxAction(operation, *box.T), is_distinct)
    cells = _cells_of(box, shape)
    if fills:
        operation, cells = (
            jnp.concatenate(pair)
            for pair in ((operation, jnp.asarray(fills, jnp.int32)), (cells, _wrong_of(fills, view, shape)))
        )
        is_distinct = jnp.concatenate([is_distinct, jnp.ones(len(fills), jnp.bool_)])
    return Candidates(MaskAction(operation, cells), is_distinct)


def require_count(count: int, config: JaxArcConfig) -> int:
    """Return how many of ``count`` candidates are drawn.

    Raises:
        ValueError: too few, or the config allows neither fills nor floods.
    """
    fills = _colors(config, c.FILL)
    if not fills and not _colors(config, c.FLOOD_FILL):
        raise ValueError(
            f"candidates are fills and floods above all, but action.allowed_operations="
            f"{config.action.allowed_operations} has none; allow at least one of 0..{c.MOVE_UP - 1}"
        )
    fixed = len(_fixed_operations(config)) + (len(fills) if config.action.selection_format == "mask" else 0)
    if count < fixed + LEAST_DRAWN:
        raise ValueError(
            f"the number of candidates must be at least {fixed + LEAST_DRAWN} with these operations "
            f"({fixed} are always there), got {count}"
        )
    return count - fixed


def _colors(config: JaxArcConfig, first: int) -> tuple[int, ...]:
    """The legal operations among ``first .. first + 9``."""
    return tuple(i for i in config.legal_operations if first <= i < first + c.NUM_COLORS)


def _fixed_operations(config: JaxArcConfig) -> tuple[int, ...]:
    whole = () if config.action.selection_format == "point" else WHOLE_GRID
    wanted = (c.SUBMIT, c.RESIZE, c.COPY_INPUT, *whole)
    return tuple(i for i in wanted if i in config.legal_operations)


def _fixed(canvas_state: CanvasState, config: JaxArcConfig) -> _Drawn:
    operations = _fixed_operations(config)
    sizes = canvas_state.canvas.sizes.astype(jnp.int32)
    last = jnp.where(
        (np.asarray(operations) == c.RESIZE)[:, None],
        sizes[TARGET_HEIGHT : TARGET_WIDTH + 1][None] - 1,
        sizes[HEIGHT : WIDTH + 1][None] - 1,
    )
    first = jnp.zeros_like(last)
    if config.action.selection_format == "point":  # the one corner says where
        first = last
    return _Drawn(jnp.asarray(operations, jnp.int32), jnp.concatenate([first, last], axis=1))


def _look(canvas_state: CanvasState, shape: tuple[int, int]) -> _View:
    canvas, (height, width) = canvas_state.canvas, shape
    target = canvas.target.reshape(shape)
    rows, columns = jnp.arange(height, dtype=jnp.int32)[:, None], jnp.arange(width, dtype=jnp.int32)[None]
    across, down = target[:, 1:] != target[:, :-1], target[1:] != target[:-1]
    starts = lambda change, axis: jnp.pad(change, _margin(axis, 0), constant_values=True)
    ends = lambda change, axis: jnp.pad(change, _margin(axis, 1), constant_values=True)
    return _View(
        target,
        canvas.sizes[HEIGHT : WIDTH + 1].astype(jnp.int32),
        (canvas.grid != canvas.target) & (canvas.grid > c.PADDING) & (canvas.target > c.PADDING),
        lax.cummax(jnp.where(starts(across, 1), columns, 0), 1),
        lax.cummin(jnp.where(ends(across, 1), columns, width), 1, reverse=True),
        lax.cummax(jnp.where(starts(down, 0), rows, 0), 0),
        lax.cummin(jnp.where(ends(down, 0), rows, height), 0, reverse=True),
    )


def _margin(axis: int, end: int) -> list[tuple[int, int]]:
    """One more entry at an end of an axis."""
    return [(int(i == axis and end == 0), int(i == axis and end == 1)) for i in range(2)]


def _wrong_cells(word: Array, count: int, view: _View) -> tuple[Int32[Array, " k"], Int32[Array, " k"]]:
    """Choose wrong cells, spread evenly and from a random one on, each as rarely as can be.

    Returns:
        The cells, the first one where none is wrong, and how often each was chosen before.
    """
    number = jnp.cumsum(view.wrong, dtype=jnp.int32)
    total = jnp.maximum(number[-1], 1)
    place = jnp.arange(count, dtype=jnp.int32)
    start = (word % total.astype(jnp.uint32)).astype(jnp.int32)
    rank = (start + place * jnp.maximum(total // max(count, 1), 1)) % total
    cells = jnp.searchsorted(number, rank + 1, method="scan_unrolled").astype(jnp.int32)
    return jnp.where(cells < number.size, cells, 0), place // total


def _floods(word: Array, count: int, view: _View, shape: tuple[int, int]) -> _Drawn:
    cells, _ = _wrong_cells(word, count, view)
    row, column = cells // shape[1], cells % shape[1]
    color = jnp.maximum(view.target[row, column].astype(jnp.int32), 0)
    return _Drawn(c.FLOOD_FILL + color, jnp.stack([row, column, row, column], axis=1))


def _around_wrong_cells(
    word: Array, words: Array, count: int, view: _View, shape: tuple[int, int], form: str
) -> _Drawn:
    shapes = 1 if form == "point" else _SHAPES
    cells, visits = _wrong_cells(word, -(-count // shapes), view)
    cells, visits = (jnp.repeat(x, shapes)[:count] for x in (cells, visits))
    row, column = cells // shape[1], cells % shape[1]
    color = jnp.maximum(view.target[row, column].astype(jnp.int32), 0)
    alone = jnp.stack([row, column, row, column], axis=1)
    if form == "point":
        return _Drawn(c.FILL + color, alone)
    left, right = view.first_column[row, column], view.last_column[row, column]
    top, bottom = view.first_row[row, column], view.last_row[row, column]
    first, last = _rows_alike(row, column, left, right, view)
    corner = [_below(words[i], view.size[i]) for i in range(2)]
    boxes = [
        jnp.stack([first, left, last, right], axis=1),
        jnp.stack([top, left, bottom, right], axis=1),
        jnp.stack([top, column, bottom, column], axis=1),
        alone,
        _ordered(row, column, *corner),
    ]
    turn = jnp.where(visits > 0, _SHAPES - 1, jnp.arange(count, dtype=jnp.int32) % _SHAPES)
    return _Drawn(c.FILL + color, jnp.stack(boxes)[turn, jnp.arange(count, dtype=jnp.int32)])


def _rows_alike(row: Array, column: Array, left: Array, right: Array, view: _View) -> tuple[Array, Array]:
    """First and last of the rows around a cell whose target has the cell's color from ``left`` to ``right``."""
    height = view.target.shape[0]
    rows = jnp.arange(height, dtype=jnp.int32)[None]
    holds = (view.first_column.T[column] <= left[:, None]) & (view.last_column.T[column] >= right[:, None])
    holds = holds & (rows >= view.first_row[row, column][:, None]) & (rows <= view.last_row[row, column][:, None])
    first = jnp.where(~holds & (rows < row[:, None]), rows + 1, 0).max(axis=1)
    last = jnp.where(~holds & (rows > row[:, None]), rows - 1, height - 1).min(axis=1)
    return first, last


def _anywhere(words: UInt32[Array, " 2"], count: int, operations: tuple[int, ...], view: _View, form: str) -> _Drawn:
    """Draw different fills while there are any: all are numbered, and every so many-th is taken, modulo how many.

    Their number is a product of colors and sides, so that a step without a prime factor up to 31 meets each once.
    """
    sides = view.size if form == "point" else view.size * (view.size + 1) // 2
    total = jnp.int32(len(operations)) * sides[0] * sides[1]
    step = jnp.asarray(_STEPS, jnp.uint32)[words[0] % jnp.uint32(len(_STEPS))]
    start = words[1] % total.astype(jnp.uint32)
    place = ((start + jnp.arange(count, dtype=jnp.uint32) * step) % total.astype(jnp.uint32)).astype(jnp.int32)
    operation = jnp.asarray(operations, jnp.int32)[place % len(operations)]
    place = place // len(operations)
    rows, columns = (_span(number, form) for number in (place // sides[1], place % sides[1]))
    return _Drawn(operation, jnp.stack([rows[0], columns[0], rows[1], columns[1]], axis=1))


def _span(number: Int32[Array, " k"], form: str) -> tuple[Int32[Array, " k"], Int32[Array, " k"]]:
    """First and last of a run of rows or columns: 0..0, 0..1, 1..1, 0..2, ...; a point is its own run."""
    if form == "point":
        return number, number
    last = jnp.asarray(_LAST_OF_SPAN)[number]
    return number - last * (last + 1) // 2, last


def _join(parts: list[_Drawn]) -> _Drawn:
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)


def _replace_repeats(drawn: _Drawn, spare: _Drawn) -> _Drawn:
    repeats = ~_is_first(drawn)
    rank = jnp.cumsum(repeats, dtype=jnp.int32) - 1
    return _Drawn(
        jnp.where(repeats, spare.operation[rank], drawn.operation),
        jnp.where(repeats[:, None], spare.box[rank], drawn.box),
    )


def _below(words: UInt32[Array, " k"], limit: Int32[Array, ""]) -> Int32[Array, " k"]:
    return (words % limit.astype(jnp.uint32)).astype(jnp.int32)


def _ordered(row: Array, column: Array, other_row: Array, other_column: Array) -> Int32[Array, "k 4"]:
    first = jnp.minimum(row, other_row), jnp.minimum(column, other_column)
    return jnp.stack([*first, jnp.maximum(row, other_row), jnp.maximum(column, other_column)], axis=1)


def _is_first(drawn: _Drawn) -> Bool[Array, " k"]:
    """Which do not repeat an earlier one."""
    code = drawn.operation
    for i in range(4):  # 42 * 30**4 fit
        code = code * c.MAX_GRID_SIZE + drawn.box[:, i]
    code = lax.optimization_barrier(code)  # or a CPU would make it anew for each pair
    is_before = jnp.tril(jnp.ones((code.size, code.size), jnp.bool_), -1)
    return ~((code[:, None] == code[None]) & is_before).any(axis=1)


def _cells_of(box: Int32[Array, "k 4"], shape: tuple[int, int]) -> Bool[Array, "k H W"]:
    rows, columns = jnp.arange(shape[0], dtype=jnp.int32)[None], jnp.arange(shape[1], dtype=jnp.int32)[None]
    in_rows = (rows >= box[:, :1]) & (rows <= box[:, 2:3])
    in_columns = (columns >= box[:, 1:2]) & (columns <= box[:, 3:])
    return in_rows[:, :, None] & in_columns[:, None, :]


def _wrong_of(fills: tuple[int, ...], view: _View, shape: tuple[int, int]) -> Bool[Array, "colors H W"]:
    """The wrong cells whose right color each operation fills."""
    colors = jnp.asarray(fills, jnp.int8)[:, None, None]
    return view.wrong.reshape(shape)[None] & (view.target[None] == colors)
