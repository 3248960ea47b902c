"""Paint with boxes: where a sequence may begin, and the edits that extend it.

A sequence begins with the input turned, moved or cut to the output's size (:func:`box_starts`). It goes on with fills,
flood fills, moves, and copies with their pastes (:class:`BoxEdits`).
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool

from jaxarc import constants as c
from jaxarc.experts.bitboards import components_among, unpack_cells
from jaxarc.experts.expert import Action, Pair
from jaxarc.experts.host_canvas import STEPS, TURNS, Bounds, Grid
from jaxarc.experts.painting.beam import RECTANGLE, SearchNode, Target
from jaxarc.experts.painting.copies import (
    best_boxes,
    copy_candidates,
    crop,
    fill_box,
    gain_of_shift,
    overlay,
    paste,
    paste_once,
    paste_repeatedly,
    resize,
)

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
_TRIES_PER_NODE: Final = 6  # single actions that are tried for each node of the width
_PASTES_LATER: Final = 2  # of a clipboard that is copied already
_LEAST_FOR_COPY: Final = 4  # wrong rectangles; with fewer a copy does not save actions
_FLIPS: Final = (c.FLIP_LEFT_RIGHT, c.FLIP_UP_DOWN)


def box_starts(pair: Pair, target: Target, shifts: int) -> list[SearchNode]:
    """List nodes whose grids have the output's size, the first of them the input with at most a resize.

    Args:
        pair: what to solve.
        target: its output.
        shifts: shifts of the input to look at, for boxes to copy before a resize.
    """
    # All eight symmetries of the input, each made to have the output's size. If that is the input's size, moves of the
    # whole input are starts too; otherwise parts of it may be copied before the resize.
    turned = [_turned(pair.input, turns) for turns in _TURNS]
    starts = [start.resized(pair.output.shape) for start in turned]
    if pair.input.shape == pair.output.shape:
        return [*starts, *_shifted(pair.input)]
    for start in turned:
        if len(start.actions) <= 1 and start.grid.shape == start.canvas_shape:
            starts += _copied(start, target, shifts)
    return starts


class _Start(NamedTuple):
    """The turned input, before it is resized to the output's size."""

    grid: Grid  # the turned input, at the top-left of the active area; the rest of that is 0
    canvas_shape: tuple[int, ...]  # of the active area
    actions: tuple[Action, ...]

    def resized(self, shape: tuple[int, ...]) -> SearchNode:
        actions = self.actions if shape == self.canvas_shape else (*self.actions, resize_action(shape))
        return SearchNode(resize(self.grid, shape), None, actions)


def box_action(operation: int, top: int, left: int, shape: Sequence[int]) -> Action:
    """Return the action on the box of a size."""
    return operation, top, left, top + shape[0] - 1, left + shape[1] - 1


def resize_action(shape: Sequence[int]) -> Action:
    """Return the resize to a size."""
    return box_action(c.RESIZE, 0, 0, shape)


def _turned(grid: Grid, turns: Sequence[int]) -> _Start:
    """Turn the whole input; a rotation first resizes the canvas to a square, so that both directions fit."""
    # An input of 2x3 is resized to 3x3 first; rotated, it has 3x2 cells from the same corner, which a 2x3 canvas would
    # cut.
    longer = max(grid.shape)
    rotates = c.ROTATE_CLOCKWISE in turns or c.ROTATE_COUNTERCLOCKWISE in turns
    canvas_shape = (longer, longer) if rotates else grid.shape
    actions = [] if grid.shape == canvas_shape else [resize_action(canvas_shape)]
    for turn in turns:
        actions.append(box_action(turn, 0, 0, grid.shape))
        grid = TURNS[turn](grid)
    return _Start(np.ascontiguousarray(grid), canvas_shape, tuple(actions))


def _shifted(grid: Grid) -> Iterator[SearchNode]:
    """Move the whole input by one cell in each direction."""
    for operation, step in STEPS.items():
        moved = overlay(np.zeros_like(grid), grid, *step)
        yield SearchNode(moved, None, (box_action(operation, 0, 0, grid.shape),))


def _copied(start: _Start, target: Target, shifts: int) -> Iterator[SearchNode]:
    """Copy a box before the resize and paste it after; the resize would cut it off or clear it."""
    ground = start.resized(target.output.shape)
    for candidate in copy_candidates(target, ground.grid, start.grid, shifts, 2 * RECTANGLE - 1):
        # The order of actions is turns, copy, resize, pastes; the resize is what `ground` has beyond the start.
        clipboard = crop(start.grid, candidate.source)
        copy = c.COPY, *candidate.source
        node = SearchNode(ground.grid, clipboard, (*start.actions, copy, *ground.actions[len(start.actions) :]))
        yield from paste_repeatedly(node, target)


class BoxEdits(NamedTuple):
    """Extends nodes by the most promising edits."""

    target: Target
    width: int  # nodes of one length that are extended
    copying: int  # nodes for which copies are tried, the best first
    shifts: int  # shifts to look at, for boxes to copy

    def __call__(self, nodes: Sequence[SearchNode]) -> Iterator[SearchNode]:
        # Cheap edits for all nodes, costly ones for the best: fills, floods and moves; a paste of what the clipboard
        # holds; and, where enough is wrong for two actions to pay, copies with their pastes.
        yield from self._simple_edits(nodes)
        for node in nodes:
            yield from paste_once(node, self.target, _PASTES_LATER)
        for node in nodes[: self.copying]:
            if self.target.count_rectangles(node.grid) >= _LEAST_FOR_COPY:
                yield from self._copies(node)
                yield from self._flipped_copies(node)

    def _simple_edits(self, nodes: Sequence[SearchNode]) -> Iterator[SearchNode]:
        """Yield those of all nodes' fills, floods and moves that leave the fewest wrong cells."""
        # The tries of all nodes compete: a good node may have many successors and a poor one none.
        moves = _best_moves(nodes[: self.copying], self.target)
        tries = [*_best_fills(nodes, self.target), *moves, *_floods(nodes, self.target)]
        tries.sort(key=lambda node: self.target.count_wrong(node.grid))
        yield from tries[: _TRIES_PER_NODE * self.width]

    def _copies(self, node: SearchNode) -> Iterator[SearchNode]:
        """Copy or cut a box and paste it."""
        target = self.target
        grid = node.grid
        for candidate in copy_candidates(target, grid, grid, self.shifts, 2 * RECTANGLE - 1):
            clipboard = crop(grid, candidate.source)
            copied = SearchNode(grid, clipboard, (*node.actions, (c.COPY, *candidate.source)))
            yield from paste_repeatedly(copied, target)
            # A cut instead of the copy pays when the zeros that it leaves make more cells right than wrong.
            left = fill_box(grid, candidate.source, 0)
            if target.count_wrong(left) < target.count_wrong(grid):
                cut = SearchNode(left, clipboard, (*node.actions, (c.CUT, *candidate.source)))
                yield from paste_repeatedly(cut, target)

    def _flipped_copies(self, node: SearchNode) -> Iterator[SearchNode]:
        """Copy a box, paste it and flip the pasted cells.

        The candidates are boxes of the flipped grid, as if that could be copied; each is then found in the grid itself.
        """
        grid = node.grid
        for flip in _FLIPS:
            mirrored = TURNS[flip](grid)
            for candidate in copy_candidates(self.target, grid, mirrored, self.shifts, 3 * RECTANGLE - 1):
                # A box of the mirrored grid, found in the grid: in a row of five, columns 0..1 of the mirror are
                # columns 3..4. The flip after the paste turns the pasted cells into what the mirror showed.
                source = _flipped_box(candidate.source, flip, grid.shape)
                clipboard = crop(grid, source)
                row, column = candidate.corner
                after = paste(grid, TURNS[flip](clipboard), row, column)
                actions = (
                    (c.COPY, *source),
                    (c.PASTE, row, column, row, column),
                    box_action(flip, row, column, clipboard.shape),
                )
                yield SearchNode(after, clipboard, (*node.actions, *actions))


def _best_fills(nodes: Sequence[SearchNode], target: Target) -> Iterator[SearchNode]:
    """Yield for each node and color two fills: that which wins the most cells, and that which wins the most value."""
    # Two maps for each node and color, best boxes of all of them in one call: [2 K of each node, h, w] -> a box for
    # each.
    maps = []
    tries = []
    for node in nodes:
        colors = target.wrong_colors(node.grid)
        maps += [target.cells_of_fill(node.grid, colors), target.gain_of_fill(node.grid, colors)]
        tries += [(node, color) for color in (*colors, *colors)]
    for (node, color), box in zip(tries, best_boxes(np.concatenate(maps))[1].tolist(), strict=True):
        yield node.then(fill_box(node.grid, box, color), (c.FILL + color, *box))


def _best_moves(nodes: Sequence[SearchNode], target: Target) -> Iterator[SearchNode]:
    """Yield for each node and direction the move that wins the most, if that is two rectangles or more."""
    if not nodes:
        return
    tries = [(node, operation) for node in nodes for operation in STEPS]
    gains = [gain_of_shift(target, node.grid, node.grid, *STEPS[operation]) for node, operation in tries]
    sums, boxes = best_boxes(np.stack(gains))
    for (node, operation), gain, box in zip(tries, sums.tolist(), boxes.tolist(), strict=True):
        if gain >= 2 * RECTANGLE - 1:
            yield _moved(node, operation, box)


def _moved(node: SearchNode, operation: int, to: Bounds) -> SearchNode:
    """Move the content of a neighboring box into the box ``to``."""
    down, across = STEPS[operation]
    top, left, bottom, right = to
    # The gain was found for the destination; the action selects the cells before the move, one step back.
    source = top - down, left - across, bottom - down, right - across
    grid = paste(fill_box(node.grid, source, 0), crop(node.grid, source), top, left)
    return node.then(grid, (operation, *source))


def _floods(nodes: Sequence[SearchNode], target: Target) -> Iterator[SearchNode]:
    """Flood each region with the color that wins the most cells, if that wins two cells or more."""
    for node in nodes:
        grid = node.grid
        for region, (row, column) in components_among(grid, (grid != target.output) & _has_equal_neighbor(grid)):
            cells = unpack_cells(region, grid.shape)
            # won[k] counts the region's cells that should have color k. A region of 0 whose cells should be 3 3 3 0 4
            # wins three cells by the color 3 and loses the one that is right: a gain of 2.
            won = np.bincount(target.output[cells], minlength=10)
            right = won[grid[row, column]]
            won[grid[row, column]] = 0
            color = int(won.argmax())
            if won[color] - right >= 2:
                after = grid.copy()
                after[cells] = color
                yield node.then(after, (c.FLOOD_FILL + color, row, column, row, column))


def _has_equal_neighbor(grid: Grid) -> Bool[np.ndarray, "h w"]:
    """Which cells share a side with a cell of their color; a flood of any other changes one cell, as a fill does."""
    has = np.zeros(grid.shape, np.bool_)
    # Each pair of equal neighbors marks both of its cells: the row 1 1 2 has the pairs 1 0, which mark 1 1 0.
    vertical = grid[1:] == grid[:-1]
    horizontal = grid[:, 1:] == grid[:, :-1]
    has[1:] |= vertical
    has[:-1] |= vertical
    has[:, 1:] |= horizontal
    has[:, :-1] |= horizontal
    return has


def _flipped_box(box: Bounds, flip: int, shape: tuple[int, ...]) -> Bounds:
    """Return the box that a flip of the whole grid moves to the given box."""
    top, left, bottom, right = box
    if flip == c.FLIP_LEFT_RIGHT:
        return top, shape[1] - 1 - right, bottom, shape[1] - 1 - left
    return shape[0] - 1 - bottom, left, shape[0] - 1 - top, right
