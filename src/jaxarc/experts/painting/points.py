"""Plans when selections are single cells: flood fills, walls that part a region for them, and single fills."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from jaxarc import constants as c
from jaxarc.experts.bitboards import components, first_cell, pairs_by_id, unpack_cells, with_neighbors
from jaxarc.experts.expert import Action, Pair
from jaxarc.experts.host_canvas import Grid
from jaxarc.experts.painting.finish import finish_with_points
from jaxarc.experts.painting.goal import Goal
from jaxarc.experts.painting.parts import resized
from jaxarc.experts.painting.plan import Plan
from jaxarc.experts.painting.regions import Region, wrong_regions

_TRIES: Final = 6  # of what to do next with a plan


def paint_with_points(pair: Pair, goal: Goal, width: int) -> tuple[Action, ...]:
    """Find actions on single cells that turn the input into the output.

    Each plan can be finished at any time, with at most one action for each wrong cell; the shortest finished one wins.

    Args:
        pair: what to solve.
        goal: its output.
        width: how many plans of one length go on.
    """
    waiting: defaultdict[int, dict[bytes, Plan]] = defaultdict(dict)
    for start in _starts(pair, goal):
        waiting[len(start.actions)].setdefault(start.grid.tobytes(), start)
    finished: list[tuple[Action, ...]] = []
    while waiting and (not finished or min(waiting) + 1 < len(finished[0])):
        outlooks = [_look(plan, goal) for plan in waiting.pop(min(waiting)).values()]
        for scores in sorted(outlooks, key=lambda scores: scores.left_to_do)[:width]:
            plan = scores.plan
            actions = *plan.actions, *finish_with_points(plan.grid, scores.regions, goal)
            finished = sorted([*finished, actions], key=len)[:1]
            for longer in _edits(scores, goal):
                waiting[len(longer.actions)].setdefault(longer.grid.tobytes(), longer)
    return finished[0]


def _starts(pair: Pair, goal: Goal) -> Iterator[Plan]:
    """The input in the output's size, at once or after a cut: to one cell, or to what leaves the most cells right."""
    shape = goal.output.shape
    yield _start(pair.input, [shape] if pair.input.shape != shape else [])
    height, width = (min(sides) for sides in zip(shape, pair.input.shape, strict=True))
    count = lambda cells: np.cumsum(np.cumsum(cells[:height, :width], axis=0), axis=1)
    right = count(pair.input[:height, :width] == goal.output[:height, :width]) - count(goal.output == 0)
    best = np.unravel_index(right.argmax(), right.shape)
    for kept in dict.fromkeys([(1, 1), (int(best[0]) + 1, int(best[1]) + 1)]):
        if kept not in (shape, pair.input.shape):
            yield _start(pair.input, [kept, shape])


def _start(grid: Grid, shapes: Sequence[tuple[int, ...]]) -> Plan:
    for shape in shapes:
        grid = resized(grid, shape)
    return Plan(grid.copy(), None, tuple((c.RESIZE, height - 1, width - 1) for height, width in shapes))


class _Outlook(NamedTuple):
    plan: Plan
    regions: list[Region]  # with wrong cells
    left_to_do: int  # about how many actions


def _look(plan: Plan, goal: Goal) -> _Outlook:
    regions = wrong_regions(plan.grid, goal)
    return _Outlook(plan, regions, sum(region.left_to_do for region in regions))


class _Try(NamedTuple):
    saved: int  # about how many actions it makes needless, more than it takes
    color: int | None  # that a flood fill gives to the cells; None: a fill for each, with the color it should have
    cells: int  # as bits


def _edits(scores: _Outlook, goal: Goal) -> Iterator[Plan]:
    """What saves the most actions, and all walls at once."""
    plan, width = scores.plan, scores.plan.grid.shape[1]
    mixed = [region for region in scores.regions if not region.is_pure]
    floods = [flood for region in mixed if (flood := _flood(region)).saved > 0]
    walls = [wall for region in mixed for wall in _walls(region, width) if wall.saved > 0]
    tries = sorted([*floods, *walls], key=lambda entry: -entry.saved)[:_TRIES]
    if len(walls) > 1:
        tries.append(_Try(0, None, _union(walls)))
    for entry in tries:
        grid, cells = plan.grid.copy(), unpack_cells(entry.cells, plan.grid.shape)
        if entry.color is not None:
            grid[cells] = entry.color
            actions = [(c.FLOOD_FILL + entry.color, *first_cell(entry.cells, width))]
        else:
            grid[cells] = goal.output[cells]
            places = pairs_by_id(entry.cells, width)
            actions = [(c.FILL + int(grid[place]), *place) for place in places if plan.grid[place] != grid[place]]
        yield plan.then(grid, *actions)


def _union(tries: Sequence[_Try]) -> int:
    cells = 0
    for entry in tries:
        cells |= entry.cells
    return cells


def _flood(region: Region) -> _Try:
    """Flood a region with the color that most of its wrong cells should have."""
    wanted = {color: cells.bit_count() for color, cells in region.wanted.items()}
    right = wanted.pop(region.color, 0)
    color = max(wanted, key=lambda color: wanted[color])
    return _Try(wanted[color] - right - 1, color, region.cells)


def _walls(region: Region, width: int) -> Iterator[_Try]:
    """Part off what should have one color: by a wall of its own cells, or of the cells around it if all are wrong."""
    for color, cells in region.wanted.items():
        if color == region.color:
            continue
        for part in components(cells, width):
            beyond = region.cells & ~part
            wall = part & with_neighbors(beyond, width)
            inner = part & ~wall
            yield _Try(inner.bit_count() - sum(1 for _ in components(inner, width)), None, wall)
            around = beyond & with_neighbors(part, width)
            if not around & region.wanted.get(region.color, 0):
                yield _Try(part.bit_count() - 1, None, around)
