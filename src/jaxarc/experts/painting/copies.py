"""Find boxes that are worth copying and where to paste them, from the best sums over boxes and over shifts."""

import functools
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Int32, Int64, Shaped
from numpy.lib.stride_tricks import sliding_window_view

from jaxarc import constants as c
from jaxarc.experts.host_canvas import Bounds, Grid
from jaxarc.experts.painting.beam import RECTANGLE, SearchNode, Target

_NEVER: Final = -1_000_000  # gain of a cell outside the source; the gains of all other cells do not make up for it
_MAX_PASTES: Final = 8  # of one copy, one after the other
_FAST_LENGTHS: Final = sorted(
    two * three * five for two in (1, 2, 4, 8, 16, 32, 64) for three in (1, 3, 9) for five in (1, 5)
)
"""Lengths that Fourier transforms are fast for, up to more than two sides of a grid."""


def crop(grid: Grid, box: Bounds) -> Grid:
    """Return a copy of a box's content."""
    top, left, bottom, right = box
    return grid[top : bottom + 1, left : right + 1].copy()


def fill_box(grid: Grid, box: Bounds, color: int) -> Grid:
    """Return the grid with a box in one color."""
    top, left, bottom, right = box
    result = grid.copy()
    result[top : bottom + 1, left : right + 1] = color
    return result


def paste(grid: Grid, clipboard: Grid, row: int, column: int) -> Grid:
    """Return the grid with the clipboard at a position where it fits."""
    result = grid.copy()
    result[row : row + clipboard.shape[0], column : column + clipboard.shape[1]] = clipboard
    return result


def resize(grid: Grid, shape: tuple[int, ...]) -> Grid:
    """Return the grid cut to a size, and padded with 0."""
    return overlay(np.zeros(shape, np.int8), grid, 0, 0)


def overlay(
    ground: Shaped[np.ndarray, "h w"], grid: Shaped[np.ndarray, "h2 w2"], down: int, across: int
) -> Shaped[np.ndarray, "h w"]:
    """Write a grid over the ground, in place, and return the ground.

    Row ``down`` and column ``across``, which may be negative, receive the top-left corner; the rest is clipped.
    """
    # The part of the grid that is over the ground: in 3 rows of ground, 2 rows at down = -1 show their row 1 in row 0.
    top = max(down, 0)
    left = max(across, 0)
    bottom = min(down + grid.shape[0], ground.shape[0])
    right = min(across + grid.shape[1], ground.shape[1])
    if top < bottom and left < right:
        ground[top:bottom, left:right] = grid[top - down : bottom - down, left - across : right - across]
    return ground


def best_boxes(values: Int32[np.ndarray, "K h w"]) -> tuple[Int32[np.ndarray, " K"], Int32[np.ndarray, "K 4"]]:
    """Find the box with the largest sum in each of several maps.

    For any two rows, the sums of the columns between them form a line of numbers, and the best box is the run of them
    with the largest sum: the largest difference of two running sums, the later minus an earlier one. For the line
    ``2 -3 4 1`` the running sums are ``0 2 -1 3 4`` and the least before each of the last four is ``0 0 -1 -1``; the
    largest difference is 4 - -1 = 5, the columns 2 and 3. All pairs of rows are done at once.

    Returns:
        The sums, and top row, left column, bottom row and right column of the boxes, inclusive.
    """
    if values.shape[1] > values.shape[2]:  # the work grows with the square of the first side
        sums, boxes = best_boxes(values.transpose(0, 2, 1))
        return sums, boxes[:, [1, 0, 3, 2]]
    count, height, width = values.shape
    # integral[k, r, j] sums rows before r and columns before j, so that a difference of two rows of it is the running
    # sum over the columns between them. All spans of rows at once: for 2 rows, tops 0 0 1 and ends 1 2 2.
    tops, ends = _row_spans(height)
    integral = np.zeros((count, height + 1, width + 1), np.int32)
    np.cumsum(np.cumsum(values, axis=1, dtype=np.int32), axis=2, out=integral[:, 1:, 1:])
    between = integral[:, ends] - integral[:, tops]  # [K, spans, width + 1] running sums between two rows
    least = np.minimum.accumulate(between[:, :, :-1], axis=2)
    gains = (between[:, :, 1:] - least).reshape(count, -1)
    # gains is [K, spans * width], of the best run that ends in each column. The run begins behind the first running sum
    # that equals the least before that end.
    best = gains.argmax(axis=1)
    every = np.arange(count)
    rows, right = np.divmod(best, width)
    left = (between[every, rows, :-1] == least[every, rows, right][:, None]).argmax(axis=1)
    boxes = np.stack([tops[rows], left, ends[rows] - 1, right], axis=1).astype(np.int32)
    return gains[every, best], boxes


@functools.cache
def _row_spans(height: int) -> tuple[Int64[np.ndarray, " spans"], Int64[np.ndarray, " spans"]]:
    """First row, and the row behind the last, of all spans of rows."""
    return np.triu_indices(height + 1, 1)


class CopyCandidate(NamedTuple):
    """A box of a source, and where a paste of its content makes cells right."""

    source: Bounds
    corner: tuple[int, int]  # row and column of its top-left corner in the grid


def copy_candidates(target: Target, grid: Grid, source: Grid, count: int, least: int) -> list[CopyCandidate]:
    """Find the boxes of a source that win the most in a grid, at most one for each of a few shifts.

    Args:
        target: the output.
        grid: the grid to paste into; of the output's size.
        source: the grid to copy from; of any size.
        count: shifts to look at, those that could win the most first.
        least: gain below which a box is left out, in the unit of ``RECTANGLE``.
    """
    # The votes bound from above what a box of each shift can gain, so only the shifts with the most are looked at; for
    # these the gains of all boxes are exact.
    votes = _votes(target, grid, source)
    shifts = [signed_shift(index, votes.shape, grid.shape) for index in _largest(votes, count, least)]
    if not shifts:
        return []
    found: dict[Bounds, CopyCandidate] = {}
    gains, boxes = best_boxes(np.stack([gain_of_shift(target, grid, source, *shift) for shift in shifts]))
    for (down, across), gain, corners in zip(shifts, gains.tolist(), boxes.tolist(), strict=True):
        if gain >= least:
            top, left, bottom, right = corners
            # From where it arrives back to where it is copied from. Of several shifts with one source, the first is
            # kept.
            box = top - down, left - across, bottom - down, right - across
            found.setdefault(box, CopyCandidate(box, (top, left)))
    return list(found.values())


def paste_once(node: SearchNode, target: Target, count: int) -> list[SearchNode]:
    """Paste a node's clipboard once, at each of the best positions."""
    return [_paste_node(node, *corner) for corner in _paste_corners(node, target, count)]


def paste_repeatedly(node: SearchNode, target: Target) -> Iterator[SearchNode]:
    """Paste a node's clipboard wherever that gains: yields the node after one paste, after two, and so on."""
    for corner in _paste_corners(node, target, _MAX_PASTES):
        node = _paste_node(node, *corner)
        yield node


def gain_of_shift(target: Target, grid: Grid, source: Grid, down: int, across: int) -> Int32[np.ndarray, "h w"]:
    """Value that each cell of a grid wins or loses if it is copied from a shifted source.

    A cell that makes no difference costs 1, so that of boxes with equal gains the smallest is the best.
    """
    # -1 marks cells that the shifted source does not cover; a box with one of them would copy from outside.
    shifted = overlay(np.full_like(grid, -1), source, down, across)
    gain = target.gain_of_change(grid, shifted)
    gain[gain == 0] = -1
    return np.where(shifted < 0, np.int32(_NEVER), gain)


def correlate(wanted: Int32[np.ndarray, "K h w"], given: Bool[np.ndarray, "K h2 w2"]) -> Int64[np.ndarray, "K m n"]:
    """Sum, for each shift of the given cells, the wanted values under them.

    ``sums[s] = sum over x of wanted[x + s] * given[x]``, a cross-correlation, which the Fourier transform computes for
    all shifts at once: the product of one spectrum with the conjugate of the other. In one dimension, with ``wanted =
    0 1 1`` and ``given = 1 1 0``, the shifts 0, 1 and 2 give 1, 2 and 1, the shifts -1 and -2 give 0: ``1 2 1 0 0``.

    Negative shifts are counted from the end, as here; between them and the positive ones there may be entries without
    a meaning, because the length is rounded up to a fast one. The sums are exact: they are whole numbers far below the
    precision of the transform.
    """
    # A transform is periodic. With h + h2 - 1 entries or more, 5 in the example, shifts of both signs have entries of
    # their own: 0 1 2, then -2 -1.
    least = [wanted.shape[axis] + given.shape[axis] - 1 for axis in (1, 2)]
    shape = [next(length for length in _FAST_LENGTHS if length >= side) for side in least]
    spectrum = np.fft.rfft2(wanted, s=shape) * np.fft.rfft2(given, s=shape).conj()
    return np.rint(np.fft.irfft2(spectrum, s=shape)).astype(np.int64)


def signed_shift(index: Sequence[int], period: Sequence[int], shape: Sequence[int]) -> tuple[int, int]:
    """Turn an index into what :func:`correlate` returns, of shape ``period``, into rows down and columns right."""
    # In 1 2 1 0 0, of period 5 and a grid of side 3, index 2 is the shift 2 and index 4 the shift 4 - 5 = -1.
    down, across = (at - size if at >= side else at for at, size, side in zip(index, period, shape, strict=True))
    return down, across


def _votes(target: Target, grid: Grid, source: Grid) -> Int64[np.ndarray, "m n"]:
    """Value that each shift of the whole source would win, without what it would spoil.

    For each color, the wrong cells that should have it are correlated with the cells of the source that have it. With
    the row ``. . 3 3`` wanted, the grid ``. . . .`` and the source ``3 3 5 5``, the shift right by 2 gets the values
    of both cells, the shifts right by 1 and 3 that of one. A vote costs nothing for the cells around, so it is an upper
    bound of what a box of that shift gains.
    """
    wrong = grid != target.output
    colors = target.wrong_colors(grid)
    wanted = np.where(target.colors[colors] & wrong, target.value, np.int32(0))
    given = source == np.array(colors, np.int8)[:, None, None]
    return correlate(wanted, given).sum(axis=0)


def _largest(votes: Int64[np.ndarray, "m n"], count: int, least: int) -> list[tuple[int, int]]:
    """Find the indices of the largest numbers, the first of equals first, on every machine alike."""
    # A stable sort of negated votes: the largest first, and of equals the one with the smaller index.
    indices = np.flatnonzero(votes >= least)
    indices = indices[np.argsort(-votes.ravel()[indices], kind="stable")[:count]]
    return [divmod(int(index), votes.shape[1]) for index in indices]


def _paste_corners(node: SearchNode, target: Target, count: int) -> list[tuple[int, int]]:
    """Find corners, the best first, where a paste gains a rectangle or more; the pastes do not overlap."""
    grid = node.grid
    clipboard = node.clipboard
    if clipboard is None or clipboard.shape[0] > grid.shape[0] or clipboard.shape[1] > grid.shape[1]:
        return []
    height, width = clipboard.shape
    wrong = grid != target.output
    # Each corner sees a window of the clipboard's size. A cell there gains its value if the paste makes it right, and
    # loses if it is right and the paste spoils it; the gain of a corner is the sum over its window.
    windows = lambda cells: sliding_window_view(cells, (height, width))  # [corner row, corner column, height, width]
    value = windows(np.where(wrong, target.value, np.int32(0)))
    loss = windows(np.where(wrong, np.int32(0), -target.loss))
    gains = np.where(windows(target.output) == clipboard, value, loss).sum(axis=(2, 3))
    corners = []
    while len(corners) < count and gains.max() >= RECTANGLE:
        row, column = divmod(int(gains.argmax()), gains.shape[1])
        # Corners less than a clipboard away would overlap this paste: with 2 rows, those in rows row - 1 .. row + 1.
        corners.append((row, column))
        gains[max(row - height + 1, 0) : row + height, max(column - width + 1, 0) : column + width] = _NEVER
    return corners


def _paste_node(node: SearchNode, row: int, column: int) -> SearchNode:
    assert node.clipboard is not None
    grid = paste(node.grid, node.clipboard, row, column)
    return node.then(grid, (c.PASTE, row, column, row, column))
