"""The output as a target, and a beam search over sequences of edits that reach it.

A node of the search is a grid with the actions that led to it. Nodes wait in a queue for each number of actions; the
search always extends the best few nodes of the shortest length. With a width of 2 and the lengths of nodes in brackets:

    starts [0] a, [1] b c d     extend a -> [1] e, [2] f
    best two of [1] b c d e     extend c, e -> [2] g h, [3] i
    best two of [2] f g h       ... until a node is solved and no shorter one can be
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Bool, Int32, Int64

from jaxarc.constants import NUM_COLORS
from jaxarc.experts.bitboards import pack_cells
from jaxarc.experts.expert import Action, ActionFormat, Pair
from jaxarc.experts.host_canvas import Grid, play_on_host

RECTANGLE: Final = 1000
"""The value of a whole rectangle of the output; each of its cells has an equal share."""
_LEAST_LOSS: Final = 300  # a right cell costs at least this much to spoil: mending it takes a part of an action
_CELLS_PER_RECTANGLE: Final = 5  # wrong cells that count as much as one more wrong rectangle
_MAX_PRUNED: Final = 60  # actions; the work grows with the square, and long sequences have few needless ones


class Target:
    """An output cut into rectangles of one color, each of which one action is likely to fill."""

    output: Grid
    value: Int32[np.ndarray, "h w"]  # of a cell that becomes right; the cells of a rectangle sum to RECTANGLE
    loss: Int32[np.ndarray, "h w"]  # of a cell that becomes wrong

    def __init__(self, output: Grid):
        self.output = output
        # Runs of columns may give fewer rectangles than runs of rows.
        self._rectangles = min(_rectangles_by_rows(output), _rectangles_by_rows(output.T).T, key=np.max)
        # A rectangle of 4 cells gives each 250, a rectangle of 1 cell 1000: small details are worth as much as large
        # areas.
        size = np.bincount(self._rectangles.ravel())
        self.value = np.maximum(RECTANGLE // size, 1)[self._rectangles].astype(np.int32)
        self.loss = np.maximum(self.value, np.int32(_LEAST_LOSS))

    @cached_property
    def colors(self) -> Bool[np.ndarray, "10 h w"]:
        """Which cells of the output have each color."""
        return self.output == np.arange(NUM_COLORS, dtype=np.int8)[:, None, None]

    @cached_property
    def bits(self) -> dict[int, int]:
        """The same as bits, for the colors that the output has."""
        return {color: pack_cells(self.colors[color]) for color in np.unique(self.output).tolist()}

    def count_wrong(self, grid: Grid) -> int:
        """Count the wrong cells of a grid of the output's size."""
        return int(np.count_nonzero(grid != self.output))

    def count_rectangles(self, grid: Grid) -> int:
        """Count the rectangles with a wrong cell in a grid of the output's size."""
        return int(np.count_nonzero(np.bincount(self._rectangles[grid != self.output])))

    def wrong_colors(self, grid: Grid) -> list[int]:
        """List the colors that wrong cells should have."""
        return np.flatnonzero(np.bincount(self.output[grid != self.output], minlength=1)).tolist()

    def gain_of_fill(self, grid: Grid, colors: list[int]) -> Int32[np.ndarray, "K h w"]:
        """Value that filling a cell with each color wins or loses."""
        return self._gain(grid, self.colors[colors], self.value, self.loss)

    def cells_of_fill(self, grid: Grid, colors: list[int]) -> Int32[np.ndarray, "K h w"]:
        """Cells that filling wins or loses, weighted so that of equal differences the one that changes more is larger.

        With N above the number of cells, a won cell counts N and a lost one 1 - N: 3 won and 1 lost sum to 2 N + 1,
        more than the 2 N of 2 won and none lost, and less than the 3 N of 3 won.
        """
        won = np.int32(grid.size + 1)
        return self._gain(grid, self.colors[colors], won, won - np.int32(1))

    def gain_of_change(self, grid: Grid, changed: Grid) -> Int32[np.ndarray, "h w"]:
        """Value that each cell of a changed grid wins or loses."""
        return self._gain(grid, changed == self.output, self.value, self.loss)

    def _gain(
        self,
        grid: Grid,
        will_be_right: Bool[np.ndarray, "*K h w"],
        value: Int32[np.ndarray, "h w"] | np.int32,
        loss: Int32[np.ndarray, "h w"] | np.int32,
    ) -> Int32[np.ndarray, "*K h w"]:
        """Value of the cells that become right, loss of those that become wrong, and 0 for all others."""
        lost = np.where(will_be_right, np.int32(0), -loss)
        return np.where(grid == self.output, lost, np.where(will_be_right, value, np.int32(0)))


class SearchNode(NamedTuple):
    """Some actions, and the grid and clipboard that they leave."""

    grid: Grid
    clipboard: Grid | None
    actions: tuple[Action, ...]

    def then(self, grid: Grid, *actions: Action) -> "SearchNode":
        """Append actions that leave this grid and keep the clipboard."""
        return SearchNode(grid, self.clipboard, (*self.actions, *actions))


Edits: TypeAlias = Callable[[Sequence[SearchNode]], Iterable[SearchNode]]
"""Extends nodes of one length to longer ones."""


def search(starts: Sequence[SearchNode], edits: Edits, target: Target, width: int) -> tuple[Action, ...]:
    """Find actions that make the grid equal to the output.

    The result never has more actions than the first start and a fill for each of its wrong cells: the search drops a
    node that could exceed this if each cell that is still wrong took one action.

    Args:
        starts: nodes whose grids have the output's size.
        edits: extends nodes; for any node it must offer one action that makes more cells right.
        target: the output.
        width: nodes of one length that are extended.
    """
    # The first start, finished by a fill for each wrong cell: nothing longer than that is worth keeping.
    limit = len(starts[0].actions) + target.count_wrong(starts[0].grid)
    waiting: defaultdict[int, list[SearchNode]] = defaultdict(list)  # by the number of actions
    solved: SearchNode | None = None
    offered: Iterable[SearchNode] = starts
    length = -1  # of the nodes that were extended last
    while True:
        for node in offered:
            wrong = target.count_wrong(node.grid)
            if wrong == 0 and (solved is None or len(node.actions) < len(solved.actions)):
                solved = node
                if len(node.actions) == length + 1:  # an extension adds an action or more: this is the shortest
                    return node.actions
            # With this bound every kept node can be finished within the limit, one cell at a time.
            if len(node.actions) + wrong <= limit:
                waiting[len(node.actions)].append(node)
        # The shortest nodes go next, the best `width` of them; their successors are longer, so a length never comes
        # again.
        length = min(waiting)
        if solved is not None and len(solved.actions) <= length + 1:  # every later node is at least as long
            return solved.actions
        offered = edits(_best(waiting.pop(length), target, width))


def prune(pair: Pair, actions: Sequence[Action], action_format: ActionFormat) -> tuple[Action, ...]:
    """Drop, from the first on, every action without which the grid still becomes the output.

    Examples are a fill that later fills cover, and a copy that is never pasted. Sequences of more than 60 actions stay
    as they are.
    """
    kept = tuple(actions)
    index = 0
    while index < len(kept) <= _MAX_PRUNED:
        # If the action is needless, the next one takes its index, so the index moves on only past needed actions.
        fewer = kept[:index] + kept[index + 1 :]
        if np.array_equal(play_on_host(pair, fewer, action_format), pair.output):
            kept = fewer
        else:
            index += 1
    return kept


def _best(nodes: Sequence[SearchNode], target: Target, width: int) -> list[SearchNode]:
    """Keep the nodes with the least left to do; of those with equal grid and clipboard only the first."""
    different: dict[tuple[bytes, bytes], SearchNode] = {}
    for node in nodes:
        # The shape is part of the key: clipboards of 2x3 and 3x2 may have the same bytes.
        clipboard = b"" if node.clipboard is None else bytes(node.clipboard.shape) + node.clipboard.tobytes()
        different.setdefault((node.grid.tobytes(), clipboard), node)
    left_to_do = lambda node: _CELLS_PER_RECTANGLE * target.count_rectangles(node.grid) + target.count_wrong(node.grid)
    return sorted(different.values(), key=left_to_do)[:width]


def _rectangles_by_rows(grid: Grid) -> Int64[np.ndarray, "h w"]:
    """Number the rectangles that each run of one color makes with equal runs above it.

    The grid on the left has the runs in the middle and the rectangles on the right; run 2 continues run 0 and run 3
    continues run 1, as they have the same columns and colors, but run 4 does not continue run 2:

        1 1 2     0 0 1     0 0 1
        1 1 2     2 2 3     0 0 1
        1 1 1     4 4 4     2 2 2
    """
    height, width = grid.shape
    # Runs are numbered through the whole grid, row by row. In the example they start at the flat cells 0 2 3 5 6 and
    # have the lengths 2 1 2 1 3 and the colors 1 2 1 2 1.
    begins = np.ones(grid.shape, np.bool_)
    begins[:, 1:] = grid[:, 1:] != grid[:, :-1]
    run_of_cell = np.cumsum(begins) - 1
    starts = np.flatnonzero(begins)
    lengths = np.diff(starts, append=grid.size)
    colors = grid.ravel()[starts]
    # The run above is that of the cell one row up; runs 2, 3 and 4 have 0, 1 and 2 above them. Starting in the same
    # column with equal lengths, two runs have the same columns; run 4 is longer than run 2 and begins a rectangle.
    above = run_of_cell[np.maximum(starts - width, 0)]
    continues = (starts >= width) & (starts[above] == starts - width)
    continues &= (lengths == lengths[above]) & (colors == colors[above])
    rectangle = np.arange(len(starts))
    for run in np.flatnonzero(continues).tolist():  # from the top, so that the run above has its final number
        rectangle[run] = rectangle[above[run]]
    return np.unique(rectangle, return_inverse=True)[1][run_of_cell].reshape(height, width)
