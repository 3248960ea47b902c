"""The greedy painter: a compiled expert that fills, at each step, the box that makes the most cells right.

A box lies between two boundaries of rows and two boundaries of columns. For one color, sum the worth of the cells of
each column above each boundary (:func:`_worth_above`); a difference of two such sums is the worth of the column between
two boundaries of rows, and the best run of columns is found by Kadane's algorithm (:func:`_best_between`). With the
worth of three columns between two boundaries

    column     3  -5   4
    running    3  -2   4      the best run that ends here: the column, plus the run before it if that is above 0
    best       3   3   4

All pairs of boundaries are done at once as a matrix, once for each column and color. Only the best pair's columns and
color are then looked up again (:func:`_best_columns`), where all runs are compared as a matrix of differences.
"""

from typing import Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int8, Int32

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.fusion import compiles_for_cpu
from jaxarc.primitives import with_batch_rule
from jaxarc.types import Observation, PRNGKey, round_up

_LANES: Final = 8  # boundaries between rows are padded to a multiple, so that loops over them fill vector registers
_CACHED: Final = 20_000  # numbers of a pass over all boxes that stay in a CPU's cache
_SMALLEST_GROUP: Final = 4  # environments at a time; fewer compile to slower loops
_LEAST: Final = -(2**30)  # below the worth of any box


class GreedyPainter(eqx.Module):
    """Resizes once, then fills at each step the box that makes the most cells right, and submits when all are right.

    Of all boxes and colors it takes the one after which the most cells are right; of equals, the one that fills the
    most cells that were right before. So it fills large areas first, in one color, and details over them later.

    Every fill makes at least one cell more right, because a box of one wrong cell does: an episode takes at most one
    resize, one fill for each wrong cell and one submit.

    It needs observations with ``working_grid`` and ``target_grid`` as planes (``observation.reveal_target``), boxes as
    actions, and fill, resize and submit among the operations. It uses no random numbers.
    """

    def __call__(self, key: PRNGKey, observation: Observation) -> BboxAction:
        """Choose the action of one environment, as a :class:`jaxarc.parallel.Policy`."""
        return _choose_one((observation["working_grid"], observation["target_grid"]), ())

    def act(self, observation: Observation) -> BboxAction:
        """Choose the actions of a batch of environments.

        Args:
            observation: ``working_grid`` and ``target_grid`` int8[B, H, W], -1 outside the grids.
        """
        return _choose_rows((observation["working_grid"], observation["target_grid"]), ())


def missing_for_painting(config: JaxArcConfig) -> list[str]:
    """List in a sentence each what a config lacks for a :class:`GreedyPainter`; empty if it lacks nothing."""
    problems = []
    if (given := config.action.selection_format) != "bbox":
        problems.append(f"the painter fills boxes, so action.selection_format must be 'bbox', got {given!r}")
    if missing := sorted({*range(c.FILL, c.FILL + c.NUM_COLORS), c.RESIZE, c.SUBMIT} - set(config.legal_operations)):
        problems.append(f"the painter fills, resizes and submits, so action.allowed_operations must include {missing}")
    return problems


class _Box(NamedTuple):
    color: Int32[Array, ""]
    top: Int32[Array, ""]
    left: Int32[Array, ""]
    bottom: Int32[Array, ""]  # inclusive
    right: Int32[Array, ""]  # inclusive


def _choose_rows(grids: tuple[Int8[Array, "B H W"], Int8[Array, "B H W"]], _: tuple[()]) -> BboxAction:
    """Choose for all environments at once, or on a CPU for a few at a time, whose arrays stay in its cache."""
    choose = lambda pair: _choose(*pair)
    if not compiles_for_cpu():
        return jax.vmap(choose)(grids)
    batch, height, _width = grids[0].shape
    # For 30 rows there are 32 boundaries: 20,000 / (10 * 32 * 32) is below 2, so groups have the smallest size, 4.
    fits = max(_SMALLEST_GROUP, _CACHED // (c.NUM_COLORS * _num_boundaries(height) ** 2))
    group = 1 << fits.bit_length() - 1  # a power of two divides most batches; a remainder compiles once more
    return jax.lax.map(choose, grids, batch_size=min(group, batch))


_choose_one = with_batch_rule(_choose_rows)


def _choose(working: Int8[Array, "H W"], target: Int8[Array, "H W"]) -> BboxAction:
    # All three answers are computed and one is taken: a resize while sizes differ, a submit once all is right, else a
    # fill.
    size = _size(working)
    wanted_size = _size(target)
    resizes = (size != wanted_size).any()
    submits = (working == target).all()
    box = _best_box(working, target)
    operation = jnp.where(resizes, c.RESIZE, jnp.where(submits, c.SUBMIT, c.FILL + box.color))
    zero = jnp.int32(0)
    corner = lambda paint, resize: jnp.where(resizes, resize, jnp.where(submits, zero, paint))
    return BboxAction(
        operation,
        corner(box.top, zero),
        corner(box.left, zero),
        corner(box.bottom, wanted_size[0] - 1),
        corner(box.right, wanted_size[1] - 1),
    )


def _size(grid: Int8[Array, "H W"]) -> Int32[Array, " 2"]:
    """Rows and columns of the active area."""
    return jnp.stack([(grid[:, 0] > c.PADDING).sum(dtype=jnp.int32), (grid[0] > c.PADDING).sum(dtype=jnp.int32)])


def _best_box(working: Int8[Array, "H W"], target: Int8[Array, "H W"]) -> _Box:
    """Find the best box of any color."""
    # int32[10, W, M]. The scan keeps, for each of M x M pairs of boundaries, the best worth in any color: one matrix
    # instead of ten. Color and columns of the best pair alone are found again.
    above = _worth_above(working, target)
    count = above.shape[-1]
    worst = jnp.full((count, count), _LEAST, jnp.int32)
    one_more = lambda best, color: (jnp.maximum(best, _best_between(color)), None)
    best, _ = jax.lax.scan(one_more, worst, above)
    top, end = _argmax_2d(jnp.where(_is_ordered(count), best, _LEAST))
    return _best_columns(above[:, :, end] - above[:, :, top], top, end)


def _best_between(above: Int32[Array, "W M"]) -> Int32[Array, "M M"]:
    """Find the worth of a color's best run of columns between any two boundaries; see the top of this file.

    ``column[None, :] - column[:, None]`` is the worth of a column between the boundaries ``i`` (rows of the matrix) and
    ``j`` (its columns), for all pairs; only pairs with ``i < j`` are boxes.
    """
    # Kadane's algorithm on matrices, column by column: a run goes on only if what it has so far is above 0.
    best = running = above[0][None, :] - above[0][:, None]
    for column in above[1:]:  # not a scan: one expression compiles to one loop
        running = jnp.maximum(running, jnp.int32(0)) + (column[None, :] - column[:, None])
        best = jnp.maximum(best, running)
    return best


def _best_columns(worth: Int32[Array, "10 W"], top: Int32[Array, ""], end: Int32[Array, ""]) -> _Box:
    """Find the best columns and color of a box whose rows are known, from the worth of its columns in each color.

    With the worths ``3 -5 4`` the sums before each boundary are ``0 3 -2 2``; the best run ends where the sum minus the
    least sum before it is largest, ``2 - -2 = 4``, and begins at the first boundary with that least sum.
    """
    # int32[10, W + 1], sums before each boundary of columns. least_before[k, j] is the least of the boundaries i < j;
    # none is before boundary 0, whose column is cut off. Entry j - 1 of the rest belongs to the best run that ends with
    # column j - 1.
    before = jnp.pad(jnp.cumsum(worth, axis=1), ((0, 0), (1, 0)))
    ordered = _is_ordered(before.shape[1])
    least_before = jnp.where(ordered, before[:, :, None], -_LEAST).min(axis=1)
    color, right = _argmax_2d((before - least_before)[:, 1:])
    left = _argmax_2d(jnp.where(ordered[:, right + 1], -before[color], _LEAST)[None])[1]
    return _Box(color, top, left, end - 1, right)


def _worth_above(working: Int8[Array, "H W"], target: Int8[Array, "H W"]) -> Int32[Array, "10 W M"]:
    """Sum, per color and column, the worth of filling the cells above each boundary between rows.

    A cell that becomes right is worth N, one that becomes wrong 1 - N, with N above the number of cells: sums compare
    by the cells won, equal ones by the cells that change. Two won and one lost sum to N + 1, above the N of one won.
    Cells outside the grid count as right, which keeps boxes inside. The sums are a product with a triangle of ones, and
    exact, because they stay below 2**24.
    """
    height, width = working.shape
    # In 3x3, won is 10: a cell that becomes right is worth 10, one that is spoiled -9, so two won and one lost are 11.
    won = height * width + 1
    is_right = (working == target).T[None]
    is_wanted = target.T[None] == _colors()
    worth = _either(is_wanted & ~is_right, won) + _either(is_right & ~is_wanted, 1 - won)
    # is_above[r, b] is 1 for the rows r < b above boundary b: for two rows 0 1 1 / 0 0 1, so row 0 counts from boundary
    # 1 on.
    is_above = jnp.triu(jnp.ones((height, _num_boundaries(height)), jnp.float32), 1)
    sums = jnp.matmul(worth, is_above, precision=jax.lax.Precision.HIGHEST)
    return sums.astype(jnp.int32)


def _either(condition: Bool[Array, "*K W H"], value: int) -> Float32[Array, "*K W H"]:
    return jnp.where(condition, jnp.float32(value), jnp.float32(0))


def _colors() -> Int8[Array, "10 1 1"]:
    return jnp.arange(c.NUM_COLORS, dtype=jnp.int8)[:, None, None]


def _num_boundaries(height: int) -> int:
    """Boundaries above and below each row, padded with some below the last, which bound no cells."""
    return round_up(height + 1, _LANES)


def _is_ordered(count: int) -> Bool[Array, "M M"]:
    """Whether the row index is below the column index."""
    return jnp.triu(jnp.ones((count, count), jnp.bool_), 1)


def _argmax_2d(x: Int32[Array, "M N"]) -> tuple[Int32[Array, ""], Int32[Array, ""]]:
    """Row and column of the first largest number; on a CPU this takes a tenth of the time of ``argmax``."""
    # A maximum, then the least index that has it: two plain reductions. In 3 7 / 7 1 the first 7 is index 1: row 0,
    # column 1.
    index = jnp.arange(x.size, dtype=jnp.int32).reshape(x.shape)
    first = jnp.where(x == x.max(), index, x.size).min()
    return first // x.shape[1], first % x.shape[1]
