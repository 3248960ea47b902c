"""An expert on the host that turns any input into any output with few actions, in each action format."""

from dataclasses import asdict, dataclass

import numpy as np

from jaxarc import constants as c
from jaxarc.experts.expert import Action, ActionFormat, CannotSolveError, Pair
from jaxarc.experts.host_canvas import check_solution
from jaxarc.experts.painting.beam import Target, prune, search
from jaxarc.experts.painting.boxes import BoxEdits, box_starts
from jaxarc.experts.painting.masks import paint_with_masks
from jaxarc.experts.painting.points import paint_with_points
from jaxarc.host_arrays import to_numpy


@dataclass(frozen=True)
class Painter:
    """Solves every pair with the shortest sequence that a beam search finds, and checks it by replay.

    - *bbox*: begins with the input, turned, moved, resized, or with parts of it copied before the resize; then fills,
      flood fills, moves, and boxes that are copied or cut, pasted, and flipped.
    - *mask*: one fill for each color that is wrong; before it a turn, a move or a copy that makes some right.
    - *point*: flood fills, walls of single cells that part regions for them, moves of a cell, single fills.

    No sequence is longer than a resize, a fill for each wrong cell and the submit. It uses no random numbers and no
    clock: the same pair gives the same actions on every machine. Larger settings make sequences a little shorter, and
    are part of the identity of its traces.
    """

    width: int = 6  # sequences of one length that are extended
    copying: int = 2  # of them, those for which copies of boxes are tried
    shifts: int = 6  # shifts of a grid to look at, for boxes to copy

    name = "painter"
    version = 1

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            least = 0 if name == "copying" else 1
            if type(value) is not int or value < least:
                raise ValueError(f"{name} must be a whole number from {least} on, got {value!r}; correct it")

    def solve(self, pair: Pair, action_format: ActionFormat) -> tuple[Action, ...]:
        """Return actions that turn the pair's input into its output, the last of them a submit.

        Args:
            pair: what to solve; editing starts from its input.
            action_format: how selections are given.

        Raises:
            CannotSolveError: a grid is empty, larger than 30x30 or has other numbers than 0..9 in it, or the
                format is none of the three.
        """
        pair = Pair(*(_checked(grid, name) for grid, name in zip(pair, Pair._fields, strict=True)))
        target = Target(pair.output)
        if action_format == "point":
            actions = paint_with_points(pair, target, self.width)
            nowhere = (0, 0)
        elif action_format == "bbox":
            starts = box_starts(pair, target, self.shifts)
            edits = BoxEdits(target, self.width, self.copying, self.shifts)
            found = search(starts, edits, target, self.width)
            actions = prune(pair, found, action_format)
            nowhere = (0, 0, 0, 0)
        elif action_format == "mask":
            actions = paint_with_masks(pair, target, self.shifts)
            nowhere = ()
        else:
            raise CannotSolveError(f"action format {action_format!r} is none of point, bbox, mask; name one of them")
        # Every solution is replayed before it leaves, so a fault of the search shows here and not in a trace.
        actions = (*actions, (c.SUBMIT, *nowhere))
        check_solution(pair, actions, action_format)
        return actions


def _checked(grid: np.ndarray, name: str) -> np.ndarray:
    grid = to_numpy(grid)
    if grid.ndim != 2 or not 0 < min(grid.shape) <= max(grid.shape) <= c.MAX_GRID_SIZE:
        raise CannotSolveError(
            f"the pair's {name} has shape {grid.shape}, sides are 1..{c.MAX_GRID_SIZE}; pass the grid without padding"
        )
    if not np.issubdtype(grid.dtype, np.integer) or grid.min() < 0 or grid.max() >= c.NUM_COLORS:
        raise CannotSolveError(f"the pair's {name} has cells that are not whole numbers 0..9; correct them")
    return grid.astype(np.int8)
