"""A task turned, recolored and reordered, in plain NumPy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Pair = tuple[np.ndarray, np.ndarray]  # grids without padding

UPSIDE_DOWN, LEFT_TO_RIGHT, TRANSPOSED = 1, 2, 4  # bits of a symmetry, the last one applied first


def augmented_grid(grid: np.ndarray, symmetry: int, colors: np.ndarray | None) -> np.ndarray:
    """Returns a grid without padding, turned by a symmetry of the square, with color c replaced by colors[c]."""
    if symmetry & TRANSPOSED:
        grid = grid.T
    if symmetry & UPSIDE_DOWN:
        grid = grid[::-1]
    if symmetry & LEFT_TO_RIGHT:
        grid = grid[:, ::-1]
    return grid if colors is None else colors[grid]


def augmented_pairs(
    pairs: Sequence[Pair], symmetry: int = 0, colors: np.ndarray | None = None, order: np.ndarray | None = None
) -> list[Pair]:
    """Returns pairs with both grids changed alike; the pair that comes p-th was number order[p]."""
    shown = pairs if order is None else [pairs[place] for place in order[: len(pairs)]]
    return [tuple(augmented_grid(grid, symmetry, colors) for grid in pair) for pair in shown]
