"""Numbers that the whole package agrees on: colors, padding, operation ids."""

from typing import Final

NUM_COLORS: Final = 10
PADDING: Final = -1  # a cell outside the active area; never a color
MAX_GRID_SIZE: Final = 30  # ARC grids are at most 30x30
MAX_TRACKED_PAIRS: Final = 31  # solved pairs are the bits of one int32

NUM_OPERATIONS: Final = 42
NUM_GRID_OPERATIONS: Final = 35  # ids 0..34; ids 35..41 change the pair

FILL: Final = 0  # + color
FLOOD_FILL: Final = 10  # + color
MOVE_UP: Final = 20
MOVE_DOWN: Final = 21
MOVE_LEFT: Final = 22
MOVE_RIGHT: Final = 23
ROTATE_CLOCKWISE: Final = 24
ROTATE_COUNTERCLOCKWISE: Final = 25
FLIP_LEFT_RIGHT: Final = 26
FLIP_UP_DOWN: Final = 27
COPY: Final = 28
PASTE: Final = 29
CUT: Final = 30
CLEAR: Final = 31
COPY_INPUT: Final = 32
RESIZE: Final = 33
SUBMIT: Final = 34
NEXT_DEMO_PAIR: Final = 35
PREVIOUS_DEMO_PAIR: Final = 36
NEXT_TEST_PAIR: Final = 37
PREVIOUS_TEST_PAIR: Final = 38
RESET_PAIR: Final = 39
FIRST_UNSOLVED_DEMO_PAIR: Final = 40
FIRST_UNSOLVED_TEST_PAIR: Final = 41
NO_OPERATION: Final = -1  # internal: an action that must change nothing

OPERATION_FAMILIES: Final = {
    "fill": range(FILL, FLOOD_FILL),
    "flood": range(FLOOD_FILL, MOVE_UP),
    "move": range(MOVE_UP, ROTATE_CLOCKWISE),
    "turn": range(ROTATE_CLOCKWISE, COPY),
    "copy-paste-cut": range(COPY, CLEAR),
    "clear": range(CLEAR, COPY_INPUT),
    "copy-input": range(COPY_INPUT, RESIZE),
    "resize": range(RESIZE, SUBMIT),
    "submit": range(SUBMIT, NUM_GRID_OPERATIONS),
}
"""The grid operations in order, those that do the same kind of thing together."""

ENVIRONMENT_VERSION: Final = 1
"""Behavior of the environment, the number in ids such as ``jaxarc/arc-agi-1-training-v1``.

It grows by one when an operation, an ending, a reward or an observation changes what it does, together with an entry
under *Semantics* in ``CHANGELOG.md``. Results of two versions do not compare."""
