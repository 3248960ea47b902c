"""Paint with points: flood fills, walls that divide a region so that floods fit, moves of a cell and single fills.

The search extends nodes by floods and walls only; :func:`_finish` completes any of them, and the shortest is taken.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from jaxarc import constants as c
from jaxarc.experts.bitboards import (
    components,
    components_among,
    first_cell,
    iter_cells,
    unpack_cells,
    with_neighbors,
)
from jaxarc.experts.expert import Action, Pair
from jaxarc.experts.host_canvas import STEPS, Cells, Grid
from jaxarc.experts.painting.beam import SearchNode, Target
from jaxarc.experts.painting.copies import resize

_TRIES: Final = 6  # extensions of one node


class Region(NamedTuple):
    """Cells of one color, connected by sides, some of them wrong; sets of cells are bits."""

    cells: int
    color: int
    wanted: Mapping[int, int]  # by color the cells that should have it; no color without cells

    @property
    def is_pure(self) -> bool:
        """Whether all of it should become one color, so that a flood fill makes it right."""
        return len(self.wanted) == 1

    @property
    def left_to_do(self) -> int:
        """Count the actions that make it right as it is: one flood fill, or a fill for each wrong cell."""
        return 1 if self.is_pure else (self.cells & ~self.wanted.get(self.color, 0)).bit_count()


def wrong_regions(grid: Grid, target: Target) -> list[Region]:
    """List the regions of a grid of the output's size that have a wrong cell."""
    found = []
    for cells, (row, column) in components_among(grid, grid != target.output):
        # For the region 0 0 0 whose outputs are 0 3 3: wanted is {0: 100, 3: 011}, listing the cells from left to
        # right.
        wanted = {color: cells & bits for color, bits in target.bits.items() if cells & bits}
        found.append(Region(cells, int(grid[row, column]), wanted))
    return found


def paint_with_points(pair: Pair, target: Target, width: int) -> tuple[Action, ...]:
    """Find actions on single cells that turn the input into the output.

    Any node can be finished, with at most one action for each wrong cell; the shortest finished one is returned.

    Args:
        pair: what to solve.
        target: its output.
        width: nodes of one length that are extended.
    """
    # Nodes by their number of actions; of nodes with equal grids the first stays. Every extended node is finished too,
    # and the search stops when the shortest waiting node, with one action more, would not be shorter than the best
    # finished one.
    waiting: defaultdict[int, dict[bytes, SearchNode]] = defaultdict(dict)
    for start in _starts(pair, target):
        waiting[len(start.actions)].setdefault(start.grid.tobytes(), start)
    finished: list[tuple[Action, ...]] = []
    while waiting and (not finished or min(waiting) + 1 < len(finished[0])):
        assessed = [_assess(node, target) for node in waiting.pop(min(waiting)).values()]
        for candidate in sorted(assessed, key=lambda candidate: candidate.left_to_do)[:width]:
            node = candidate.node
            actions = *node.actions, *_finish(node.grid, candidate.regions, target)
            finished = sorted([*finished, actions], key=len)[:1]
            for longer in _edits(candidate, target):
                waiting[len(longer.actions)].setdefault(longer.grid.tobytes(), longer)
    return finished[0]


def _starts(pair: Pair, target: Target) -> Iterator[SearchNode]:
    """Yield the input in the output's size, resized at once or after a cut, which clears the cells beyond it.

    The cut is to one cell, or to the size that leaves the most cells right: inside it those that equal the output,
    outside it those that should be 0.
    """
    shape = target.output.shape
    yield _start(pair.input, [shape] if pair.input.shape != shape else [])
    height, width = (min(sides) for sides in zip(shape, pair.input.shape, strict=True))
    # right[r, j] is what a cut to rows 0..r and columns 0..j gains: cells inside that equal the output, less those that
    # should be 0, which a cut before them would have made right. Zeros outside the cut add a constant, left out.
    count = lambda cells: np.cumsum(np.cumsum(cells[:height, :width], axis=0), axis=1)
    right = count(pair.input[:height, :width] == target.output[:height, :width]) - count(target.output == 0)
    best = np.unravel_index(right.argmax(), right.shape)
    for kept in dict.fromkeys([(1, 1), (int(best[0]) + 1, int(best[1]) + 1)]):
        if kept not in (shape, pair.input.shape):
            yield _start(pair.input, [kept, shape])


def _start(grid: Grid, shapes: Sequence[tuple[int, ...]]) -> SearchNode:
    for shape in shapes:
        grid = resize(grid, shape)
    return SearchNode(grid.copy(), None, tuple((c.RESIZE, height - 1, width - 1) for height, width in shapes))


class _Assessed(NamedTuple):
    """A node with its wrong regions."""

    node: SearchNode
    regions: list[Region]  # with wrong cells
    left_to_do: int  # about how many actions


def _assess(node: SearchNode, target: Target) -> _Assessed:
    regions = wrong_regions(node.grid, target)
    return _Assessed(node, regions, sum(region.left_to_do for region in regions))


class _Extension(NamedTuple):
    """Some actions that may come next."""

    saved: int  # about how many later actions it replaces, minus its own
    color: int | None  # that a flood fill gives to the cells; None: a fill for each, with the color it should have
    cells: int  # as bits


def _edits(candidate: _Assessed, target: Target) -> Iterator[SearchNode]:
    """Extend a node by the floods and walls that save the most actions, and by all walls at once."""
    node = candidate.node
    width = node.grid.shape[1]
    # Pure regions need no thought: _finish floods them. A mixed one may be flooded by its most frequent color, which
    # leaves fewer wrong cells, or divided by a wall into parts that one flood each makes right.
    mixed = [region for region in candidate.regions if not region.is_pure]
    floods = [flood for region in mixed if (flood := _flood_of_majority(region)).saved > 0]
    walls = [wall for region in mixed for wall in _walls(region, width) if wall.saved > 0]
    extensions = sorted([*floods, *walls], key=lambda extension: -extension.saved)[:_TRIES]
    if len(walls) > 1:
        extensions.append(_Extension(0, None, _union(walls)))
    for extension in extensions:
        grid = node.grid.copy()
        cells = unpack_cells(extension.cells, grid.shape)
        # A flood is one action at any cell of the region; a wall is a fill for each of its cells that is wrong.
        if extension.color is not None:
            grid[cells] = extension.color
            actions = [(c.FLOOD_FILL + extension.color, *first_cell(extension.cells, width))]
        else:
            grid[cells] = target.output[cells]
            changed = [cell for cell in iter_cells(extension.cells, width) if node.grid[cell] != grid[cell]]
            actions = [(c.FILL + int(grid[cell]), *cell) for cell in changed]
        yield node.then(grid, *actions)


def _union(extensions: Sequence[_Extension]) -> int:
    cells = 0
    for extension in extensions:
        cells |= extension.cells
    return cells


def _flood_of_majority(region: Region) -> _Extension:
    """Flood a region with the color that most of its wrong cells should have."""
    # Of nine cells, five that should be 3, two that should be 4 and two that are right: the flood with 3 makes five
    # cells right and two wrong, and costs an action: it saves 5 - 2 - 1 = 2.
    wanted = {color: cells.bit_count() for color, cells in region.wanted.items()}
    right = wanted.pop(region.color, 0)
    color = max(wanted, key=lambda color: wanted[color])
    return _Extension(wanted[color] - right - 1, color, region.cells)


def _walls(region: Region, width: int) -> Iterator[_Extension]:
    """Separate a part that should have another color from the rest of its region, so that one flood can fill it.

    The region of 0 below should become 3 on the right. The wall is the column of the part that touches the rest (marked
    w); after its three fills one flood fills the inner cells (i), which saves five actions:

        0 0 0 w i i
        0 0 0 w i i
        0 0 0 w i i

    If all cells around the part are wrong, filling those first encloses the part as well.
    """
    for color, cells in region.wanted.items():
        if color == region.color:
            continue
        for part in components(cells, width):
            beyond = region.cells & ~part
            # The wall's cells are wrong and would be filled anyway. What is saved is the fills of the inner cells, less
            # one flood for each connected piece of them: 6 - 1 in the example.
            wall = part & with_neighbors(beyond, width)
            inner = part & ~wall
            yield _Extension(inner.bit_count() - sum(1 for _ in components(inner, width)), None, wall)
            around = beyond & with_neighbors(part, width)
            if not around & region.wanted.get(region.color, 0):
                yield _Extension(part.bit_count() - 1, None, around)


def _finish(grid: Grid, regions: Sequence[Region], target: Target) -> list[Action]:
    """Flood the pure regions, move cells and fill the rest: at most one action for each wrong cell.

    Args:
        grid: what to finish.
        regions: all its regions with wrong cells.
        target: the output.
    """
    grid = grid.copy()  # each step edits it in place, so the next one sees what is still wrong
    return [*_floods(grid, regions, target), *_moves(grid, target), *_fills(grid, target)]


def _floods(grid: Grid, regions: Sequence[Region], target: Target) -> Iterator[Action]:
    """Flood pure regions, but none whose new color a waiting neighbor still has: the two would merge.

    Regions that wait for each other in a circle need a color between. With ``1 1 2 2`` to become ``2 2 1 1``, flooding
    the left with 2 would merge all four cells; so the left takes 0, then the right 1, then the left 2.
    """
    width = grid.shape[1]
    # A single cell is left to _fills: its flood is no shorter.
    waiting = [region for region in regions if region.is_pure and region.cells.bit_count() > 1]
    to_flood: defaultdict[int, int] = defaultdict(int)  # cells of the waiting regions by the color they have
    for region in waiting:
        to_flood[region.color] |= region.cells
    while waiting:
        # Free: no neighbor of the region, still to be flooded, has the color that the region will get.
        is_free = lambda region: not with_neighbors(region.cells, width) & to_flood[_wanted_color(region)]
        ready = next(filter(is_free, waiting), None)
        region = ready or waiting[0]
        waiting.remove(region)
        to_flood[region.color] &= ~region.cells
        color = _wanted_color(region) if ready else _color_between(grid, region, target)
        if color is None:
            continue  # _fills does its cells one by one
        yield _flood(grid, region, color)
        if not ready:
            waiting.append(region._replace(color=color))
            to_flood[color] |= region.cells


def _wanted_color(region: Region) -> int:
    return next(iter(region.wanted))


def _color_between(grid: Grid, region: Region, target: Target) -> int | None:
    """Find a color that no neighbor has or will have."""
    # The region with all its neighbors: their present colors and their final ones are taken.
    around = _inside(with_neighbors(region.cells, grid.shape[1]), grid)
    taken = {*grid[around].tolist(), *target.output[around].tolist()}
    return next((color for color in range(c.NUM_COLORS) if color not in taken), None)


def _inside(bits: int, grid: Grid) -> Cells:
    """Unpack bits without those below the last row, which neighbors may reach."""
    # Bits from h * (w + 1) on are below the last row: for 2x3 only the bits 0..7 are kept.
    height, width = grid.shape
    return unpack_cells(bits & ((1 << height * (width + 1)) - 1), (height, width))


def _flood(grid: Grid, region: Region, color: int) -> Action:
    grid[unpack_cells(region.cells, grid.shape)] = color
    return c.FLOOD_FILL + color, *first_cell(region.cells, grid.shape[1])


def _moves(grid: Grid, target: Target) -> Iterator[Action]:
    """Move a cell if that makes two right: the cell that it leaves, which should be 0, and the cell that it enters."""
    output = target.output
    for row, column in np.argwhere((grid != output) & (output == 0)).tolist():
        for operation, (down, across) in STEPS.items():
            to = row + down, column + across
            is_inside = 0 <= to[0] < grid.shape[0] and 0 <= to[1] < grid.shape[1]
            # The cell entered is wrong, and should have the color that arrives: 3 0 becomes 0 3 in one action instead
            # of two fills.
            if is_inside and grid[to] != output[to] == grid[row, column]:
                grid[to] = grid[row, column]
                grid[row, column] = 0
                yield operation, row, column
                break


def _fills(grid: Grid, target: Target) -> Iterator[Action]:
    for row, column in np.argwhere(grid != target.output).tolist():
        yield c.FILL + int(target.output[row, column]), row, column
