"""An expert that sees the answer and paints it box by box."""

from typing import Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int8, Int32

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.envs.compilation import no_shared_arrays, with_batch_rule
from jaxarc.envs.operations.compaction import choose_executor
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.types import Observation, PRNGKey

_LANES: Final = 8  # boundaries between rows are padded to a multiple of it: loops over them then fill vector registers
_CACHED: Final = 20_000  # numbers of a pass over all boxes that stay in a CPU's cache
_SMALLEST_GROUP: Final = 4  # environments; fewer are compiled to slower loops
_LEAST: Final = -(2**30)  # below the worth of any box


class GreedyPainter(eqx.Module):
    """Resizes once, then always fills the box that makes the most cells right, and submits when all are.

    Of all boxes and colors it takes the one after which the most cells are right; of equals, the one that paints over
    the most cells that were right. So large areas come first, in one color, and details over them later.

    Every fill makes at least one cell more right, because a box of one wrong cell does: an episode takes at most one
    resize, one fill for each wrong cell and one submit.

    It needs observations with ``working_grid`` and ``target_grid`` as planes (``observation.reveal_target``), boxes as
    actions, and fill, resize and submit among the operations. There is no chance in it.
    """

    def __call__(self, key: PRNGKey, observation: Observation) -> BboxAction:
        """Choose the action of one environment, as a :class:`jaxarc.parallel.Policy`."""
        return _choose_native((observation["working_grid"], observation["target_grid"]), ())

    def act(self, observation: Observation) -> BboxAction:
        """Choose the actions of a batch of environments.

        Args:
            observation: ``working_grid`` and ``target_grid`` int8[B, H, W], -1 outside the grids.
        """
        return _choose_rows((observation["working_grid"], observation["target_grid"]), ())


def missing_for_painting(config: JaxArcConfig) -> list[str]:
    """List what a config lacks for a :class:`GreedyPainter`'s actions, a sentence each; empty when all is there."""
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
    """On a CPU a few environments at a time, whose numbers stay in the cache; on an accelerator all at once."""
    choose = lambda pair: _choose(*pair)
    if choose_executor("auto") == "dense":
        return jax.vmap(choose)(grids)
    batch, height, _width = grids[0].shape
    fits = max(_SMALLEST_GROUP, _CACHED // (c.NUM_COLORS * _num_boundaries(height) ** 2))
    group = 1 << fits.bit_length() - 1  # a power of two goes into most batches; what is left over compiles once more
    return jax.lax.map(choose, grids, batch_size=min(group, batch))


_choose_native = with_batch_rule(_choose_rows, no_shared_arrays)


def _choose(working: Int8[Array, "H W"], target: Int8[Array, "H W"]) -> BboxAction:
    size, wanted_size = _size(working), _size(target)
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
    return jnp.stack([(grid[:, 0] > c.PADDING).sum(dtype=jnp.int32), (grid[0] > c.PADDING).sum(dtype=jnp.int32)])


def _best_box(working: Int8[Array, "H W"], target: Int8[Array, "H W"]) -> _Box:
    """Find the best box of any color."""
    above = _worth_above(working, target)
    count = above.shape[-1]
    worst = jnp.full((count, count), _LEAST, jnp.int32)
    one_more = lambda best, color: (jnp.maximum(best, _best_between(color)), None)
    best, _ = jax.lax.scan(one_more, worst, above)
    top, end = _place_of_max(jnp.where(_is_ordered(count), best, _LEAST))
    return _best_columns(above[:, :, end] - above[:, :, top], top, end)


def _best_between(above: Int32[Array, "W M"]) -> Int32[Array, "M M"]:
    """Find what a color's best box is worth between any two boundaries, by Kadane's largest sum of columns in a row."""
    best = running = above[0][None, :] - above[0][:, None]
    for column in above[1:]:  # not a scan: as one expression it is compiled to one loop
        running = jnp.maximum(running, jnp.int32(0)) + (column[None, :] - column[:, None])
        best = jnp.maximum(best, running)
    return best


def _best_columns(worth: Int32[Array, "10 W"], top: Int32[Array, ""], end: Int32[Array, ""]) -> _Box:
    """Find the best columns and color of a box whose rows are known, from the worth of its columns in each color."""
    before = jnp.pad(jnp.cumsum(worth, axis=1), ((0, 0), (1, 0)))
    ordered = _is_ordered(before.shape[1])
    least_before = jnp.where(ordered, before[:, :, None], -_LEAST).min(axis=1)
    color, right = _place_of_max((before - least_before)[:, 1:])
    left = _place_of_max(jnp.where(ordered[:, right + 1], -before[color], _LEAST)[None])[1]
    return _Box(color, top, left, end - 1, right)


def _worth_above(working: Int8[Array, "H W"], target: Int8[Array, "H W"]) -> Int32[Array, "10 W M"]:
    """Sum, per color and column, the worth of painting the cells above each boundary between rows.

    A cell that becomes right is worth N, one that becomes wrong 1 - N, with N above the number of cells: so sums go by
    the cells won, and among equals by the cells painted over. Cells outside the grid count as right: they keep boxes
    inside.
    """
    height, width = working.shape
    won = height * width + 1
    is_right, is_wanted = (working == target).T[None], target.T[None] == _colors()
    worth = _either(is_wanted & ~is_right, won) + _either(is_right & ~is_wanted, 1 - won)
    is_above = jnp.triu(jnp.ones((height, _num_boundaries(height)), jnp.float32), 1)
    sums = jnp.matmul(worth, is_above, precision=jax.lax.Precision.HIGHEST)
    return sums.astype(jnp.int32)


def _either(condition: Bool[Array, "*K W H"], value: int) -> Float32[Array, "*K W H"]:
    return jnp.where(condition, jnp.float32(value), jnp.float32(0))


def _colors() -> Int8[Array, "10 1 1"]:
    return jnp.arange(c.NUM_COLORS, dtype=jnp.int8)[:, None, None]


def _num_boundaries(height: int) -> int:
    """Above and below each row, and some below the last, between which there are no cells."""
    return -(-(height + 1) // _LANES) * _LANES


def _is_ordered(count: int) -> Bool[Array, "M M"]:
    """Whether the row's number is below the column's."""
    return jnp.triu(jnp.ones((count, count), jnp.bool_), 1)


def _place_of_max(x: Int32[Array, "M N"]) -> tuple[Int32[Array, ""], Int32[Array, ""]]:
    """Row and column of the first largest number; on a CPU this takes a tenth of the time of ``argmax``."""
    place = jnp.arange(x.size, dtype=jnp.int32).reshape(x.shape)
    first = jnp.where(x == x.max(), place, x.size).min()
    return first // x.shape[1], first % x.shape[1]
