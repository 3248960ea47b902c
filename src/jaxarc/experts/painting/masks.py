"""Plans when selections are any cells: a fill for each color that is wrong, fewer where a turn, copy or move helps."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from jaxtyping import Bool

from jaxarc import constants as c
from jaxarc.experts.expert import Action, Pair
from jaxarc.experts.host_canvas import STEPS, Grid
from jaxarc.experts.painting.goal import Goal
from jaxarc.experts.painting.parts import laid_on
from jaxarc.experts.painting.plan import Plan
from jaxarc.experts.painting.stamps import correlate, signed_shift
from jaxarc.experts.painting.starts import box_starts

_ACTIONS_OF_A_COPY: Final = 2  # copy and paste


def paint_with_masks(pair: Pair, goal: Goal, shifts: int) -> tuple[Action, ...]:
    """Find actions with masks that turn the input into the output.

    Args:
        pair: what to solve.
        goal: its output.
        shifts: how many shifts of the input to look at, for what to copy before a resize.
    """
    starts = [_with_masks(start) for start in box_starts(pair, goal, shifts)]
    plans = [*starts, *_copied(pair.input, starts[0], goal)]
    for start in starts:
        plans += _moved(start, goal)
    best = min(plans, key=lambda plan: len(plan.actions) + len(goal.wrong_colors(plan.grid)))
    wrong = best.grid != goal.output
    fills = [_on(c.FILL + color, wrong & goal.colors[color]) for color in goal.wrong_colors(best.grid)]
    return *best.actions, *fills


def _with_masks(plan: Plan) -> Plan:
    """Give the boxes of a plan's actions as masks."""
    return plan._replace(actions=tuple(_as_mask(action) for action in plan.actions))


def _as_mask(action: Action) -> Action:
    operation, top, left, bottom, right = action
    if operation == c.RESIZE:  # its corner says it all
        return operation, bottom, right
    rows, columns = np.mgrid[top : bottom + 1, left : right + 1]
    return operation, *np.stack([rows, columns], axis=-1).ravel().tolist()


def _on(operation: int, cells: Bool[np.ndarray, "h w"]) -> Action:
    return operation, *np.argwhere(cells).ravel().tolist()


def _copied(source: Grid, start: Plan, goal: Goal) -> Iterator[Plan]:
    """Copy from the input, and paste, what makes all wrong cells of the most colors right, if that saves actions."""
    grid = start.grid
    colors, wrong = goal.wrong_colors(grid), grid != goal.output
    if len(colors) <= _ACTIONS_OF_A_COPY:
        return
    wanted = goal.colors[colors] & wrong
    won = correlate(wanted, source == np.array(colors, np.int8)[:, None, None])
    completed = won == wanted.sum(axis=(1, 2))[:, None, None]
    count = completed.sum(axis=0)
    place = divmod(int(count.argmax()), count.shape[1])
    if count[place] <= _ACTIONS_OF_A_COPY:
        return
    goal_cells = wanted[completed[:, *place]].any(axis=0)
    down, across = signed_shift(place, count.shape, grid.shape)
    rows, columns = np.nonzero(goal_cells)
    sources = np.zeros(source.shape, np.bool_)
    sources[rows - down, columns - across] = True
    paste = c.PASTE, int(rows.min()), int(columns.min())
    after = np.where(goal_cells, goal.output, grid)
    yield start._replace(grid=after, actions=(_on(c.COPY, sources), *start.actions, paste))


def _moved(plan: Plan, goal: Goal) -> Iterator[Plan]:
    """Move by one cell all that lies right after it and leaves no cell wrong that is not to be 0."""
    grid, output = plan.grid, goal.output
    for operation, (down, across) in STEPS.items():
        moving = grid == laid_on(np.full_like(output, -1), output, -down, -across)
        while True:
            arriving = laid_on(np.zeros_like(moving), moving, down, across)
            spoils = moving & ~arriving & (output != 0)
            if not spoils.any():
                break
            moving &= ~spoils
        if (moving & (grid != 0)).any():
            after = np.where(arriving, output, np.where(moving, np.int8(0), grid))
            yield plan.then(after, _on(operation, moving))
