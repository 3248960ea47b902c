"""Seeded random cases that try to break an implementation of the operations; every function takes a numpy Generator."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from reference.canvas import NUM_OPERATIONS, PADDING, Canvas

EDITING_OPERATIONS = (*range(35), 39)
SELECTION_KINDS = (
    *("cell", "row", "column", "box", "active", "full", "empty"),
    *("outside", "partly_outside", "one_inside", "speckle", "l_shape", "corners", "ring"),
)
GRID_KINDS = ("ten_colors", "few_colors", "one_color", "checkerboard", "spiral", "serpentine", "stripes")
SIZE_KINDS = ("1x1", "1xN", "Nx1", "full", "full_height", "full_width", "any", "any", "any")
INT32 = np.iinfo(np.int32)


class Cases(NamedTuple):
    """n operations to apply, one per row, with the canvas each starts from."""

    grid: np.ndarray  # int8[n, H, W], -1 outside the active area
    height: np.ndarray  # int32[n], 1 .. H
    width: np.ndarray  # int32[n], 1 .. W
    clipboard: np.ndarray  # int8[n, H, W], -1 where nothing is held, content at the origin
    old_selection: np.ndarray  # bool[n, H, W], the state's selection before, inside the active area
    operation: np.ndarray  # int32[n], one of EDITING_OPERATIONS
    selection: np.ndarray  # bool[n, H, W], the action's raw selection
    pair_input: np.ndarray  # int8[n, H, W]
    target: np.ndarray  # int8[n, H, W], often equal or close to the grid

    def canvas(self, index: int) -> Canvas:
        """Returns the canvas of one case."""
        return Canvas(
            grid=self.grid[index],
            height=int(self.height[index]),
            width=int(self.width[index]),
            clipboard=self.clipboard[index],
            selection=self.old_selection[index],
        )


def random_cases(rng: np.random.Generator, n: int, max_height: int, max_width: int) -> Cases:
    """Returns n cases at one padded size, operations 0..34 and 39 uniformly."""
    drawn = [_case(rng, max_height, max_width) for _ in range(n)]
    return Cases(*(np.stack(column) for column in zip(*drawn, strict=True)))


def random_canvas(rng: np.random.Generator, max_height: int, max_width: int) -> Canvas:
    """Returns one canvas with random grid, active area, clipboard and selection."""
    height, width = random_size(rng, max_height, max_width)
    selection = random_selection(rng, height, width, max_height, max_width)
    selection[height:], selection[:, width:] = False, False
    return Canvas(
        grid=_padded(random_content(rng, height, width), max_height, max_width),
        height=height,
        width=width,
        clipboard=random_clipboard(rng, max_height, max_width),
        selection=selection,
    )


def random_size(rng: np.random.Generator, max_height: int, max_width: int) -> tuple[int, int]:
    """Returns an active (height, width), extreme ones often."""
    height, width = int(rng.integers(1, max_height + 1)), int(rng.integers(1, max_width + 1))
    kind = _pick(rng, SIZE_KINDS)
    if kind in ("1x1", "1xN"):
        height = 1
    if kind in ("1x1", "Nx1"):
        width = 1
    if kind in ("full", "full_height"):
        height = max_height
    if kind in ("full", "full_width"):
        width = max_width
    return height, width


def random_content(rng: np.random.Generator, height: int, width: int, kind: str | None = None) -> np.ndarray:
    """Returns int8[height, width] colors, drawn in one of GRID_KINDS; two colors of a pattern may be equal."""
    kind = kind or _pick(rng, GRID_KINDS)
    if kind == "ten_colors":
        return rng.integers(0, 10, (height, width), dtype=np.int8)
    if kind == "few_colors":
        palette = rng.integers(0, 10, int(rng.integers(2, 4)), dtype=np.int8)
        return np.where(rng.random((height, width)) < rng.uniform(0.4, 0.95), palette[0], rng.choice(palette[1:]))
    ink, ground = rng.integers(0, 10, 2, dtype=np.int8)
    if kind == "one_color":
        return np.full((height, width), ink)
    if kind == "stripes":
        pattern = np.arange(height)[:, None] % 2 + np.zeros(width, int) == 0
    else:
        pattern = {"checkerboard": _checkerboard, "spiral": _spiral, "serpentine": _serpentine}[kind](height, width)
    if rng.random() < 0.5:
        pattern = pattern[::-1]
    if rng.random() < 0.5:
        pattern = pattern[:, ::-1]
    content = np.where(pattern, ink, ground)
    if rng.random() < 0.3:  # one cell that opens or blocks the corridor
        content[rng.integers(height), rng.integers(width)] = rng.choice([ink, ground])
    return content


def random_clipboard(rng: np.random.Generator, max_height: int, max_width: int) -> np.ndarray:
    """Returns int8[H, W]: empty, a full box or a box with holes, always touching row 0 and column 0."""
    kind = _pick(rng, ("empty", "full", "holes", "sparse"))
    clipboard = np.full((max_height, max_width), PADDING, np.int8)
    if kind == "empty":
        return clipboard
    height, width = random_size(rng, max_height, max_width)
    held = rng.random((height, width)) < {"full": 1.0, "holes": 0.7, "sparse": 0.2}[kind]
    held[0, rng.integers(width)] = True
    held[rng.integers(height), 0] = True
    clipboard[:height, :width] = np.where(held, random_content(rng, height, width), PADDING)
    return clipboard


def random_selection(
    rng: np.random.Generator, height: int, width: int, max_height: int, max_width: int, kind: str | None = None
) -> np.ndarray:
    """Returns a raw bool[H, W] selection for an active area of height x width, drawn in one of SELECTION_KINDS."""
    kind = kind or _pick(rng, SELECTION_KINDS)
    selection = np.zeros((max_height, max_width), bool)
    row, column = int(rng.integers(height)), int(rng.integers(width))
    if kind == "cell":
        selection[row, column] = True
    elif kind == "row":
        selection[row, : width if rng.random() < 0.5 else max_width] = True
    elif kind == "column":
        selection[: height if rng.random() < 0.5 else max_height, column] = True
    elif kind == "box":
        selection[_random_range(rng, height), _random_range(rng, width)] = True
    elif kind == "active":
        selection[:height, :width] = True
    elif kind == "full":
        selection[:] = True
    elif kind == "outside":
        selection[_random_range(rng, max_height), _random_range(rng, max_width)] = True
        selection[:height, :width] = False
    elif kind == "partly_outside":
        selection[row : int(rng.integers(height, max_height + 1)), column : int(rng.integers(width, max_width + 1))] = 1
    elif kind == "one_inside":
        selection[:] = rng.random(selection.shape) < 0.3
        selection[:height, :width] = False
        selection[row, column] = True
    elif kind == "speckle":
        selection[:] = rng.random(selection.shape) < rng.choice([0.02, 0.2, 0.5, 0.9])
    elif kind == "l_shape":
        rows, columns = _random_range(rng, height), _random_range(rng, width)
        selection[rows, columns.start if rng.random() < 0.5 else columns.stop - 1] = True
        selection[rows.start if rng.random() < 0.5 else rows.stop - 1, columns] = True
    elif kind == "corners":  # a box whose content is mostly unselected
        selection[row, column] = True
        selection[int(rng.integers(height)), int(rng.integers(width))] = True
    elif kind == "ring":
        rows, columns = _random_range(rng, height), _random_range(rng, width)
        selection[rows, columns] = True
        selection[rows.start + 1 : rows.stop - 1, columns.start + 1 : columns.stop - 1] = False
    elif kind != "empty":
        raise ValueError(f"selection kind is {kind!r}; allowed: {SELECTION_KINDS}")
    return selection


def random_pairs(
    rng: np.random.Generator, num_pairs: int, max_height: int, max_width: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns (input, target) pairs of padded int8[H, W] grids; some inputs are solved already or one cell away."""
    pairs = []
    for _ in range(num_pairs):
        height, width = random_size(rng, max_height, max_width)
        pair_input = _padded(random_content(rng, height, width), max_height, max_width)
        pairs.append((pair_input, _random_target(rng, pair_input, height, width)))
    return pairs


def random_operations(rng: np.random.Generator, n: int, bad_fraction: float = 0.1) -> np.ndarray:
    """Returns int32[n] operation ids 0..41, and ids outside that range for about bad_fraction of them."""
    operations = rng.integers(0, NUM_OPERATIONS, n)
    bad = rng.choice([-1, -2, -34, 42, 43, 76, 127, 255, 256 + 34, INT32.min, INT32.max], n)
    return np.where(rng.random(n) < bad_fraction, bad, operations).astype(np.int32)


def random_points(
    rng: np.random.Generator, n: int, max_height: int, max_width: int, bad_fraction: float = 0.1
) -> np.ndarray:
    """Returns int32[n, 2] points (row, column), out of range in about bad_fraction of the coordinates."""
    rows = _coordinates(rng, n, max_height, bad_fraction)
    return np.stack([rows, _coordinates(rng, n, max_width, bad_fraction)], axis=1)


def random_boxes(
    rng: np.random.Generator, n: int, max_height: int, max_width: int, bad_fraction: float = 0.05
) -> np.ndarray:
    """Returns int32[n, 4] boxes (r1, c1, r2, c2) with corners in either order, some one cell, some out of range."""
    first = random_points(rng, n, max_height, max_width, bad_fraction)
    second = random_points(rng, n, max_height, max_width, bad_fraction)
    same = rng.random((n, 1)) < 0.15
    return np.concatenate([first, np.where(same, first, second)], axis=1)


def random_masks(rng: np.random.Generator, n: int, max_height: int, max_width: int) -> np.ndarray:
    """Returns bool[n, H, W] masks of every kind."""
    sizes = [random_size(rng, max_height, max_width) for _ in range(n)]
    return np.stack([random_selection(rng, *size, max_height, max_width) for size in sizes])


def _case(rng: np.random.Generator, max_height: int, max_width: int) -> tuple:
    canvas = random_canvas(rng, max_height, max_width)
    size = canvas.height, canvas.width
    operation = _pick(rng, EDITING_OPERATIONS)
    floods_one_cell = 10 <= operation <= 19 and rng.random() < 0.85
    kind = _pick(rng, ("cell", "cell", "one_inside")) if floods_one_cell else None
    selection = random_selection(rng, *size, max_height, max_width, kind)
    pair_input = _padded(random_content(rng, *random_size(rng, max_height, max_width)), max_height, max_width)
    target = _random_target(rng, canvas.grid, *size)
    return (
        canvas.grid,
        np.int32(canvas.height),
        np.int32(canvas.width),
        canvas.clipboard,
        canvas.selection,
        np.int32(operation),
        selection,
        pair_input,
        target,
    )


def _random_target(rng: np.random.Generator, grid: np.ndarray, height: int, width: int) -> np.ndarray:
    """Returns a padded target: equal, one cell off, other content or another size with the common cells kept."""
    kind = _pick(rng, ("equal", "one_cell", "content", "size", "unrelated"))
    target = grid.copy()
    if kind == "one_cell":
        target[rng.integers(height), rng.integers(width)] = rng.integers(10)
    elif kind == "content":
        target[:height, :width] = random_content(rng, height, width)
    elif kind in ("size", "unrelated"):
        target_height, target_width = random_size(rng, *grid.shape)
        target = _padded(random_content(rng, target_height, target_width), *grid.shape)
        if kind == "size":
            common = slice(min(height, target_height)), slice(min(width, target_width))
            target[common] = grid[common]
    return target


def _coordinates(rng: np.random.Generator, n: int, size: int, bad_fraction: float) -> np.ndarray:
    """Returns int32[n]: 0..size-1 with both ends often, and just or far outside for about bad_fraction."""
    good = np.where(rng.random(n) < 0.2, rng.choice([0, size - 1], n), rng.integers(0, size, n))
    bad = rng.choice([-1, -2, -size, -size - 1, size, size + 1, 2 * size, 255, 256, INT32.min, INT32.max], n)
    bad = np.where((0 <= bad) & (bad < size), size, bad)
    return np.where(rng.random(n) < bad_fraction, bad, good).astype(np.int32)


def _random_range(rng: np.random.Generator, size: int) -> slice:
    first, last = sorted(rng.integers(0, size, 2).tolist())
    return slice(first, last + 1)


def _padded(content: np.ndarray, max_height: int, max_width: int) -> np.ndarray:
    grid = np.full((max_height, max_width), PADDING, np.int8)
    grid[: content.shape[0], : content.shape[1]] = content
    return grid


def _pick(rng: np.random.Generator, options: tuple):
    return options[int(rng.integers(len(options)))]


@cache
def _checkerboard(height: int, width: int) -> np.ndarray:
    return np.indices((height, width)).sum(axis=0) % 2 == 0


@cache
def _serpentine(height: int, width: int) -> np.ndarray:
    """Returns bool[height, width]: every other row, joined at alternating ends into one corridor."""
    corridor = np.zeros((height, width), bool)
    corridor[::2] = True
    corridor[1::4, -1] = True
    corridor[3::4, 0] = True
    return corridor


@cache
def _spiral(height: int, width: int) -> np.ndarray:
    """Returns bool[height, width]: one corridor from the corner to the center, walls one cell thick."""
    corridor = np.zeros((height, width), bool)
    row, column, row_step, column_step = 0, 0, 0, 1
    corridor[0, 0] = True
    turns = 0
    while turns < 2:
        ahead, beyond = (row + row_step, column + column_step), (row + 2 * row_step, column + 2 * column_step)
        is_free = 0 <= ahead[0] < height and 0 <= ahead[1] < width and not corridor[ahead]
        is_wall_kept = not (0 <= beyond[0] < height and 0 <= beyond[1] < width and corridor[beyond])
        if is_free and is_wall_kept:
            (row, column), turns = ahead, 0
            corridor[ahead] = True
        else:
            row_step, column_step, turns = column_step, -row_step, turns + 1
    return corridor
