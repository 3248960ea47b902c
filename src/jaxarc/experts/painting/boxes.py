"""Edits worth a try when selections are boxes: fills, flood fills, moves, and copies with their pastes."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool

from jaxarc import constants as c
from jaxarc.experts.bitboards import components_among, unpack_cells
from jaxarc.experts.host_canvas import STEPS, TURNS, Bounds, Grid
from jaxarc.experts.painting.goal import PIECE, Goal
from jaxarc.experts.painting.parts import content, filled, pasted
from jaxarc.experts.painting.plan import Plan
from jaxarc.experts.painting.rectangles import best_boxes
from jaxarc.experts.painting.stamps import find_stamps, gain_of_shift, paste_often, pastes
from jaxarc.experts.painting.starts import box_action

_TRIES_FOR_A_PLACE: Final = 6  # single actions that are tried for each plan that can go on
_PASTES_LATER: Final = 2  # of what is still on the clipboard
_FEW_PIECES: Final = 4  # below so many a copy does not pay
_FLIPS: Final = (c.FLIP_LEFT_RIGHT, c.FLIP_UP_DOWN)


class BoxEdits(NamedTuple):
    """Extends plans by what promises most."""

    goal: Goal
    width: int  # plans that can go on
    copying: int  # for how many plans, the best first, copies are tried
    shifts: int  # how many shifts are looked at for what to copy

    def __call__(self, plans: Sequence[Plan]) -> Iterator[Plan]:
        yield from self._simple_edits(plans)
        for plan in plans:
            yield from pastes(plan, self.goal, _PASTES_LATER)
        for plan in plans[: self.copying]:
            if self.goal.count_pieces(plan.grid) >= _FEW_PIECES:
                yield from self._copies(plan)
                yield from self._flipped_copies(plan)

    def _simple_edits(self, plans: Sequence[Plan]) -> Iterator[Plan]:
        """Of all plans' fills, floods and moves those after which the fewest cells are wrong."""
        fills, floods = _best_fills(plans, self.goal), _floods(plans, self.goal)
        tries = [*fills, *_best_moves(plans[: self.copying], self.goal), *floods]
        tries.sort(key=lambda plan: self.goal.count_wrong(plan.grid))
        yield from tries[: _TRIES_FOR_A_PLACE * self.width]

    def _copies(self, plan: Plan) -> Iterator[Plan]:
        """Copy or cut a box and paste it."""
        goal, grid = self.goal, plan.grid
        for stamp in find_stamps(goal, grid, grid, self.shifts, 2 * PIECE - 1):
            clipboard = content(grid, stamp.source)
            copied = Plan(grid, clipboard, (*plan.actions, (c.COPY, *stamp.source)))
            yield from paste_often(copied, goal)
            left = filled(grid, stamp.source, 0)
            if goal.count_wrong(left) < goal.count_wrong(grid):
                cut = Plan(left, clipboard, (*plan.actions, (c.CUT, *stamp.source)))
                yield from paste_often(cut, goal)

    def _flipped_copies(self, plan: Plan) -> Iterator[Plan]:
        """Copy a box, paste it and flip what was pasted."""
        grid = plan.grid
        for flip in _FLIPS:
            mirrored = TURNS[flip](grid)
            for stamp in find_stamps(self.goal, grid, mirrored, self.shifts, 3 * PIECE - 1):
                source = _flipped_box(stamp.source, flip, grid.shape)
                clipboard, (row, column) = content(grid, source), stamp.place
                after = pasted(grid, TURNS[flip](clipboard), row, column)
                copy, paste = (c.COPY, *source), (c.PASTE, row, column, row, column)
                turn = box_action(flip, row, column, clipboard.shape)
                yield Plan(after, clipboard, (*plan.actions, copy, paste, turn))


def _best_fills(plans: Sequence[Plan], goal: Goal) -> Iterator[Plan]:
    """For each plan and color the fills that win the most cells and the most pieces."""
    maps, tries = [], []
    for plan in plans:
        colors = goal.wrong_colors(plan.grid)
        maps += [goal.cells_of_fill(plan.grid, colors), goal.gain_of_fill(plan.grid, colors)]
        tries += [(plan, color) for color in (*colors, *colors)]
    for (plan, color), box in zip(tries, best_boxes(np.concatenate(maps))[1].tolist(), strict=True):
        yield plan.then(filled(plan.grid, box, color), (c.FILL + color, *box))


def _best_moves(plans: Sequence[Plan], goal: Goal) -> Iterator[Plan]:
    """For each plan and direction the move that wins the most pieces, if there are two or more."""
    if not plans:
        return
    tries = [(plan, operation) for plan in plans for operation in STEPS]
    gains = [gain_of_shift(goal, plan.grid, plan.grid, *STEPS[operation]) for plan, operation in tries]
    sums, boxes = best_boxes(np.stack(gains))
    for (plan, operation), gain, box in zip(tries, sums.tolist(), boxes.tolist(), strict=True):
        if gain >= 2 * PIECE - 1:
            yield _moved(plan, operation, box)


def _moved(plan: Plan, operation: int, to: Bounds) -> Plan:
    """Move a box's content so that it comes to lie in another."""
    down, across = STEPS[operation]
    top, left, bottom, right = to
    source = top - down, left - across, bottom - down, right - across
    grid = pasted(filled(plan.grid, source, 0), content(plan.grid, source), top, left)
    return plan.then(grid, (operation, *source))


def _floods(plans: Sequence[Plan], goal: Goal) -> Iterator[Plan]:
    """Flood each region that has two wrong cells or more with the color that wins the most cells."""
    for plan in plans:
        grid = plan.grid
        for region, (row, column) in components_among(grid, (grid != goal.output) & _has_equal_neighbor(grid)):
            cells = unpack_cells(region, grid.shape)
            won = np.bincount(goal.output[cells], minlength=10)
            right = won[grid[row, column]]
            won[grid[row, column]] = 0
            color = int(won.argmax())
            if won[color] - right >= 2:
                after = grid.copy()
                after[cells] = color
                yield plan.then(after, (c.FLOOD_FILL + color, row, column, row, column))


def _has_equal_neighbor(grid: Grid) -> Bool[np.ndarray, "h w"]:
    has = np.zeros(grid.shape, np.bool_)
    vertical, horizontal = grid[1:] == grid[:-1], grid[:, 1:] == grid[:, :-1]
    has[1:] |= vertical
    has[:-1] |= vertical
    has[:, 1:] |= horizontal
    has[:, :-1] |= horizontal
    return has


def _flipped_box(box: Bounds, flip: int, shape: tuple[int, ...]) -> Bounds:
    top, left, bottom, right = box
    if flip == c.FLIP_LEFT_RIGHT:
        return top, shape[1] - 1 - right, bottom, shape[1] - 1 - left
    return shape[0] - 1 - bottom, left, shape[0] - 1 - top, right
