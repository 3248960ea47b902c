"""What a plan in boxes can begin with: the input turned, moved or cut to the output's size."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from jaxarc import constants as c
from jaxarc.experts.expert import Action, Pair
from jaxarc.experts.host_canvas import STEPS, TURNS, Grid
from jaxarc.experts.painting.goal import PIECE, Goal
from jaxarc.experts.painting.parts import content, laid_on, resized
from jaxarc.experts.painting.plan import Plan
from jaxarc.experts.painting.stamps import find_stamps, paste_often

_TURNS: Final[tuple[tuple[int, ...], ...]] = (
    (),
    (c.FLIP_LEFT_RIGHT,),
    (c.FLIP_UP_DOWN,),
    (c.FLIP_LEFT_RIGHT, c.FLIP_UP_DOWN),
    (c.ROTATE_CLOCKWISE,),
    (c.ROTATE_COUNTERCLOCKWISE,),
    (c.ROTATE_CLOCKWISE, c.FLIP_LEFT_RIGHT),
    (c.ROTATE_COUNTERCLOCKWISE, c.FLIP_LEFT_RIGHT),
)


def box_starts(pair: Pair, goal: Goal, shifts: int) -> list[Plan]:
    """List plans whose grids have the output's size, the first of them the input with at most a resize.

    Args:
        pair: what to solve.
        goal: its output.
        shifts: how many shifts of the input to look at, for what to copy before a resize.
    """
    turned = [_turned(pair.input, turns) for turns in _TURNS]
    starts = [start.resized(pair.output.shape) for start in turned]
    if pair.input.shape == pair.output.shape:
        return [*starts, *_moved(pair.input)]
    for start in turned:
        if len(start.actions) <= 1 and start.grid.shape == start.canvas_shape:
            starts += _copied(start, goal, shifts)
    return starts


class _Start(NamedTuple):
    grid: Grid  # what is of interest, at the top-left of the active area
    canvas_shape: tuple[int, ...]  # of the active area; the rest of it is 0
    actions: tuple[Action, ...]

    def resized(self, shape: tuple[int, ...]) -> Plan:
        actions = self.actions if shape == self.canvas_shape else (*self.actions, resize_action(shape))
        return Plan(resized(self.grid, shape), None, actions)


def box_action(operation: int, top: int, left: int, shape: Sequence[int]) -> Action:
    """Return the action on the box of a size."""
    return operation, top, left, top + shape[0] - 1, left + shape[1] - 1


def resize_action(shape: Sequence[int]) -> Action:
    """Return the resize to a size."""
    return box_action(c.RESIZE, 0, 0, shape)


def _turned(grid: Grid, turns: Sequence[int]) -> _Start:
    """Turn the whole input, on a square as large as its longer side when it would not fit otherwise."""
    longer = max(grid.shape)
    rotates = c.ROTATE_CLOCKWISE in turns or c.ROTATE_COUNTERCLOCKWISE in turns
    canvas_shape = (longer, longer) if rotates else grid.shape
    actions = [] if grid.shape == canvas_shape else [resize_action(canvas_shape)]
    for turn in turns:
        actions.append(box_action(turn, 0, 0, grid.shape))
        grid = TURNS[turn](grid)
    return _Start(np.ascontiguousarray(grid), canvas_shape, tuple(actions))


def _moved(grid: Grid) -> Iterator[Plan]:
    for operation, step in STEPS.items():
        moved = laid_on(np.zeros_like(grid), grid, *step)
        yield Plan(moved, None, (box_action(operation, 0, 0, grid.shape),))


def _copied(start: _Start, goal: Goal, shifts: int) -> Iterator[Plan]:
    """Copy a part before the resize, paste it after."""
    ground = start.resized(goal.output.shape)
    for stamp in find_stamps(goal, ground.grid, start.grid, shifts, 2 * PIECE - 1):
        clipboard = content(start.grid, stamp.source)
        copy = c.COPY, *stamp.source
        plan = Plan(ground.grid, clipboard, (*start.actions, copy, *ground.actions[len(start.actions) :]))
        yield from paste_often(plan, goal)
