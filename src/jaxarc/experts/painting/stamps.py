"""Boxes worth copying, and where to paste them."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Int32, Int64
from numpy.lib.stride_tricks import sliding_window_view

from jaxarc import constants as c
from jaxarc.experts.host_canvas import Bounds, Grid
from jaxarc.experts.painting.goal import PIECE, Goal
from jaxarc.experts.painting.parts import laid_on, pasted
from jaxarc.experts.painting.plan import Plan
from jaxarc.experts.painting.rectangles import best_boxes

_NEVER: Final = -1_000_000  # gain of a cell that nothing is copied to; no gain of other cells makes up for it
_MOST_PASTES: Final = 8  # of one copy, one after the other
_FAST: Final = sorted(two * three * five for two in (1, 2, 4, 8, 16, 32, 64) for three in (1, 3, 9) for five in (1, 5))
"""Lengths that Fourier transforms are fast for, up to more than two sides of a grid."""


class Stamp(NamedTuple):
    """A box of a source, and where its content would do good."""

    source: Bounds
    place: tuple[int, int]  # row and column of its top-left corner in the grid


def find_stamps(goal: Goal, grid: Grid, source: Grid, count: int, least: int) -> list[Stamp]:
    """Find the boxes of a source that make the most of a grid right, at most one for each of a few shifts.

    Args:
        goal: the output.
        grid: what would be pasted into; of the output's size.
        source: what would be copied from; of any size.
        count: how many shifts to look at, those first that could make the most right.
        least: gain below which a box is left out, in shares of pieces.
    """
    votes = _votes(goal, grid, source)
    shifts = [signed_shift(place, votes.shape, grid.shape) for place in _largest(votes, count, least)]
    if not shifts:
        return []
    stamps: dict[Bounds, Stamp] = {}
    gains, boxes = best_boxes(np.stack([gain_of_shift(goal, grid, source, *shift) for shift in shifts]))
    for (down, across), gain, corners in zip(shifts, gains.tolist(), boxes.tolist(), strict=True):
        if gain >= least:
            top, left, bottom, right = corners
            box = top - down, left - across, bottom - down, right - across
            stamps.setdefault(box, Stamp(box, (top, left)))
    return list(stamps.values())


def pastes(plan: Plan, goal: Goal, count: int) -> list[Plan]:
    """Paste a plan's clipboard once, at each of the best places."""
    return [_paste(plan, *place) for place in _places(plan, goal, count)]


def paste_often(plan: Plan, goal: Goal) -> Iterator[Plan]:
    """Paste a plan's clipboard wherever that does good: after one paste, after two, and so on."""
    for place in _places(plan, goal, _MOST_PASTES):
        plan = _paste(plan, *place)
        yield plan


def gain_of_shift(goal: Goal, grid: Grid, source: Grid, down: int, across: int) -> Int32[np.ndarray, "h w"]:
    """What each cell of a grid would make right or wrong, in shares of pieces, if it were copied from a source.

    A cell that makes no difference costs a little, so that of boxes that gain as much the smallest is the best.
    """
    shifted = laid_on(np.full_like(grid, -1), source, down, across)
    gain = goal.gain_of_change(grid, shifted)
    gain[gain == 0] = -1
    return np.where(shifted < 0, np.int32(_NEVER), gain)


def correlate(wanted: Int32[np.ndarray, "K h w"], given: Bool[np.ndarray, "K h2 w2"]) -> Int64[np.ndarray, "K m n"]:
    """Sum, for each shift of the given cells, what is wanted where they come to lie.

    Row and column are the shift down and right; those behind the last row or column of the first are negative shifts,
    counted from the end, and there may be some between that mean nothing. Sums are exact: they are whole numbers far
    below what the transform's precision allows.
    """
    least = [wanted.shape[axis] + given.shape[axis] - 1 for axis in (1, 2)]
    shape = [next(length for length in _FAST if length >= side) for side in least]
    spectrum = np.fft.rfft2(wanted, s=shape) * np.fft.rfft2(given, s=shape).conj()
    return np.rint(np.fft.irfft2(spectrum, s=shape)).astype(np.int64)


def signed_shift(place: Sequence[int], period: Sequence[int], shape: Sequence[int]) -> tuple[int, int]:
    """Turn a place in what :func:`correlate` returns, of shape ``period``, into rows down and columns right."""
    down, across = (at - size if at >= side else at for at, size, side in zip(place, period, shape, strict=True))
    return down, across


def _votes(goal: Goal, grid: Grid, source: Grid) -> Int64[np.ndarray, "m n"]:
    """What each shift of the whole source would make right, without what it would spoil."""
    wrong, colors = grid != goal.output, goal.wrong_colors(grid)
    wanted = np.where(goal.colors[colors] & wrong, goal.worth, np.int32(0))
    given = source == np.array(colors, np.int8)[:, None, None]
    return correlate(wanted, given).sum(axis=0)


def _largest(votes: Int64[np.ndarray, "m n"], count: int, least: int) -> list[tuple[int, int]]:
    """Find the places of the largest numbers, the first of equals first, on every machine alike."""
    places = np.flatnonzero(votes >= least)
    places = places[np.argsort(-votes.ravel()[places], kind="stable")[:count]]
    return [divmod(int(place), votes.shape[1]) for place in places]


def _places(plan: Plan, goal: Goal, count: int) -> list[tuple[int, int]]:
    """Find places, the best first and none over another, where a paste gains at least a piece."""
    grid, clipboard = plan.grid, plan.clipboard
    if clipboard is None or clipboard.shape[0] > grid.shape[0] or clipboard.shape[1] > grid.shape[1]:
        return []
    height, width = clipboard.shape
    wrong = grid != goal.output
    windows = lambda cells: sliding_window_view(cells, (height, width))
    worth = windows(np.where(wrong, goal.worth, np.int32(0)))
    loss = windows(np.where(wrong, np.int32(0), -goal.loss))
    gains = np.where(windows(goal.output) == clipboard, worth, loss).sum(axis=(2, 3))
    places = []
    while len(places) < count and gains.max() >= PIECE:
        row, column = divmod(int(gains.argmax()), gains.shape[1])
        places.append((row, column))
        gains[max(row - height + 1, 0) : row + height, max(column - width + 1, 0) : column + width] = _NEVER
    return places


def _paste(plan: Plan, row: int, column: int) -> Plan:
    assert plan.clipboard is not None
    grid = pasted(plan.grid, plan.clipboard, row, column)
    return plan.then(grid, (c.PASTE, row, column, row, column))
