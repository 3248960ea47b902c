"""Draw candidate actions: a few of the millions that a canvas has, most of them chosen to make wrong cells right.

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
from jaxarc.fusion import materialize
from jaxarc.prng import as_typed_key, random_bits
from jaxarc.types import PRNGKey

WHOLE_GRID: Final = (*range(c.MOVE_UP, c.FLIP_UP_DOWN + 1), c.CLEAR)
LEAST_DRAWN: Final = 8  # candidates besides the fixed ones
_FLOOD_DIVISOR = 8
_ANYWHERE_DIVISOR = 4
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


class _TargetRuns(NamedTuple):
    """The wrong cells and the runs of equal color in the target, from which boxes are made.

    For the target row ``4 4 4 7 7`` the first columns are ``0 0 0 3 3`` and the last columns ``2 2 2 4 4``.
    """

    target: Int8[Array, "H W"]
    size: Int32[Array, " 2"]  # of the active area
    wrong: Bool[Array, " HW"]  # active in grid and target, of different colors
    first_column: Int32[Array, "H W"]  # of the run of equal color in the target's row
    last_column: Int32[Array, "H W"]
    first_row: Int32[Array, "H W"]  # of the run in the target's column
    last_row: Int32[Array, "H W"]


def candidate_actions(key: PRNGKey, state: ArcEnvState, params: EnvParams, count: int) -> Candidates:
    """Draw ``count`` candidate actions for a state; the mix is described at the top of this file.

    All are inside the canvas. :func:`look_ahead` marks those whose color the config forbids as invalid.

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
    """Do the same as :func:`candidate_actions`, from a canvas state."""
    num_drawn = require_count(count, config)
    shape = config.grid_shape
    form = config.action.selection_format
    # Shares of the drawn ones: of 64 candidates with boxes and all operations 12 are fixed, 52 drawn: 6 floods, 52 // 4
    # = 13 fills anywhere, and 33 guided by wrong cells.
    runs = _find_runs(canvas_state, shape)
    fills = _colors(config, c.FILL)
    floods = _colors(config, c.FLOOD_FILL)
    num_floods = (num_drawn // _FLOOD_DIVISOR if fills else num_drawn) if floods else 0
    num_anywhere = num_drawn // _ANYWHERE_DIVISOR if fills else 0
    num_guided = num_drawn - num_floods - num_anywhere
    words = random_bits(as_typed_key(key), 4 + 2 * num_guided)
    drawn = _join([_fixed(canvas_state, config), _floods(words[0], num_floods, runs, shape)])
    if fills:
        # More fills anywhere are drawn than needed; those behind the first `num_anywhere` are spares for repeats.
        corners = words[4:].reshape(2, num_guided)
        guided = _around_wrong_cells(words[1], corners, num_guided, runs, shape, form)
        anywhere = _anywhere(words[2:4], 2 * num_drawn, fills, runs, form)
        drawn = _join([drawn, guided, jax.tree.map(lambda leaf: leaf[:num_anywhere], anywhere)])
        drawn = _replace_repeats(drawn, jax.tree.map(lambda leaf: leaf[num_anywhere:], anywhere))
    operation, box = drawn
    is_distinct = _is_first(drawn)
    if form == "point":
        return Candidates(PointAction(operation, box[:, 0], box[:, 1]), is_distinct)
    if form == "bbox":
        return Candidates(BboxAction(operation, *box.T), is_distinct)
    cells = _cells_of_boxes(box, shape)
    if fills:
        operation = jnp.concatenate([operation, jnp.asarray(fills, jnp.int32)])
        cells = jnp.concatenate([cells, _wrong_of(fills, runs, shape)])
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
    # A resize selects the target's size, every other fixed operation the whole grid; the last cell is the size less
    # one.
    last = jnp.where(
        (np.asarray(operations) == c.RESIZE)[:, None],
        sizes[TARGET_HEIGHT : TARGET_WIDTH + 1][None] - 1,
        sizes[HEIGHT : WIDTH + 1][None] - 1,
    )
    first = jnp.zeros_like(last)
    if config.action.selection_format == "point":  # its one corner is the last
        first = last
    return _Drawn(jnp.asarray(operations, jnp.int32), jnp.concatenate([first, last], axis=1))


def _find_runs(canvas_state: CanvasState, shape: tuple[int, int]) -> _TargetRuns:
    """Find the runs by running maxima and minima.

    In ``4 4 4 7 7`` runs start at the columns 0 and 3. With each column's own index where a run starts, else 0, that is
    ``0 0 0 3 0``, the running maximum from the left is the start of each cell's run: ``0 0 0 3 3``. Ends go likewise,
    by the running minimum from the right.
    """
    canvas = canvas_state.canvas
    height, width = shape
    target = canvas.target.reshape(shape)
    rows = jnp.arange(height, dtype=jnp.int32)[:, None]
    columns = jnp.arange(width, dtype=jnp.int32)[None]
    across = target[:, 1:] != target[:, :-1]
    down = target[1:] != target[:-1]
    starts = lambda change, axis: jnp.pad(change, _margin(axis, 0), constant_values=True)
    ends = lambda change, axis: jnp.pad(change, _margin(axis, 1), constant_values=True)
    return _TargetRuns(
        target,
        canvas.sizes[HEIGHT : WIDTH + 1].astype(jnp.int32),
        (canvas.grid != canvas.target) & (canvas.grid > c.PADDING) & (canvas.target > c.PADDING),
        lax.cummax(jnp.where(starts(across, 1), columns, 0), 1),
        lax.cummin(jnp.where(ends(across, 1), columns, width), 1, reverse=True),
        lax.cummax(jnp.where(starts(down, 0), rows, 0), 0),
        lax.cummin(jnp.where(ends(down, 0), rows, height), 0, reverse=True),
    )


def _margin(axis: int, end: int) -> list[tuple[int, int]]:
    """Padding of one entry at the start (``end`` 0) or the end (``end`` 1) of an axis."""
    return [(int(i == axis and end == 0), int(i == axis and end == 1)) for i in range(2)]


def _wrong_cells(
    word: UInt32[Array, ""], count: int, runs: _TargetRuns
) -> tuple[Int32[Array, " k"], Int32[Array, " k"]]:
    """Choose wrong cells at even distances from a random one on, no cell more than once more than another.

    With 7 wrong cells, a count of 3 and the random start 5, the step is 7 // 3 = 2 and the ranks are 5, 0, 2. The cell
    of rank ``r`` is the first at which the running count of wrong cells reaches ``r + 1``.

    Returns:
        The cells, cell 0 if none is wrong, and how often each was chosen before.
    """
    number = jnp.cumsum(runs.wrong, dtype=jnp.int32)
    total = jnp.maximum(number[-1], 1)
    choice = jnp.arange(count, dtype=jnp.int32)
    # A step of total // count spreads the ranks over all wrong cells. With fewer wrong cells than draws the step is 1
    # and ranks come again: choice // total says how often a cell was chosen before.
    start = (word % total.astype(jnp.uint32)).astype(jnp.int32)
    rank = (start + choice * jnp.maximum(total // max(count, 1), 1)) % total
    cells = jnp.searchsorted(number, rank + 1, method="scan_unrolled").astype(jnp.int32)
    return jnp.where(cells < number.size, cells, 0), choice // total


def _floods(word: UInt32[Array, ""], count: int, runs: _TargetRuns, shape: tuple[int, int]) -> _Drawn:
    cells, _ = _wrong_cells(word, count, runs)
    row = cells // shape[1]
    column = cells % shape[1]
    color = jnp.maximum(runs.target[row, column].astype(jnp.int32), 0)
    return _Drawn(c.FLOOD_FILL + color, jnp.stack([row, column, row, column], axis=1))


def _around_wrong_cells(
    word: UInt32[Array, ""],
    words: UInt32[Array, "2 k"],
    count: int,
    runs: _TargetRuns,
    shape: tuple[int, int],
    form: str,
) -> _Drawn:
    # Each wrong cell serves five candidates in a row, one for each shape: 12 candidates take ceil(12 / 5) = 3 cells.
    shapes = 1 if form == "point" else _SHAPES
    cells, visits = _wrong_cells(word, -(-count // shapes), runs)
    cells, visits = (jnp.repeat(x, shapes)[:count] for x in (cells, visits))
    row = cells // shape[1]
    column = cells % shape[1]
    color = jnp.maximum(runs.target[row, column].astype(jnp.int32), 0)
    alone = jnp.stack([row, column, row, column], axis=1)
    if form == "point":
        return _Drawn(c.FILL + color, alone)
    left = runs.first_column[row, column]
    right = runs.last_column[row, column]
    top = runs.first_row[row, column]
    bottom = runs.last_row[row, column]
    first, last = _rows_alike(row, column, left, right, runs)
    corner = [_below(words[i], runs.size[i]) for i in range(2)]
    # [5, k, 4], of which each candidate takes one; see the list of shapes at the top of this file.
    boxes = [
        jnp.stack([first, left, last, right], axis=1),
        jnp.stack([top, left, bottom, right], axis=1),
        jnp.stack([top, column, bottom, column], axis=1),
        alone,
        _ordered(row, column, *corner),
    ]
    # The five shapes take turns; when a cell comes again, only the box to a random corner is not a repeat.
    turn = jnp.where(visits > 0, _SHAPES - 1, jnp.arange(count, dtype=jnp.int32) % _SHAPES)
    return _Drawn(c.FILL + color, jnp.stack(boxes)[turn, jnp.arange(count, dtype=jnp.int32)])


def _rows_alike(
    row: Int32[Array, " k"],
    column: Int32[Array, " k"],
    left: Int32[Array, " k"],
    right: Int32[Array, " k"],
    runs: _TargetRuns,
) -> tuple[Int32[Array, " k"], Int32[Array, " k"]]:
    """First and last of the rows around a cell whose target has the cell's color from ``left`` to ``right``.

    A row belongs to them if its run at the cell's column covers ``left .. right``, and if it is in the cell's run of
    the column. The rows extend to the nearest row, above and below, that does not belong.
    """
    height = runs.target.shape[0]
    # bool[k, H]. With `holds` 0 1 1 1 0 around row 2, the nearest rows that do not hold are 0 and 4: first 1, last 3.
    rows = jnp.arange(height, dtype=jnp.int32)[None]
    holds = (runs.first_column.T[column] <= left[:, None]) & (runs.last_column.T[column] >= right[:, None])
    holds = holds & (rows >= runs.first_row[row, column][:, None]) & (rows <= runs.last_row[row, column][:, None])
    first = jnp.where(~holds & (rows < row[:, None]), rows + 1, 0).max(axis=1)
    last = jnp.where(~holds & (rows > row[:, None]), rows - 1, height - 1).min(axis=1)
    return first, last


def _anywhere(
    words: UInt32[Array, " 2"], count: int, operations: tuple[int, ...], runs: _TargetRuns, form: str
) -> _Drawn:
    """Draw fills of random boxes, all different while there are any.

    All fills are numbered ``0 .. total - 1``; the draw goes through them from a random start in steps of a large prime,
    modulo ``total``. That meets each number once before any twice if the step and ``total`` have no common factor, and
    ``total`` is a product of the number of colors and of ``n (n + 1) / 2`` for the sides, so its prime factors are at
    most 31. With 6 fills, start 2 and step 7919, which is 5 modulo 6: ``2 1 0 5 4 3``.
    """
    # A fill's number has a mixed radix: its color, then its columns, then its rows. For a side n there are n (n + 1) /
    # 2 spans, 6 for a side of 3.
    sides = runs.size if form == "point" else runs.size * (runs.size + 1) // 2
    total = jnp.int32(len(operations)) * sides[0] * sides[1]
    step = jnp.asarray(_STEPS, jnp.uint32)[words[0] % jnp.uint32(len(_STEPS))]
    start = words[1] % total.astype(jnp.uint32)
    number = ((start + jnp.arange(count, dtype=jnp.uint32) * step) % total.astype(jnp.uint32)).astype(jnp.int32)
    operation = jnp.asarray(operations, jnp.int32)[number % len(operations)]
    box = number // len(operations)
    rows = _span(box // sides[1], form)
    columns = _span(box % sides[1], form)
    return _Drawn(operation, jnp.stack([rows[0], columns[0], rows[1], columns[1]], axis=1))


def _span(number: Int32[Array, " k"], form: str) -> tuple[Int32[Array, " k"], Int32[Array, " k"]]:
    """First and last of a run of rows or columns by its number: 0..0, 0..1, 1..1, 0..2, ...; a point is its own run."""
    if form == "point":
        return number, number
    # Spans that end at `last` begin at number last (last + 1) / 2: number 4 ends at 2 and is span 4 - 3 = 1 .. 2.
    last = jnp.asarray(_LAST_OF_SPAN)[number]
    return number - last * (last + 1) // 2, last


def _join(parts: list[_Drawn]) -> _Drawn:
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts)


def _replace_repeats(drawn: _Drawn, spare: _Drawn) -> _Drawn:
    """Replace the n-th repeat by the n-th spare."""
    repeats = ~_is_first(drawn)
    # Repeats 0 1 0 1 have the ranks -1 0 0 1: the second candidate gets spare 0, the fourth spare 1.
    rank = jnp.cumsum(repeats, dtype=jnp.int32) - 1
    return _Drawn(
        jnp.where(repeats, spare.operation[rank], drawn.operation),
        jnp.where(repeats[:, None], spare.box[rank], drawn.box),
    )


def _below(words: UInt32[Array, " k"], limit: Int32[Array, ""]) -> Int32[Array, " k"]:
    return (words % limit.astype(jnp.uint32)).astype(jnp.int32)


def _ordered(
    row: Int32[Array, " k"], column: Int32[Array, " k"], other_row: Int32[Array, " k"], other_column: Int32[Array, " k"]
) -> Int32[Array, "k 4"]:
    first = jnp.minimum(row, other_row), jnp.minimum(column, other_column)
    return jnp.stack([*first, jnp.maximum(row, other_row), jnp.maximum(column, other_column)], axis=1)


def _is_first(drawn: _Drawn) -> Bool[Array, " k"]:
    """Which do not repeat an earlier one: compare all pairs of codes, one number for operation and box."""
    code = drawn.operation
    for i in range(4):  # 42 * 30**4 fit
        code = code * c.MAX_GRID_SIZE + drawn.box[:, i]
    code = materialize(code)  # else a CPU computes it again for each pair
    is_before = jnp.tril(jnp.ones((code.size, code.size), jnp.bool_), -1)
    return ~((code[:, None] == code[None]) & is_before).any(axis=1)


def _cells_of_boxes(box: Int32[Array, "k 4"], shape: tuple[int, int]) -> Bool[Array, "k H W"]:
    rows = jnp.arange(shape[0], dtype=jnp.int32)[None]
    columns = jnp.arange(shape[1], dtype=jnp.int32)[None]
    # [k, H] and [k, W], whose product is the cells: 0 1 1 of rows and 1 1 0 of columns fill the four cells at the lower
    # left.
    in_rows = (rows >= box[:, :1]) & (rows <= box[:, 2:3])
    in_columns = (columns >= box[:, 1:2]) & (columns <= box[:, 3:])
    return in_rows[:, :, None] & in_columns[:, None, :]


def _wrong_of(fills: tuple[int, ...], runs: _TargetRuns, shape: tuple[int, int]) -> Bool[Array, "colors H W"]:
    """For each fill, the wrong cells that should have its color."""
    colors = jnp.asarray(fills, jnp.int8)[:, None, None]
    return runs.wrong.reshape(shape)[None] & (runs.target[None] == colors)
