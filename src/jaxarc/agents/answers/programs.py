"""Answers without learning: the outputs of short programs, the best at explaining the demonstrations first.

A program makes a grid of the input (turned, read line by line, cut out, halved, scaled or tiled) and then gives each
color the color that it always becomes in the demonstrations.
"""

from collections.abc import Callable
from typing import Final

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int8, Int32

from jaxarc.agents.answers.candidates import (
    UNKNOWN,
    Puzzle,
    color_counts,
    line_readings,
    recolored,
    sure_colors,
    symmetric_copies,
)
from jaxarc.constants import NUM_COLORS, PADDING

_FACTORS: Final = (2, 3)

Index = Int32[Array, ""]


def search_answers(puzzle: Puzzle) -> Int8[Array, "B N H W"]:
    """Return the answers of all programs, those first that explain most demonstrations, and of these most cells."""
    made = _grids_of(puzzle.grid)
    fit, tables = _fit(puzzle)
    batch, count = fit.shape
    height, width = puzzle.grid.shape[1:]
    answers = _recolor(made.reshape(-1, height, width), tables).reshape(batch, count, height, width)
    # A stable order: of programs that explain equally much, the one that stands first in the list stays first.
    order = jnp.argsort(-fit, axis=1, stable=True)
    return jnp.take_along_axis(answers, order[:, :, None, None], axis=1)


def _fit(puzzle: Puzzle) -> tuple[Float32[Array, "B N"], Int8[Array, "BN 2 10"]]:
    """Return how well each program explains the demonstrations, and its color tables.

    A demonstration that is right in every cell counts 1, and the share of right cells 0.01: so programs are ordered by
    whole demonstrations first, then by cells.
    """
    _, slots, height, width = puzzle.inputs.shape
    weight = puzzle.shown.astype(jnp.float32)
    mean = lambda x: (x * weight).sum(axis=1) / jnp.maximum(weight.sum(axis=1), 1)

    # One program and one demonstration after the other: all colors at once as one-hot vectors, 80 bytes for each cell
    # of 25 programs and 10 demonstrations of 900 cells, would take 18 MB for each task.
    by_slot = lambda x: jnp.moveaxis(x, 1, 0)
    outputs = by_slot(puzzle.outputs)
    shown = by_slot(puzzle.shown)

    def fit_of(made: Int8[Array, "B P H W"]) -> tuple[Float32[Array, " B"], Int8[Array, "B 2 10"]]:
        count = lambda demonstration: color_counts(*(x[:, None] for x in demonstration))
        tables = sure_colors(jax.lax.map(count, (by_slot(made), outputs, shown)).sum(axis=0))
        flat = made.reshape(-1, height, width)
        found = _recolor(flat, jnp.repeat(tables, slots, axis=0)).reshape(made.shape)
        # Two of three demonstrations right, and 9 of 10 cells of the last: 2/3 + 0.01 * (1 + 1 + 0.9) / 3 = 0.676.
        right = _share_right(found, puzzle.outputs)
        return mean((right == 1).astype(jnp.float32)) + 1e-2 * mean(right), tables

    made = jax.lax.map(_grids_of, by_slot(puzzle.inputs))  # [P, B, N, H, W]
    fit, tables = jax.lax.map(fit_of, jnp.moveaxis(made, (0, 1, 2), (2, 1, 0)))  # [N, B], [N, B, 2, 10]
    return fit.T, jnp.moveaxis(tables, 1, 0).reshape(-1, *tables.shape[2:])


def _share_right(found: Int8[Array, "N P H W"], wanted: Int8[Array, "N P H W"]) -> Float32[Array, "N P"]:
    # Cells that are in neither grid do not count, and a cell in only one of them is wrong.
    counts = ((found > PADDING) | (wanted > PADDING)).sum(axis=(2, 3))
    wrong = (found != wanted).sum(axis=(2, 3))
    return 1 - wrong.astype(jnp.float32) / jnp.maximum(counts, 1).astype(jnp.float32)


def _recolor(grids: Int8[Array, "N H W"], tables: Int8[Array, "N 2 10"]) -> Int8[Array, "N H W"]:
    """Give every cell the color that its color always becomes; what is not known stays."""
    own = jnp.arange(NUM_COLORS, dtype=jnp.int8)
    known = jnp.where(tables == UNKNOWN, own, tables)
    return recolored(grids, known)[:, 0]


def _grids_of(grids: Int8[Array, "N H W"]) -> Int8[Array, "N M H W"]:
    """All grids that programs make of an input, before they are recolored."""
    others = jax.vmap(_rebuilt)(grids)
    return jnp.concatenate([symmetric_copies(grids), line_readings(grids), others], axis=1)


def _rebuilt(grid: Int8[Array, "H W"]) -> Int8[Array, "M H W"]:
    """Cut out, halve, scale and tile one grid."""
    # Every grid is a look-up: which row and column of the old grid a cell of the new one takes.
    # Cutting out adds an offset, the lower half of 5 rows takes rows 2 .. 4, scaling by 2 takes rows
    # 0 0 1 1, and tiling twice rows 0 1 0 1.
    inside = grid > PADDING
    height = inside[:, 0].sum(dtype=jnp.int32)
    width = inside[0].sum(dtype=jnp.int32)
    (top, bottom), (left, right) = (_bounds((grid > 0).any(axis=axis)) for axis in (1, 0))
    look_up = lambda new_height, new_width, rows, columns: _look_up(grid, new_height, new_width, rows, columns)
    half_up = (height + 1) // 2
    half_left = (width + 1) // 2
    made = [
        look_up(bottom - top, right - left, lambda row: row + top, lambda column: column + left),
        look_up(half_up, width, lambda row: row, lambda column: column),
        look_up(half_up, width, lambda row: row + height // 2, lambda column: column),
        look_up(height, half_left, lambda row: row, lambda column: column),
        look_up(height, half_left, lambda row: row, lambda column: column + width // 2),
    ]
    for factor in _FACTORS:
        size = height * factor, width * factor
        made.append(look_up(*size, lambda row, by=factor: row // by, lambda column, by=factor: column // by))
        made.append(look_up(*size, lambda row: row % height, lambda column: column % width))
    return jnp.stack(made)


def _look_up(
    grid: Int8[Array, "H W"],
    new_height: Index,
    new_width: Index,
    old_row: Callable[[Array], Array],
    old_column: Callable[[Array], Array],
) -> Int8[Array, "H W"]:
    """Build a grid of the cells of another one; what does not fit the canvas is cut off."""
    height, width = grid.shape
    rows = jnp.arange(height, dtype=jnp.int32)
    columns = jnp.arange(width, dtype=jnp.int32)
    inside = (rows < new_height)[:, None] & (columns < new_width)[None]
    # One gather for each axis: old_row = row // 2 and old_column = column // 2 make the grid 1 2 / 3 4 twice as large,
    # rows 1 1 2 2, 1 1 2 2, 3 3 4 4 and 3 3 4 4. Indices past the canvas are clipped, and masked if they matter.
    taken = grid[jnp.clip(old_row(rows), 0, height - 1)[:, None], jnp.clip(old_column(columns), 0, width - 1)[None]]
    return jnp.where(inside, taken, jnp.int8(PADDING))


def _bounds(filled: Bool[Array, " L"]) -> tuple[Index, Index]:
    """The first filled line and the one after the last; the first line where none is filled."""
    # The lines 0 1 1 0 give 1 and 3; where no line is filled, 0 and 1, so that what is cut out has one cell at least.
    indices = jnp.arange(filled.shape[0], dtype=jnp.int32)
    first = jnp.where(filled, indices, filled.shape[0]).min()
    after = jnp.where(filled, indices + 1, 0).max()
    return jnp.where(filled.any(), first, 0), jnp.maximum(after, 1)
