"""The end of a plan in points: flood what is pure, move what can be moved, fill the rest cell by cell."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from jaxarc import constants as c
from jaxarc.experts.bitboards import first_cell, unpack_cells, with_neighbors
from jaxarc.experts.expert import Action
from jaxarc.experts.host_canvas import STEPS, Grid
from jaxarc.experts.painting.goal import Goal
from jaxarc.experts.painting.regions import Region


def finish_with_points(grid: Grid, regions: Sequence[Region], goal: Goal) -> list[Action]:
    """Find actions that make all cells right, never more than there are wrong cells.

    Args:
        grid: what to finish.
        regions: all its regions with wrong cells.
        goal: the output.
    """
    grid = grid.copy()
    return [*_floods(grid, regions, goal), *_moves(grid, goal), *_fills(grid, goal)]


def _floods(grid: Grid, regions: Sequence[Region], goal: Goal) -> Iterator[Action]:
    """Flood pure regions, none while it would run together with one that is still to be flooded.

    Where regions wait for each other in a circle, one of them takes a color between that runs together with none.
    """
    width = grid.shape[1]
    waiting = [region for region in regions if region.is_pure and region.cells.bit_count() > 1]
    to_flood: defaultdict[int, int] = defaultdict(int)  # cells of the waiting regions by the color they have
    for region in waiting:
        to_flood[region.color] |= region.cells
    while waiting:
        is_free = lambda region: not with_neighbors(region.cells, width) & to_flood[_wanted_color(region)]
        ready = next(filter(is_free, waiting), None)
        region = ready or waiting[0]
        waiting.remove(region)
        to_flood[region.color] &= ~region.cells
        color = _wanted_color(region) if ready else _color_between(grid, region, goal)
        if color is None:
            continue  # its cells are filled one by one
        yield _flood(grid, region, color)
        if not ready:
            waiting.append(region._replace(color=color))
            to_flood[color] |= region.cells


def _wanted_color(region: Region) -> int:
    return next(iter(region.wanted))


def _color_between(grid: Grid, region: Region, goal: Goal) -> int | None:
    """Find a color that no neighbor has or will have."""
    around = _inside(with_neighbors(region.cells, grid.shape[1]), grid)
    taken = {*grid[around].tolist(), *goal.output[around].tolist()}
    return next((color for color in range(c.NUM_COLORS) if color not in taken), None)


def _inside(bits: int, grid: Grid) -> np.ndarray:
    height, width = grid.shape
    return unpack_cells(bits & ((1 << height * (width + 1)) - 1), (height, width))


def _flood(grid: Grid, region: Region, color: int) -> Action:
    grid[unpack_cells(region.cells, grid.shape)] = color
    return c.FLOOD_FILL + color, *first_cell(region.cells, grid.shape[1])


def _moves(grid: Grid, goal: Goal) -> Iterator[Action]:
    """Move a cell where that makes two right: the one that it leaves, which should be 0, and the one it comes to."""
    output = goal.output
    for row, column in np.argwhere((grid != output) & (output == 0)).tolist():
        for operation, (down, across) in STEPS.items():
            to = row + down, column + across
            inside = 0 <= to[0] < grid.shape[0] and 0 <= to[1] < grid.shape[1]
            if inside and grid[to] != output[to] == grid[row, column]:
                grid[to], grid[row, column] = grid[row, column], 0
                yield operation, row, column
                break


def _fills(grid: Grid, goal: Goal) -> Iterator[Action]:
    for row, column in np.argwhere(grid != goal.output).tolist():
        yield c.FILL + int(goal.output[row, column]), row, column
