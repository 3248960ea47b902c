"""The output as a goal: how much of it is missing in a grid, in cells and in pieces."""

from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Bool, Int32, Int64

from jaxarc.constants import NUM_COLORS
from jaxarc.experts.bitboards import pack_cells
from jaxarc.experts.host_canvas import Grid

PIECE: Final = 1000
"""What a whole piece is worth; each of its cells is worth its share."""
_LEAST_LOSS: Final = 300  # a right cell costs at least so much to spoil: mending it takes a part of an action


class Goal:
    """An output cut into rectangles of one color, its pieces: about what is filled by one action each."""

    output: Grid
    worth: Int32[np.ndarray, "h w"]  # of a cell that becomes right, PIECE for all cells of a piece
    loss: Int32[np.ndarray, "h w"]  # of a cell that becomes wrong

    def __init__(self, output: Grid):
        self.output = output
        self._pieces = min(_pieces_by_rows(output), _pieces_by_rows(output.T).T, key=np.max)
        size = np.bincount(self._pieces.ravel())
        self.worth = np.maximum(PIECE // size, 1)[self._pieces].astype(np.int32)
        self.loss = np.maximum(self.worth, np.int32(_LEAST_LOSS))

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

    def count_pieces(self, grid: Grid) -> int:
        """Count the pieces with a wrong cell of a grid of the output's size."""
        return int(np.count_nonzero(np.bincount(self._pieces[grid != self.output])))

    def wrong_colors(self, grid: Grid) -> list[int]:
        """List the colors that wrong cells should have."""
        return np.flatnonzero(np.bincount(self.output[grid != self.output], minlength=1)).tolist()

    def gain_of_fill(self, grid: Grid, colors: list[int]) -> Int32[np.ndarray, "K h w"]:
        """What filling a cell with each color makes right or wrong, in shares of pieces."""
        right = grid == self.output
        gain, loss = np.where(right, np.int32(0), self.worth), np.where(right, -self.loss, np.int32(0))
        return np.where(self.colors[colors], gain, loss)

    def cells_of_fill(self, grid: Grid, colors: list[int]) -> Int32[np.ndarray, "K h w"]:
        """The same in cells won less cells lost; of equal differences the one that moves more counts more."""
        right, won = grid == self.output, grid.size + 1
        gain, loss = np.where(right, np.int32(0), np.int32(won)), np.where(right, np.int32(1 - won), np.int32(0))
        return np.where(self.colors[colors], gain, loss)

    def gain_of_change(self, grid: Grid, changed: Grid) -> Int32[np.ndarray, "h w"]:
        """What each cell of a changed grid makes right or wrong, in shares of pieces."""
        right, will_be = grid == self.output, changed == self.output
        return np.where(right, np.where(will_be, np.int32(0), -self.loss), np.where(will_be, self.worth, np.int32(0)))


def _pieces_by_rows(grid: Grid) -> Int64[np.ndarray, "h w"]:
    """Number the rectangles that runs of one color make with equal runs above them."""
    height, width = grid.shape
    begins = np.ones(grid.shape, np.bool_)
    begins[:, 1:] = grid[:, 1:] != grid[:, :-1]
    run_of_cell = np.cumsum(begins) - 1
    starts = np.flatnonzero(begins)
    lengths = np.diff(starts, append=grid.size)
    colors = grid.ravel()[starts]
    above = run_of_cell[np.maximum(starts - width, 0)]
    continues = (starts >= width) & (starts[above] == starts - width)
    continues &= (lengths == lengths[above]) & (colors == colors[above])
    piece = np.arange(len(starts))
    for run in np.flatnonzero(continues).tolist():  # from the top, so that the run above has its final number
        piece[run] = piece[above[run]]
    return np.unique(piece, return_inverse=True)[1][run_of_cell].reshape(height, width)
