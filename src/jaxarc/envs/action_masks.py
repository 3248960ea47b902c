"""Legal actions of a config: one integer for each, and masks of those that can do something in a state.

An operation is *legal* when config and mode allow it; a step refuses any other. A legal operation that *cannot apply*,
such as a paste with an empty clipboard, changes nothing and costs a step. A mask keeps what is legal and can apply. It
depends on the size of the working grid and on the clipboard, never on the target.
"""

import dataclasses
import functools
from typing import Final

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.device_arrays import device_array
from jaxarc.envs.canvas import CLIPBOARD_HEIGHT
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import (
    MOVES,
    NEEDS_ACTIVE_CELLS,
    NEEDS_ONE_CELL,
    TURNS,
    BboxAction,
    OperationSet,
    PointAction,
    StructuredAction,
)
from jaxarc.utils.error_handling import IntegerRule

_RESIZES: Final = OperationSet(((c.RESIZE, c.RESIZE),))
_WHOLE_WITHOUT_SELECTION: Final = MOVES | TURNS | OperationSet(((c.CLEAR, c.CLEAR),))
MAX_FLAT_ACTIONS: Final = 100_000  # a policy has one logit for each; 30x30 points with all operations are 32,400


@dataclasses.dataclass(frozen=True)
class FlatActionCodec:
    """Numbers the legal actions of a config 0 .. ``num_actions - 1``: operation by operation, cell by cell, row by row.

    A box has one number for all pairs of opposite corners. Boxes are ordered by top, bottom, left, right.
    """

    operations: tuple[int, ...]  # legal ids, ascending
    selection_format: str  # "point" or "bbox"
    grid_shape: tuple[int, int]  # (H, W)

    @classmethod
    def of(cls, config: JaxArcConfig) -> "FlatActionCodec":
        """Number the actions that a config allows.

        Raises:
            ValueError: masks are too many to be numbered, or so are these points or boxes.
        """
        codec = cls(config.legal_operations, config.action.selection_format, config.grid_shape)
        height, width = codec.grid_shape
        if codec.selection_format == "mask":
            raise ValueError(
                f"flat actions need action.selection_format 'point' or 'bbox', got 'mask': {height}x{width} cells have "
                f"2**{height * width} masks; change the format, or choose structured actions"
            )
        if codec.num_actions > MAX_FLAT_ACTIONS:
            raise ValueError(
                f"flat actions would be {codec.num_actions:,} ({len(codec.operations)} operations x "
                f"{codec.num_selections:,} selections of format {codec.selection_format!r} on {height}x{width}), "
                f"the limit is {MAX_FLAT_ACTIONS:,}; use a smaller canvas, fewer action.allowed_operations, "
                "selection_format='point', or structured actions"
            )
        return codec

    @property
    def num_selections(self) -> int:
        """How many points or boxes the canvas has."""
        height, width = self.grid_shape
        if self.selection_format == "point":
            return height * width
        return len(_spans(height)) * len(_spans(width))

    @property
    def num_actions(self) -> int:
        return len(self.operations) * self.num_selections

    @property
    def selections(self) -> np.ndarray:
        """Top, left, bottom and right of every point or box, int32[selections, 4]."""
        height, width = self.grid_shape
        if self.selection_format == "point":
            # A point is a box whose corners are one cell.
            cells = np.indices((height, width), np.int32).reshape(2, -1).T
            return np.concatenate([cells, cells], axis=1)
        # Every span of rows with every span of columns, the columns running faster: 2x2 has 3 * 3 = 9 boxes, of which
        # the second is rows 0..0 and columns 0..1.
        rows = np.repeat(_spans(height), len(_spans(width)), axis=0)
        columns = np.tile(_spans(width), (len(_spans(height)), 1))
        return np.stack([rows[:, 0], columns[:, 0], rows[:, 1], columns[:, 1]], axis=1)

    @property
    def rule(self) -> IntegerRule:
        """The rule for numbers of actions."""
        return IntegerRule("flat action", 0, self.num_actions - 1)

    def to_structured(self, number: Int32[Array, "*B"]) -> StructuredAction:
        """Return the action of a number; one out of range gets the operation id -1, which is invalid."""
        # number = index of the operation * num_selections + selection. With the operations 0 20 34 and the 9 points of
        # 3x3, number 13 is operation 20 at selection 4, the cell in row 4 // 3 = 1 and column 4 % 3 = 1.
        number = device_array(number, jnp.int32)
        index = jnp.clip(number, 0, self.num_actions - 1)
        exists = (number >= 0) & (number < self.num_actions)
        ids = jnp.asarray(self.operations, jnp.int32)
        operation = jnp.where(exists, ids[index // self.num_selections], c.NO_OPERATION)
        selection = index % self.num_selections
        height, width = self.grid_shape
        if self.selection_format == "point":
            return PointAction(operation, selection // width, selection % width)
        rows = jnp.asarray(_spans(height))
        columns = jnp.asarray(_spans(width))
        row = rows[selection // len(columns)]
        column = columns[selection % len(columns)]
        return BboxAction(operation, row[..., 0], column[..., 0], row[..., 1], column[..., 1])

    def to_flat(self, action: StructuredAction) -> Int32[Array, "*B"]:
        """Return the number of an action; -1 when the action is illegal or out of range.

        Raises:
            TypeError: the action has another format.
        """
        height, width = self.grid_shape
        if isinstance(action, PointAction) and self.selection_format == "point":
            selection = action.row * width + action.col
            inside = _below(action.row, height) & _below(action.col, width)
        elif isinstance(action, BboxAction) and self.selection_format == "bbox":
            selection = _span_number(action.r1, action.r2, height) * len(_spans(width))
            selection = selection + _span_number(action.c1, action.c2, width)
            inside = _below(action.r1, height) & _below(action.r2, height)
            inside = inside & _below(action.c1, width) & _below(action.c2, width)
        else:
            raise TypeError(
                f"these numbers are of actions of format {self.selection_format!r}, got a {type(action).__name__}"
            )
        # From an operation's id to its index among the legal ones: with 0 20 34, id 20 gets 1 and id 21 gets -1, not
        # legal.
        indices = np.full(c.NUM_OPERATIONS, -1, np.int32)
        indices[list(self.operations)] = np.arange(len(self.operations))
        index = jnp.asarray(indices)[jnp.clip(action.operation, 0, c.NUM_OPERATIONS - 1)]
        legal = inside & _below(action.operation, c.NUM_OPERATIONS) & (index >= 0)
        return jnp.where(legal, index * self.num_selections + selection, -1)


def _below(value: Int32[Array, "*B"], limit: int) -> Bool[Array, "*B"]:
    return (value >= 0) & (value < limit)


@functools.cache
def _spans(length: int) -> np.ndarray:
    """All ``(first, last)`` with ``0 <= first <= last < length``, int32[spans, 2]; for 2: 0 0, 0 1, 1 1."""
    return np.stack(np.triu_indices(length), axis=-1).astype(np.int32)


def _span_number(one: Int32[Array, "*B"], other: Int32[Array, "*B"], length: int) -> Int32[Array, "*B"]:
    """Index of a span in :func:`_spans`: with length 3, 0 1 2 start at 0, 3 4 at 1, and 5 at 2."""
    # Before the spans that start at `first` come length + (length - 1) + ... of smaller starts. With length 3, the span
    # 1..2 has 1 * 3 - 0 spans before those of its start, and is the second of them: number 4.
    first = jnp.minimum(one, other)
    last = jnp.maximum(one, other)
    return first * length - first * (first - 1) // 2 + (last - first)


def legal_operation_mask(state: ArcEnvState, config: JaxArcConfig) -> Bool[Array, "*B 42"]:
    """True for the operations that are legal and can apply, on some selection.

    Of the legal ones only a paste ever drops out, while the clipboard is empty: no running episode has all its pairs
    known to be solved. If nothing else is legal, the legal ones stay, so some entry is always true. In a state that is
    done no action does anything, and the mask is what it would be otherwise.
    """
    holds_content = state.canvas.sizes[..., CLIPBOARD_HEIGHT, None] > 0
    lead = (1,) * (holds_content.ndim - 1)
    without, with_content = (mask.reshape(*lead, -1) for mask in applicable_operations(config))
    return jnp.where(holds_content, with_content, without)


def applicable_operations(config: JaxArcConfig) -> tuple[Bool[np.ndarray, " 42"], Bool[np.ndarray, " 42"]]:
    """Return the masks of :func:`legal_operation_mask` with an empty clipboard, and with a content."""
    legal = np.isin(np.arange(c.NUM_OPERATIONS), config.legal_operations)
    others = legal & (np.arange(c.NUM_OPERATIONS) != c.PASTE)
    return others if others.any() else legal, legal


def flat_action_mask(state: ArcEnvState, config: JaxArcConfig) -> Bool[Array, "*B actions"]:
    """True for the numbers of :class:`FlatActionCodec` whose action can apply.

    If every one would be a lost step, as in an episode that may only paste, those of legal operations stay.

    Raises:
        ValueError: the config's actions have no numbers.
    """
    codec = FlatActionCodec.of(config)
    ids = np.asarray(codec.operations)
    batch = state.canvas.sizes.shape[:-1]
    boxes = codec.selections.reshape(*(1,) * len(batch), -1, 4)
    height, width = (size[..., None] for size in _active_size(state))
    top, left, bottom, right = (jnp.asarray(boxes[..., i]) for i in range(4))
    # [actions] in the order of the numbers. `touches`: some cell of the box is active; `is_single`: exactly one is.
    # With a 2x2 active area the box of rows 1..2 and column 0 has the one active cell (1, 0).
    touches = (top < height) & (left < width)
    is_single = (jnp.minimum(bottom, height - 1) == top) & (jnp.minimum(right, width - 1) == left)
    fits = [
        is_single if i in NEEDS_ONE_CELL else (touches if i in NEEDS_ACTIVE_CELLS else jnp.ones_like(touches))
        for i in codec.operations
    ]
    operations = legal_operation_mask(state, config)[..., ids]
    return (operations[..., None] & jnp.stack(fits, axis=-2)).reshape(*batch, -1)


def factored_action_mask(state: ArcEnvState, config: JaxArcConfig) -> Bool[Array, "*B n"]:
    """True for the operations that can apply, and then, one coordinate after the other, for the values that matter.

    The order is that of the action's fields: operation, row, column, or operation, r1, c1, r2, c2. A coordinate outside
    the active area is false: every action with it does nothing, or what an action inside does. It is true where a legal
    operation reads the padding: a resize, and with points those that take an empty selection for the whole grid.

    Raises:
        ValueError: selections are masks, which have no coordinates.
    """
    if config.action.selection_format == "mask":
        raise ValueError(
            "masks of actions need action.selection_format 'point' or 'bbox', got 'mask'; change the format"
        )
    is_point = config.action.selection_format == "point"
    reads_padding = _RESIZES | _WHOLE_WITHOUT_SELECTION if is_point else _RESIZES
    is_free = any(operation in reads_padding for operation in config.legal_operations)
    # With a 2x3 active area on a 3x4 canvas, rows are 1 1 0 and columns 1 1 1 0.
    sizes = zip(config.grid_shape, _active_size(state), strict=True)
    positions = lambda length, axes: jnp.arange(length, dtype=jnp.int32).reshape(*(1,) * axes, -1)
    inside = [(positions(length, size.ndim) < size[..., None]) | is_free for length, size in sizes]
    operations = legal_operation_mask(state, config)[..., np.asarray(config.legal_operations)]
    return jnp.concatenate([operations, *inside * (1 if is_point else 2)], axis=-1)


def _active_size(state: ArcEnvState) -> tuple[Int32[Array, "*B"], Int32[Array, "*B"]]:
    size = state.grid_size.astype(jnp.int32)
    return size[..., 0], size[..., 1]
