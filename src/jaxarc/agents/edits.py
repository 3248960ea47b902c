"""Edits: what a policy chooses, the actions they become, and the interface of the networks that score their parts."""

import abc
from typing import Any, Final, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Float32, Int8, Int32, Shaped

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig, NetworkConfig
from jaxarc.envs.structured_actions import BboxAction

Selects = Literal["box", "cell", "size", "nothing"]


class EditKind(NamedTuple):
    """A kind of edits, and the choices that make an edit of it."""

    name: str
    operation: int  # the id; for kinds with a color, the id with color 0
    selects: Selects  # a box, one cell, the last cell of the resized grid, or nothing
    colored: bool = False


_EVERY_KIND: Final = (
    EditKind("paint", c.FILL, "box", colored=True),
    EditKind("flood fill", c.FLOOD_FILL, "cell", colored=True),
    *(EditKind(name, operation, "box") for operation, name in enumerate(
        ("move up", "move down", "move left", "move right", "rotate clockwise", "rotate counterclockwise",
         "flip left-right", "flip up-down", "copy", "paste", "cut", "clear"), start=c.MOVE_UP)),
    EditKind("copy input", c.COPY_INPUT, "nothing"),
    EditKind("resize", c.RESIZE, "size"),
    EditKind("submit", c.SUBMIT, "nothing"),
)  # fmt: skip


def kinds_of(config: JaxArcConfig) -> tuple[EditKind, ...]:
    """Return the kinds of the operations that a config allows, in the order of their ids; none changes the pair."""
    allowed = set(config.legal_operations)
    return tuple(kind for kind in _EVERY_KIND if allowed & set(_operations(kind)))


def allowed_colors(kinds: tuple[EditKind, ...], config: JaxArcConfig) -> np.ndarray:
    """Return the colors that each kind may use, bool[K, 10]; all of them for kinds without a color."""
    allowed = set(config.legal_operations)
    rows = [[kind.operation + color in allowed or not kind.colored for color in range(c.NUM_COLORS)] for kind in kinds]
    return np.array(rows, np.bool_)


def _operations(kind: EditKind) -> range:
    return range(kind.operation, kind.operation + (c.NUM_COLORS if kind.colored else 1))


class Edit(NamedTuple):
    """An action, part by part in the order of choice. A cell is ``row * W + column``.

    Parts that a kind does not need hold any valid value.
    """

    kind: Int32[Array, "*B"]  # index in the policy's kinds
    first: Int32[Array, "*B"]  # a corner of the box, or the one cell
    second: Int32[Array, "*B"]  # the opposite corner of the box, or the last cell of the resized grid
    color: Int32[Array, "*B"]  # 0 .. 9


def to_action(edit: Edit, kinds: tuple[EditKind, ...], width: int) -> BboxAction:
    """Turn edits into actions on a canvas of ``width`` columns."""
    # Each kind is a row of three small tables. A paint in color 7 is operation 0 + 7, a flood fill 10 + 7.
    operations, colored, selects = _columns(kinds)
    operation = operations[edit.kind] + jnp.where(colored[edit.kind], edit.color, 0)
    select = selects[edit.kind]
    first = jnp.where(select == _SIZE, 0, edit.first)  # a new size counts from the grid's own corner
    second = jnp.where(select == _CELL, edit.first, edit.second)
    return BboxAction(operation, first // width, first % width, second // width, second % width)


def from_action(action: BboxAction, kinds: tuple[EditKind, ...], width: int) -> Edit:
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


def _columns(kinds: tuple[EditKind, ...]) -> tuple[Array, Array, Array]:
    """Operation, whether it has a color, and what it selects, of each kind."""
    operations = jnp.array([kind.operation for kind in kinds], jnp.int32)
    colored = jnp.array([kind.colored for kind in kinds], jnp.bool_)
    return operations, colored, jnp.array([_SELECTS[kind.selects] for kind in kinds], jnp.int32)


def _kind_of_operation(kinds: tuple[EditKind, ...]) -> Array:
    indices = np.zeros(c.NUM_OPERATIONS, np.int32)
    for index, kind in enumerate(kinds):
        indices[kind.operation : kind.operation + (c.NUM_COLORS if kind.colored else 1)] = index
    return jnp.asarray(indices)


class PolicyInput(NamedTuple):
    """A batch of grids, their targets and the time."""

    working: Int8[Array, "B H W"]
    target: Int8[Array, "B H W"]
    time: Float32[Array, " B"]  # share of the episode's steps that are used, 0 .. 1

    @property
    def active(self) -> Bool[Array, "B HW"]:
        """True for the cells of the working grid."""
        return self.working.reshape(self.working.shape[0], -1) > c.PADDING


class Network(eqx.Module):
    """Logits for every part of an edit, and the value; abstract.

    The parts are asked for one after the other, with those before them. ``features`` is what :meth:`encode` returned.
    A network computes in the precision of its weights.
    """

    @abc.abstractmethod
    def encode(self, inputs: PolicyInput) -> Any:
        """Compute what the answers share."""

    @abc.abstractmethod
    def kind_logits(self, features: Any) -> Float[Array, "B K"]: ...

    @abc.abstractmethod
    def first_logits(self, features: Any, kind: Int32[Array, " B"]) -> Float[Array, "B HW"]:
        """Score each cell as the first corner of a box, or as the one cell."""

    @abc.abstractmethod
    def second_logits(self, features: Any, first: Int32[Array, " B"]) -> Float[Array, "B HW"]:
        """Score each cell as the corner opposite to the first."""

    @abc.abstractmethod
    def color_logits(
        self, features: Any, first: Int32[Array, " B"], second: Int32[Array, " B"]
    ) -> Float[Array, "B 10"]:
        """Score each color for the box between two corners."""

    @abc.abstractmethod
    def size_logits(self, features: Any) -> tuple[Float[Array, "B H"], Float[Array, "B W"]]:
        """Score each row as the last row of the resized grid, and each column as its last column."""

    @abc.abstractmethod
    def value(self, features: Any) -> Float[Array, " B"]:
        """Expect the discounted rewards from here on."""


def first_kind_logits(kinds: tuple[EditKind, ...], config: NetworkConfig) -> Float32[np.ndarray, " K"]:
    """Return the logits of the kinds before anything is learned."""
    biases = {c.FILL: 0.0, c.RESIZE: config.resize_bias, c.SUBMIT: config.submit_bias}
    return np.array([biases.get(kind.operation, config.other_bias) for kind in kinds], np.float32)


def neighbors(grid: Shaped[Array, "B H W"], fill: int | bool) -> list[Shaped[Array, "B H W"]]:
    """Return the grid moved so that each cell sees its neighbor above, below, to the left, to the right.

    Cells at the edge see ``fill``. Of ``1 2`` over ``3 4`` the neighbors above are ``0 0`` over ``1 2``.
    """
    height, width = grid.shape[1:]
    padded = jnp.pad(grid, ((0, 0), (1, 1), (1, 1)), constant_values=fill)
    return [padded[:, y : y + height, x : x + width] for y, x in ((0, 1), (2, 1), (1, 0), (1, 2))]


def pick(values: Array, index: Int32[Array, " B"]) -> Array:
    """Return the value at one index of each row."""
    return jnp.take_along_axis(values, index[:, None], axis=1)[:, 0]


def one_hot(index: Int32[Array, "*B"], count: int) -> Float32[Array, "*B N"]:
    return jax.nn.one_hot(index, count, dtype=jnp.float32)
