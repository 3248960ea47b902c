"""Edits: what a policy chooses, the kinds it chooses among, and the actions of the environment they become."""

from typing import Final, Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.envs.structured_actions import BboxAction

Selects = Literal["box", "cell", "size", "nothing"]


class Kind(NamedTuple):
    """A kind of edits, and the choices that make an edit of it."""

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
    """Return the colors that each kind may use, bool[K, 10]; all of them for kinds without a color."""
    allowed = set(config.legal_operations)
    rows = [[kind.operation + color in allowed or not kind.colored for color in range(c.NUM_COLORS)] for kind in kinds]
    return np.array(rows, np.bool_)


def _operations(kind: Kind) -> range:
    return range(kind.operation, kind.operation + (c.NUM_COLORS if kind.colored else 1))


class Edit(NamedTuple):
    """An action, part by part in the order of choice. A cell is ``row * W + column``.

    Parts that a kind does not need hold any valid value.
    """

    kind: Int32[Array, "*B"]  # index in the policy's kinds
    first: Int32[Array, "*B"]  # a corner of the box, or the one cell
    second: Int32[Array, "*B"]  # the opposite corner of the box, or the last cell of the resized grid
    color: Int32[Array, "*B"]  # 0 .. 9


def to_action(edit: Edit, kinds: tuple[Kind, ...], width: int) -> BboxAction:
    """Turn edits into actions on a canvas of ``width`` columns."""
    # Each kind is a row of three small tables. A paint in color 7 is operation 0 + 7, a flood fill 10 + 7.
    operations, colored, selects = _columns(kinds)
    operation = operations[edit.kind] + jnp.where(colored[edit.kind], edit.color, 0)
    select = selects[edit.kind]
    first = jnp.where(select == _SIZE, 0, edit.first)  # a new size counts from the grid's own corner
    second = jnp.where(select == _CELL, edit.first, edit.second)
    return BboxAction(operation, first // width, first % width, second // width, second % width)


def from_action(action: BboxAction, kinds: tuple[Kind, ...], width: int) -> Edit:
    """Turn actions into edits; the operation must belong to one of the kinds."""
    _, colored, selects = _columns(kinds)
    kind = _kind_of_operation(kinds)[action.operation]
    first = action.r1 * width + action.c1
    second = action.r2 * width + action.c2
    # Corners may come in any order, and the new size is that of the lower right
    # one: (2, 0) and (0, 1) give cell (2, 1).
    last = jnp.maximum(action.r1, action.r2) * width + jnp.maximum(action.c1, action.c2)
    color = jnp.where(colored[kind], action.operation % c.NUM_COLORS, 0)
    return Edit(kind, first, jnp.where(selects[kind] == _SIZE, last, second), color)


_BOX, _CELL, _SIZE, _NOTHING = range(4)
_SELECTS = {"box": _BOX, "cell": _CELL, "size": _SIZE, "nothing": _NOTHING}


def _columns(kinds: tuple[Kind, ...]) -> tuple[Array, Array, Array]:
    """Operation, whether it has a color, and what it selects, of each kind."""
    operations = jnp.array([kind.operation for kind in kinds], jnp.int32)
    colored = jnp.array([kind.colored for kind in kinds], jnp.bool_)
    return operations, colored, jnp.array([_SELECTS[kind.selects] for kind in kinds], jnp.int32)


def _kind_of_operation(kinds: tuple[Kind, ...]) -> Array:
    indices = np.zeros(c.NUM_OPERATIONS, np.int32)
    for index, kind in enumerate(kinds):
        indices[kind.operation : kind.operation + (c.NUM_COLORS if kind.colored else 1)] = index
    return jnp.asarray(indices)
