"""The best rectangle: of all boxes of a map of numbers, the one with the largest sum."""

import functools

import numpy as np
from jaxtyping import Int32


def best_boxes(worth: Int32[np.ndarray, "K h w"]) -> tuple[Int32[np.ndarray, " K"], Int32[np.ndarray, "K 4"]]:
    """Find the box with the largest sum in each of several maps.

    For any two rows, the largest sum between them is the largest difference of two running sums over the columns.

    Returns:
        The sums, and top row, left column, bottom row and right column of the boxes, inclusive.
    """
    if worth.shape[1] > worth.shape[2]:  # the work grows with the square of the first side
        sums, boxes = best_boxes(worth.transpose(0, 2, 1))
        return sums, boxes[:, [1, 0, 3, 2]]
    count, height, width = worth.shape
    tops, ends = _rows_between(height)
    integral = np.zeros((count, height + 1, width + 1), np.int32)
    np.cumsum(np.cumsum(worth, axis=1, dtype=np.int32), axis=2, out=integral[:, 1:, 1:])
    between = integral[:, ends] - integral[:, tops]
    least = np.minimum.accumulate(between[:, :, :-1], axis=2)
    gains = (between[:, :, 1:] - least).reshape(count, -1)
    best = gains.argmax(axis=1)
    every = np.arange(count)
    rows, right = np.divmod(best, width)
    left = (between[every, rows, :-1] == least[every, rows, right][:, None]).argmax(axis=1)
    boxes = np.stack([tops[rows], left, ends[rows] - 1, right], axis=1).astype(np.int32)
    return gains[every, best], boxes


@functools.cache
def _rows_between(height: int) -> tuple[np.ndarray, np.ndarray]:
    """First rows, and rows behind the last, of all spans of rows."""
    return np.triu_indices(height + 1, 1)
