"""Turn each grid to one orientation first: a rule for columns that fall is then one for rows that move, too.

An orientation is read from the grid alone, and names one of eight symmetries. ``by marker`` turns a grid so that its
rarest color is at the top, and the answer is turned back::

    0 0 0    2 0 3      a program that works to the top        2 0 3    0 0 0
    2 0 2    0 0 0      is one that works to the right, too    0 0 0    2 0 2
    0 0 3    2 0 0                                             2 0 0    0 0 3
"""

from collections.abc import Callable
from typing import Final

import numpy as np

_TRANSPOSED: Final = 1
_COLUMNS: Final = 2
_ROWS: Final = 4


def turned(grid: np.ndarray, symmetry: int) -> np.ndarray:
    """Return a grid under one of the eight symmetries: bit 0 transposes, then bit 1 mirrors columns and bit 2 rows."""
    grid = grid.T if symmetry & _TRANSPOSED else grid
    grid = grid[:, ::-1] if symmetry & _COLUMNS else grid
    return grid[::-1] if symmetry & _ROWS else grid


def turned_back(grid: np.ndarray, symmetry: int) -> np.ndarray:
    """Return the grid that :func:`turned` has turned."""
    grid = turned(grid, symmetry & ~_TRANSPOSED)
    return grid.T if symmetry & _TRANSPOSED else grid


def _striped(grid: np.ndarray) -> int:
    """Transpose where more cells equal the one below them than the one beside them."""
    below, beside = grid[1:] == grid[:-1], grid[:, 1:] == grid[:, :-1]
    return _TRANSPOSED * bool(below.size and beside.size and below.mean() > beside.mean())


def _colored(grid: np.ndarray) -> np.ndarray:
    return grid != np.bincount(grid.ravel()).argmax()


def _rarest(grid: np.ndarray) -> np.ndarray:
    counts = np.bincount(grid.ravel())
    return grid == np.where(counts == 0, grid.size + 1, counts).argmin()


def _offset(cells: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """Return how far some cells are below and right of others, by their means."""
    if not cells.any() or not others.any():
        return 0.0, 0.0
    down, right = np.argwhere(cells).mean(0) - np.argwhere(others).mean(0)
    return float(down), float(right)


def _to_top(down: float, right: float) -> int:
    if abs(right) > abs(down):
        return _TRANSPOSED | _ROWS * (right > 0)
    return _ROWS * (down > 0)


def _to_corner(down: float, right: float) -> int:
    return _ROWS * (down > 0) | _COLUMNS * (right > 0)


ORIENTATIONS: Final[dict[str, Callable[[np.ndarray], int]]] = {
    "none": lambda grid: 0,
    "transpose": lambda grid: _TRANSPOSED,
    "striped": _striped,
    "marker": lambda grid: _to_top(*_offset(_rarest(grid), _colored(grid))),
    "marker_corner": lambda grid: _to_corner(*_offset(_rarest(grid), _colored(grid))),
    "weight": lambda grid: _to_top(*_offset(_colored(grid), np.ones_like(grid))),
    "weight_corner": lambda grid: _to_corner(*_offset(_colored(grid), np.ones_like(grid))),
}
"""Name -> the symmetry of a grid, see :func:`turned`."""
