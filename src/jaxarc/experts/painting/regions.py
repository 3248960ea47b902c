"""Regions of one color that are not right yet, and what each should become."""

from collections.abc import Mapping
from typing import NamedTuple

from jaxarc.experts.bitboards import components_among
from jaxarc.experts.host_canvas import Grid
from jaxarc.experts.painting.goal import Goal


class Region(NamedTuple):
    """Cells of one color, connected by sides, some of them wrong; sets of cells are bits."""

    cells: int
    color: int
    wanted: Mapping[int, int]  # the cells that should have each color, without colors that none should have

    @property
    def is_pure(self) -> bool:
        """Whether all of it should become one color, so that a flood fill makes it right."""
        return len(self.wanted) == 1

    @property
    def left_to_do(self) -> int:
        """Count the actions that make it right as it is: one flood fill, or a fill for each wrong cell."""
        return 1 if self.is_pure else (self.cells & ~self.wanted.get(self.color, 0)).bit_count()


def wrong_regions(grid: Grid, goal: Goal) -> list[Region]:
    """List the regions with a wrong cell, of a grid of the output's size."""
    found = []
    for cells, (row, column) in components_among(grid, grid != goal.output):
        wanted = {color: cells & bits for color, bits in goal.bits.items() if cells & bits}
        found.append(Region(cells, int(grid[row, column]), wanted))
    return found
