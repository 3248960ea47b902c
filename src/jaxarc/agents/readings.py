"""Readings of a grid: other grids made of it, of which an answer is put together, and what is known of its cells.

A reading gives each cell of the canvas a color, or -1 for none. The grid ``0 3 0 5`` has the readings ``5 0 3 0``
(mirrored), ``3 3 5 -1`` (the nearest color from the cell to the right) and ``0 0 3 5`` (colored cells fall to the
right). Colors are names: the reading of a recolored grid is the reading recolored.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int8, Int32

from jaxarc.constants import NUM_COLORS, PADDING

_NEAR: Final = np.array([(-1, 0), (1, 0), (0, -1), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)], np.int32)
_MOVES: Final = np.concatenate([_NEAR, 2 * _NEAR[:4]])[:, :, None, None]
_SCALES: Final = np.array([2, 3], np.int32)[:, None, None]
_SYMMETRIES: Final = np.arange(8)[:, None, None]  # bit 0: rows mirrored, 1: columns mirrored; 2: swapped after that
_ROWS_MIRRORED, _COLUMNS_MIRRORED, _SWAPPED = (_SYMMETRIES >> bit & 1 == 1 for bit in range(3))

Grid = Int8[Array, "S S"]
Mask = Bool[Array, "S S"]
Places = tuple[Int32[Array, "*K S S"], Int32[Array, "*K S S"]]  # row and column of another cell, for each one


class Reading(NamedTuple):
    """All readings of a grid, and its cells in numbers."""

    colors: Int8[Array, "K H W"]
    cells: Float32[Array, "H W F"]


def read(grid: Int8[Array, "H W"]) -> Reading:
    """Read a grid that stands at the top left of its canvas, -1 outside."""
    # What is alike is one operation of more axes, here and below: each operation takes time to compile. On a square
    # canvas rows and columns are alike.
    height, width = grid.shape
    side = max(height, width)
    grid = jnp.pad(grid, ((0, side - height), (0, side - width)), constant_values=PADDING)
    here: Places = tuple(jnp.indices(grid.shape, dtype=jnp.int32)[:, None])
    whole, content = _Box.of(grid > PADDING), _Box.of(grid > 0)
    groups = [
        *_copies(whole, here),
        _moved(here),
        *_tiles(whole, here),
        *_contents(content, here),
        _halves(whole, here),
        *_fallen(grid, here),
        *_rays(grid, here),
    ]
    both = [jnp.broadcast_arrays(row, column) for row, column in groups]
    row, column = (jnp.concatenate([group[axis] for group in both]) for axis in (0, 1))
    looked = _look(grid, row, column)
    objects = _Objects.of(grid)
    kept = _kept(grid, jnp.concatenate([objects.largest, objects.smallest]))
    boxes = _Box(*(side[:, None, None] for side in jax.vmap(_Box.of)(kept > 0)))
    cut = jax.vmap(_look)(kept, *_cut(boxes, here))
    enclosed = enclosed_cells(grid)
    colors = jnp.concatenate(
        [looked, _on_both_sides(*looked[-4:]), *_commonest(grid), kept, cut, _marks(grid, enclosed, objects)]
    )
    return Reading(colors[:, :height, :width], _describe(grid, here, enclosed, objects)[:height, :width])


class _Box(NamedTuple):
    """A rectangle of a grid, or several."""

    row: Int32[Array, "*K"]
    column: Int32[Array, "*K"]
    height: Int32[Array, "*K"]
    width: Int32[Array, "*K"]

    @classmethod
    def of(cls, mask: Mask) -> "_Box":
        """Return the smallest box around the cells of a mask; one cell where there are none."""
        lines = jnp.stack([mask.any(axis=1), mask.any(axis=0)])
        first = jnp.argmax(lines, axis=1).astype(jnp.int32)
        behind = lines.shape[1] - jnp.argmax(lines[:, ::-1], axis=1).astype(jnp.int32)
        size = jnp.where(mask.any(), behind - first, 1)
        return cls(first[0], first[1], size[0], size[1])


def _look(grid: Grid, row: Int32[Array, "*K S S"], column: Int32[Array, "*K S S"]) -> Int8[Array, "*K S S"]:
    """Look colors up; -1 beyond the canvas."""
    side = len(grid)
    is_there = (row >= 0) & (row < side) & (column >= 0) & (column < side)
    found = grid[jnp.clip(row, 0, side - 1), jnp.clip(column, 0, side - 1)]
    return jnp.where(is_there, found, jnp.int8(PADDING))


def _cut(box: _Box, here: Places) -> Places:
    """Where the cells of a box come from that is cut out and put at the top left."""
    row, column = here
    return jnp.where((row < box.height) & (column < box.width), box.row + row, -1), box.column + column


def _turned_sizes(box: _Box) -> tuple[Int32[Array, "8 1 1"], Int32[Array, "8 1 1"]]:
    return jnp.where(_SWAPPED, box.width, box.height), jnp.where(_SWAPPED, box.height, box.width)


def _turned(box: _Box, row: Int32[Array, "*K S S"], column: Int32[Array, "*K S S"]) -> Places:
    """Return where the cells of a box come from, in its eight symmetries."""
    row, column = jnp.where(_SWAPPED, column, row), jnp.where(_SWAPPED, row, column)
    row = jnp.where(_ROWS_MIRRORED, box.height - 1 - row, row)
    return box.row + row, box.column + jnp.where(_COLUMNS_MIRRORED, box.width - 1 - column, column)


def _turned_cuts(box: _Box, here: Places) -> Places:
    """The same, and nothing outside of the box."""
    height, width = _turned_sizes(box)
    row, column = _turned(box, *here)
    return jnp.where((here[0] < height) & (here[1] < width), row, -1), column


def _copies(whole: _Box, here: Places) -> Iterator[Places]:
    """Yield the grid in its eight symmetries, alone and side by side."""
    height, width = _turned_sizes(whole)
    yield _turned_cuts(whole, here)
    yield _turned(whole, here[0] % height, here[1] % width)


def _moved(here: Places) -> Places:
    """Return the neighbors of each cell, and the cells behind four of them."""
    return here[0] + _MOVES[:, 0], here[1] + _MOVES[:, 1]


def _tiles(whole: _Box, here: Places) -> Iterator[Places]:
    """Yield the grid larger, smaller, and as tiles of which each other one is mirrored."""
    row, column = here
    yield row // _SCALES, column // _SCALES
    yield row * _SCALES, column * _SCALES
    rows, columns = _mirrored_tiles(row, whole.height), _mirrored_tiles(column, whole.width)
    yield jnp.repeat(rows, 2, axis=0), jnp.tile(columns, (2, 1, 1))


def _mirrored_tiles(place: Int32[Array, "S S"], side: Int32[Array, ""]) -> Int32[Array, "2 S S"]:
    """Return ``0 1 2 2 1 0 ...`` and ``2 1 0 0 1 2 ...``, if a side has three cells."""
    tile, inside = place // side, place % side
    is_first_mirrored = np.arange(2)[:, None, None]
    return jnp.where((tile + is_first_mirrored) % 2 == 1, side - 1 - inside, inside)


def _contents(content: _Box, here: Places) -> Iterator[Places]:
    """Yield what is colored, cut out: turned, larger, as tiles; and the grid mirrored about the middle of that."""
    row, column = here
    yield _turned_cuts(content, here)
    large_row, large_column = row // _SCALES, column // _SCALES
    yield _cut(content, (large_row, large_column))
    yield content.row + row % content.height, content.column + column % content.width
    mirrored_row = 2 * content.row + content.height - 1 - row
    mirrored_column = 2 * content.column + content.width - 1 - column
    yield (
        jnp.concatenate([mirrored_row, row, mirrored_row]),
        jnp.concatenate([column, mirrored_column, mirrored_column]),
    )


def _halves(whole: _Box, here: Places) -> Places:
    """Return the upper, lower, left and right half; a row or column in the middle belongs to none."""
    height, width = whole.height, whole.width
    halves = [
        [0, 0, height // 2, width],
        [(height + 1) // 2, 0, height // 2, width],
        [0, 0, height, width // 2],
        [0, (width + 1) // 2, height, width // 2],
    ]
    return _cut(
        _Box(*jnp.stack([jnp.stack([jnp.int32(n) for n in half]) for half in halves], axis=1)[..., None, None]), here
    )


def _fallen(grid: Grid, here: Places) -> Iterator[Places]:
    """Yield the grid after its colored cells have fallen down or up, right or left; no black one is left below them."""
    # What is sorted last lies at the bottom: cells outside stay there.
    lines = jnp.stack([grid, grid.T])[:, None]
    is_late = jnp.concatenate([lines > 0, lines == 0], axis=1).astype(jnp.int8)
    in_columns, in_rows = jnp.argsort(jnp.where(lines < 0, jnp.int8(2), is_late), axis=2).astype(jnp.int32)
    yield in_columns, here[1]
    yield here[0], jnp.swapaxes(in_rows, 1, 2)


def _rays(grid: Grid, here: Places) -> Iterator[Places]:
    """Yield the nearest color above and below, left and right of each cell."""
    side = len(grid)
    colored = jnp.stack([grid > 0, grid.T > 0])[:, None]
    place, other = here[0][..., None], here[1][..., None]  # along a line
    before = jnp.where((other < place) & colored, other, -1).max(axis=2)
    behind = jnp.where((other > place) & colored, other, side).min(axis=2)
    in_columns, in_rows = jnp.stack([before, behind], axis=1)
    yield in_columns, here[1]
    yield here[0], jnp.swapaxes(in_rows, 1, 2)


def _on_both_sides(up: Grid, down: Grid, left: Grid, right: Grid) -> Int8[Array, "4 S S"]:
    """Return the nearest color of a column, of a row, of one of them and of both, where both ways lead to the same."""
    nothing = jnp.int8(PADDING)
    in_column, in_row = jnp.where(up == down, up, nothing), jnp.where(left == right, left, nothing)
    one, both = jnp.where(in_column > 0, in_column, in_row), jnp.where(in_column == in_row, in_column, nothing)
    return jnp.stack([in_column, in_row, one, both])


def _commonest(grid: Grid) -> Iterator[Int8[Array, "K S S"]]:
    """Yield the grid without colors, its commonest and rarest color but black, and those of each row and column.

    Where two are as common there is none. The first two are yielded in place, and everywhere.
    """
    is_color = grid[None] == jnp.arange(1, NUM_COLORS, dtype=jnp.int8)[:, None, None]
    in_rows, in_columns = is_color.sum(axis=2, dtype=jnp.int32), is_color.sum(axis=1, dtype=jnp.int32)
    counts = in_rows.sum(axis=1, keepdims=True)
    rarest = jnp.where(counts > 0, -counts, -grid.size)
    color = _only_highest(jnp.concatenate([counts, rarest, in_rows, in_columns], axis=1))
    two, of_row, of_column = jnp.split(color, [2, 2 + len(grid)])
    everywhere = jnp.broadcast_to(two[:, None, None], (2, *grid.shape))
    yield _kept(grid, jnp.concatenate([grid[None] < 0, grid[None] == everywhere]))
    yield everywhere
    yield jnp.stack([jnp.broadcast_to(of_row[:, None], grid.shape), jnp.broadcast_to(of_column[None], grid.shape)])


def _only_highest(counts: Int32[Array, "9 N"]) -> Int8[Array, " N"]:
    """Return the color of the highest number; -1 for several."""
    is_highest = counts == counts.max(axis=0, keepdims=True)
    color = jnp.argmax(counts, axis=0).astype(jnp.int8) + jnp.int8(1)
    return jnp.where(is_highest.sum(axis=0, dtype=jnp.int32) == 1, color, jnp.int8(PADDING))


def _kept(grid: Grid, masks: Bool[Array, "K S S"]) -> Int8[Array, "K S S"]:
    """Keep some cells; the others of the grid are black."""
    return jnp.where(masks, grid[None], jnp.minimum(grid, jnp.int8(0))[None])


def _marks(grid: Grid, enclosed: Mask, objects: "_Objects") -> Int8[Array, "K S S"]:
    """Mark cells of a kind by black, all others by none: recolored, a mark says what these cells become."""
    is_beside = (_beside(grid, _NEAR, PADDING) > 0).any(axis=0)
    masks = jnp.concatenate([enclosed[None], ((grid == 0) & is_beside)[None], *objects])
    return jnp.where(masks, jnp.int8(0), jnp.int8(PADDING))


class _Objects(NamedTuple):
    """The objects of a grid by size: colored cells that touch, also at a corner; of one color each, and of any."""

    largest: Bool[Array, "2 S S"]
    smallest: Bool[Array, "2 S S"]
    single: Bool[Array, "2 S S"]  # of one cell

    @classmethod
    def of(cls, grid: Grid) -> "_Objects":
        """Find the objects."""
        # Each cell has a number, and takes the highest one that it touches until nothing changes: then all cells of an
        # object have its highest number.
        colored = grid > 0
        numbers = jnp.where(colored, jnp.arange(1, grid.size + 1, dtype=jnp.int32).reshape(grid.shape), 0)
        beside = _beside(grid, _NEAR, PADDING)
        is_touched = colored[None, None] & jnp.stack([beside == grid[None], beside > 0])

        def touched(numbers: Int32[Array, "2 S S"]) -> Int32[Array, "2 S S"]:
            of_others = jax.vmap(lambda one: _beside(one, _NEAR, 0))(numbers)
            return jnp.maximum(numbers, jnp.where(is_touched, of_others, 0).max(axis=1))

        numbers = jnp.stack([numbers, numbers])
        start = (touched(numbers), numbers)
        numbers, _ = jax.lax.while_loop(lambda s: (s[0] != s[1]).any(), lambda s: (touched(s[0]), s[0]), start)

        def sizes(numbers: Int32[Array, "S S"]) -> Int32[Array, "S S"]:
            return jnp.zeros(grid.size + 1, jnp.int32).at[numbers.reshape(-1)].add(1)[numbers]

        size = jnp.where(colored[None], jax.vmap(sizes)(numbers), 0)
        least = jnp.where(colored[None], size, grid.size + 1).min(axis=(1, 2), keepdims=True)
        return cls((size == size.max(axis=(1, 2), keepdims=True)) & colored[None], size == least, size == 1)


def enclosed_cells(grid: Grid) -> Mask:
    """Mark the black cells from which no path over black, up, down, left or right, leads to the edge of the grid.

    Black at the edge is reached; then black beside what is reached, again and again until nothing changes. In a ring of
    eight colored cells of a 3x3 grid the center stays unreached: it is enclosed.
    """
    black = grid == 0
    around = lambda mask: mask[:-2, 1:-1] | mask[2:, 1:-1] | mask[1:-1, :-2] | mask[1:-1, 2:]

    def spread(reached: tuple[Mask, Mask]) -> tuple[Mask, Mask]:
        before = reached[0]
        return before | (black & around(jnp.pad(before, 1))), before

    at_edge = black & around(~jnp.pad(grid > PADDING, 1))
    reached = jax.lax.while_loop(lambda state: (state[0] != state[1]).any(), spread, (at_edge, jnp.zeros_like(black)))
    return black & ~reached[0]


def _beside(grid: Int32[Array, "S S"] | Grid, steps: np.ndarray, outside: int) -> Array:
    """Return what some neighbors of each cell have, ``[K, S, S]``; a number beyond the canvas."""
    side = len(grid)
    padded = jnp.pad(grid, 1, constant_values=outside)
    return jnp.stack([padded[1 + down : 1 + down + side, 1 + right : 1 + right + side] for down, right in steps])


def _describe(grid: Grid, here: Places, enclosed: Mask, objects: _Objects) -> Float32[Array, "S S F"]:
    """Describe each cell by numbers 0 .. 1."""
    row, column = here[0][0], here[1][0]
    inside = grid > PADDING
    beside = _beside(grid, _NEAR[:4], PADDING)
    share = lambda cells: cells.sum(axis=0, dtype=jnp.int32) / 4
    numbers = [
        inside,
        grid == 0,
        grid > 0,
        enclosed,
        share(beside < 0),  # at an edge 1/4, at a corner 1/2
        share((beside == grid[None]) & inside[None]),
        share(beside > 0),
        (row + column) % 2,
        row % 2,
        column % 2,
        *(mask[kind] for kind in range(2) for mask in objects),
    ]
    return jnp.stack([jnp.asarray(number, jnp.float32) for number in numbers], axis=-1)
