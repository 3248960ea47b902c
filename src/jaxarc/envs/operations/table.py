"""What each operation id is called."""

from typing import Final

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
