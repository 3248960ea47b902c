"""Parts of grids: read, filled, laid over others. Grids are never changed unless it is said."""

import numpy as np

from jaxarc.experts.host_canvas import Bounds, Grid


def content(grid: Grid, box: Bounds) -> Grid:
    """Return a copy of a box's content."""
    top, left, bottom, right = box
    return grid[top : bottom + 1, left : right + 1].copy()


def filled(grid: Grid, box: Bounds, color: int) -> Grid:
    """Return the grid with a box in one color."""
    top, left, bottom, right = box
    result = grid.copy()
    result[top : bottom + 1, left : right + 1] = color
    return result


def pasted(grid: Grid, clipboard: Grid, row: int, column: int) -> Grid:
    """Return the grid with the clipboard at a place where it fits."""
    result = grid.copy()
    result[row : row + clipboard.shape[0], column : column + clipboard.shape[1]] = clipboard
    return result


def resized(grid: Grid, shape: tuple[int, ...]) -> Grid:
    """Return the grid cut to a size, and filled up with 0."""
    return laid_on(np.zeros(shape, np.int8), grid, 0, 0)


def laid_on(ground: np.ndarray, grid: np.ndarray, down: int, across: int) -> np.ndarray:
    """Lay a grid over the ground, which changes, and return the ground.

    The top-left corner comes to a row and column that may lie outside; what hangs over is cut off.
    """
    top, left = max(down, 0), max(across, 0)
    bottom, right = min(down + grid.shape[0], ground.shape[0]), min(across + grid.shape[1], ground.shape[1])
    if top < bottom and left < right:
        ground[top:bottom, left:right] = grid[top - down : bottom - down, left - across : right - across]
    return ground
