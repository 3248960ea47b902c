"""Paint with masks: one fill for each color that is wrong; a turn, a copy or a move comes first if it saves fills."""

from collections.abc import Iterator
from typing import Final

import numpy as np
from jaxtyping import Bool

from jaxarc import constants as c
from jaxarc.experts.expert import Action, Pair
from jaxarc.experts.host_canvas import STEPS, Grid
from jaxarc.experts.painting.beam import SearchNode, Target
from jaxarc.experts.painting.boxes import box_starts
from jaxarc.experts.painting.copies import correlate, overlay, signed_shift

_COPY_ACTIONS: Final = 2  # copy and paste


def paint_with_masks(pair: Pair, target: Target, shifts: int) -> tuple[Action, ...]:
    """Find actions with masks that turn the input into the output.

    Args:
        pair: what to solve.
        target: its output.
        shifts: shifts of the input to look at, for boxes to copy before a resize.
    """
    # Masks reach any cells at once, so what a start still needs is one fill for each wrong color, and the best start is
    # the one with the fewest actions and wrong colors together.
    starts = [_with_masks(start) for start in box_starts(pair, target, shifts)]
    nodes = [*starts, *_copied(pair.input, starts[0], target)]
    for start in starts:
        nodes += _moved(start, target)
    best = min(nodes, key=lambda node: len(node.actions) + len(target.wrong_colors(node.grid)))
    wrong = best.grid != target.output
    fills = [_on_cells(c.FILL + color, wrong & target.colors[color]) for color in target.wrong_colors(best.grid)]
    return *best.actions, *fills


def _with_masks(node: SearchNode) -> SearchNode:
    """Turn the boxes of a node's actions into masks."""
    return node._replace(actions=tuple(_as_mask(action) for action in node.actions))


def _as_mask(action: Action) -> Action:
    """List the cells of a box: ``(2, 0, 0, 1, 1)`` becomes ``(2, 0, 0, 0, 1, 1, 0, 1, 1)``."""
    operation, top, left, bottom, right = action
    if operation == c.RESIZE:  # the size is that of the lower right corner
        return operation, bottom, right
    rows, columns = np.mgrid[top : bottom + 1, left : right + 1]
    return operation, *np.stack([rows, columns], axis=-1).ravel().tolist()


def _on_cells(operation: int, cells: Bool[np.ndarray, "h w"]) -> Action:
    return operation, *np.argwhere(cells).ravel().tolist()


def _copied(source: Grid, start: SearchNode, target: Target) -> Iterator[SearchNode]:
    """Copy cells of the input and paste them at the shift that completes the most colors, if that saves actions.

    A shift completes a color if the shifted input has it at all wrong cells that should have it; the fill of that color
    is then not needed. ``won`` counts for each color and shift the cells that become right.
    """
    grid = start.grid
    wrong = grid != target.output
    colors = target.wrong_colors(grid)
    if len(colors) <= _COPY_ACTIONS:
        return
    # bool[K, h, w] for K wrong colors. won[k, shift] counts wanted cells that the shifted source makes right; where
    # that is all of them, the fill of color k can go. Copy and paste cost two actions, so it takes three colors to pay.
    wanted = target.colors[colors] & wrong
    won = correlate(wanted, source == np.array(colors, np.int8)[:, None, None])
    completed = won == wanted.sum(axis=(1, 2))[:, None, None]
    count = completed.sum(axis=0)
    shift = divmod(int(count.argmax()), count.shape[1])
    if count[shift] <= _COPY_ACTIONS:
        return
    # The cells of all colors that the best shift completes. They are copied from the cells one shift back, and the
    # paste puts the top-left corner of their bounding box where it was wanted.
    pasted = wanted[completed[:, *shift]].any(axis=0)
    down, across = signed_shift(shift, count.shape, grid.shape)
    rows, columns = np.nonzero(pasted)
    sources = np.zeros(source.shape, np.bool_)
    sources[rows - down, columns - across] = True
    paste = c.PASTE, int(rows.min()), int(columns.min())
    after = np.where(pasted, target.output, grid)
    yield start._replace(grid=after, actions=(_on_cells(c.COPY, sources), *start.actions, paste))


def _moved(node: SearchNode, target: Target) -> Iterator[SearchNode]:
    """Move all cells by one that are right afterwards, in each direction.

    A cell moves if its color is right one step on. It leaves a 0 unless another cell arrives. Cells that would leave a
    wrong 0 stay; then fewer cells arrive, so this repeats until none spoils. To the right, for the output ``0 1 2 0``:

        grid  1 2 0 0      moving  x x x .      arriving  . x x x      column 0 keeps the 0, which is right
    """
    grid = node.grid
    output = target.output
    for operation, (down, across) in STEPS.items():
        # The output, shifted back by one step, shows each cell the color wanted one step on; -1 at the edge equals no
        # color.
        moving = grid == overlay(np.full_like(output, -1), output, -down, -across)
        while True:
            arriving = overlay(np.zeros_like(moving), moving, down, across)
            # A cell that moves away with none arriving would leave a 0 where the output has another color.
            spoils = moving & ~arriving & (output != 0)
            if not spoils.any():
                break
            moving &= ~spoils
        if (moving & (grid != 0)).any():
            after = np.where(arriving, output, np.where(moving, np.int8(0), grid))
            yield node.then(after, _on_cells(operation, moving))
