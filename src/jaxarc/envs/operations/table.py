"""The 42 operations: their names, and which of them belong to which family."""

from typing import Final, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32

from jaxarc import constants as c

OPERATION_NAMES: Final[dict[int, str]] = {
    **{c.FILL + color: f"fill {color}" for color in range(c.NUM_COLORS)},
    **{c.FLOOD_FILL + color: f"flood fill {color}" for color in range(c.NUM_COLORS)},
    c.MOVE_UP: "move up",
    c.MOVE_DOWN: "move down",
    c.MOVE_LEFT: "move left",
    c.MOVE_RIGHT: "move right",
    c.ROTATE_CLOCKWISE: "rotate clockwise",
    c.ROTATE_COUNTERCLOCKWISE: "rotate counter-clockwise",
    c.FLIP_LEFT_RIGHT: "flip left-right",
    c.FLIP_UP_DOWN: "flip up-down",
    c.COPY: "copy",
    c.PASTE: "paste",
    c.CUT: "cut",
    c.CLEAR: "clear",
    c.COPY_INPUT: "copy input",
    c.RESIZE: "resize",
    c.SUBMIT: "submit",
    c.NEXT_DEMO_PAIR: "next demonstration pair",
    c.PREVIOUS_DEMO_PAIR: "previous demonstration pair",
    c.NEXT_TEST_PAIR: "next test pair",
    c.PREVIOUS_TEST_PAIR: "previous test pair",
    c.RESET_PAIR: "reset pair",
    c.FIRST_UNSOLVED_DEMO_PAIR: "first unsolved demonstration pair",
    c.FIRST_UNSOLVED_TEST_PAIR: "first unsolved test pair",
}


def get_operation_name(operation: int) -> str:
    """Return the name of an operation id in 0..41.

    Raises:
        ValueError: the id names no operation.
    """
    if operation not in OPERATION_NAMES:
        raise ValueError(f"operation must be in 0..{c.NUM_OPERATIONS - 1}, got {operation}")
    return OPERATION_NAMES[operation]


class OperationSet(NamedTuple):
    """Some operations, as spans of ids: one test for a known id, one for a traced one."""

    spans: tuple[tuple[int, int], ...]  # first and last id, both included

    def __contains__(self, operation: object) -> bool:
        return any(operation in range(first, last + 1) for first, last in self.spans)

    def __or__(self, other: "OperationSet") -> "OperationSet":
        return OperationSet(self.spans + other.spans)

    @property
    def mask(self) -> Bool[np.ndarray, " 42"]:
        """True at the ids of the set."""
        return np.array([operation in self for operation in range(c.NUM_OPERATIONS)])

    def has(self, operation: Int32[Array, "*B"]) -> Bool[Array, "*B"]:
        """Whether each operation is one of the set; two comparisons per span, one for a span of one id."""
        found = None
        for first, last in self.spans:
            is_here = operation == first if first == last else (operation >= first) & (operation <= last)
            found = is_here if found is None else found | is_here
        assert found is not None, "a set of operations has at least one span"
        return found


def _set(*operations: int) -> OperationSet:
    return OperationSet(tuple((operation, operation) for operation in operations))


# What an operation does to the canvas. Each one is in at most one of the first five, which have a kernel each.
FLOODS: Final = OperationSet(((c.FLOOD_FILL, c.FLOOD_FILL + c.NUM_COLORS - 1),))
MOVES: Final = OperationSet(((c.MOVE_UP, c.MOVE_RIGHT),))
SHIFTS: Final = MOVES | OperationSet(((c.COPY, c.CUT),))  # every cell goes the same way: moves, copy, paste, cut
TURNS: Final = OperationSet(((c.ROTATE_CLOCKWISE, c.FLIP_UP_DOWN),))
LOADS_INPUT: Final = _set(c.COPY_INPUT)
CHANGES_PAIR: Final = OperationSet(((c.NEXT_DEMO_PAIR, c.FIRST_UNSOLVED_TEST_PAIR),))
FILLS: Final = OperationSet(((c.FILL, c.FILL + c.NUM_COLORS - 1),))
COPIES: Final = _set(c.COPY, c.CUT)  # what sets the clipboard
ERASES: Final = _set(c.CUT, c.CLEAR)  # what leaves color 0
# What an operation needs to apply. One that cannot apply changes nothing and costs a step.
NEEDS_ACTIVE_CELLS: Final = FILLS | OperationSet(((c.COPY, c.CUT),))  # a selected cell in the active area
NEEDS_ONE_CELL: Final = FLOODS  # exactly one selected cell in the active area
# Where an operation that changes the pair goes to; the rest, 39, starts the current pair again.
TO_NEXT_PAIR: Final = _set(c.NEXT_DEMO_PAIR, c.NEXT_TEST_PAIR)
TO_PREVIOUS_PAIR: Final = _set(c.PREVIOUS_DEMO_PAIR, c.PREVIOUS_TEST_PAIR)
TO_FIRST_UNSOLVED_PAIR: Final = _set(c.FIRST_UNSOLVED_DEMO_PAIR, c.FIRST_UNSOLVED_TEST_PAIR)


def move_offset(operation: Int32[Array, "*B"]) -> tuple[Int32[Array, "*B"], Int32[Array, "*B"]]:
    """Rows down and columns to the right by which a move shifts its cells; 0 and 0 for every other operation."""
    # Each difference of two flags is -1, 0 or 1: a move up gives (-1, 0), a move right (0, 1), a fill (0, 0).
    is_move = lambda code: (operation == code).astype(jnp.int32)
    down = is_move(c.MOVE_DOWN) - is_move(c.MOVE_UP)
    across = is_move(c.MOVE_RIGHT) - is_move(c.MOVE_LEFT)
    return down, across
