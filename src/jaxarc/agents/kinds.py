"""The kinds of edit that a policy chooses among: operations, with those that differ only in a color taken together."""

from typing import Final, Literal, NamedTuple

import numpy as np

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig

Selects = Literal["box", "cell", "size", "nothing"]


class Kind(NamedTuple):
    """What an edit of this kind needs to be chosen."""

    name: str
    operation: int  # the id; for kinds with a color, the id with color 0
    selects: Selects  # a box, one cell, the last cell of the resized grid, or nothing
    colored: bool = False


_EVERY_KIND: Final = (
    Kind("paint", c.FILL, "box", colored=True),
    Kind("flood fill", c.FLOOD_FILL, "cell", colored=True),
    *(Kind(name, operation, "box") for operation, name in enumerate(
        ("move up", "move down", "move left", "move right", "rotate clockwise", "rotate counterclockwise",
         "flip left-right", "flip up-down", "copy", "paste", "cut", "clear"), start=c.MOVE_UP)),
    Kind("copy input", c.COPY_INPUT, "nothing"),
    Kind("resize", c.RESIZE, "size"),
    Kind("submit", c.SUBMIT, "nothing"),
)  # fmt: skip


def kinds_of(config: JaxArcConfig) -> tuple[Kind, ...]:
    """Return the kinds of the operations that a config allows, in the order of their ids; none changes the pair."""
    allowed = set(config.legal_operations)
    return tuple(kind for kind in _EVERY_KIND if allowed & set(_operations(kind)))


def allowed_colors(kinds: tuple[Kind, ...], config: JaxArcConfig) -> np.ndarray:
    """Tell which colors each kind may use, bool[K, 10]; all of them for kinds without a color."""
    allowed = set(config.legal_operations)
    rows = [[kind.operation + color in allowed or not kind.colored for color in range(c.NUM_COLORS)] for kind in kinds]
    return np.array(rows, np.bool_)


def _operations(kind: Kind) -> range:
    return range(kind.operation, kind.operation + (c.NUM_COLORS if kind.colored else 1))
