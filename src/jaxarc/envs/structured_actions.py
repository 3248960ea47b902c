"""Actions: the 42 operations, the three kinds of selection they act on, and the check of an action."""

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Int, Int32

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.device_arrays import device_array
from jaxarc.envs.canvas import CheckedAction
from jaxarc.host_arrays import to_numpy
from jaxarc.utils.error_handling import IntegerRule, JAXErrorHandler

Rules = list[tuple[IntegerRule, Int32[Array, "*B"]]]


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


def _integer(value: Int[Array, "*B"] | int) -> Int32[Array, "*B"]:
    array = value if isinstance(value, jax.Array) else to_numpy(value)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise TypeError(f"operations and coordinates are integers, got dtype {array.dtype}; cast with .astype(int)")
    if isinstance(array, np.ndarray) and array.size and (array.max() >= 2**31 or array.min() < -(2**31)):
        raise OverflowError(f"operations and coordinates must fit int32, got {array}")
    return device_array(array, jnp.int32)


def _cells(value: Bool[Array, "*B H W"]) -> Bool[Array, "*B H W"]:
    array = value if isinstance(value, jax.Array) else to_numpy(value)
    if array.dtype != np.bool_:
        raise TypeError(f"MaskAction.selection must be bool, got dtype {array.dtype}; write selection.astype(bool)")
    return device_array(array)


class BaseAction(eqx.Module):
    """An operation id and a selection; every leaf is an array, so actions pass jit, vmap and scan."""

    operation: eqx.AbstractVar[Int32[Array, "*B"]]

    @abc.abstractmethod
    def to_selection_mask(self, grid_shape: tuple[int, int]) -> Bool[Array, "H W"]:
        """Return the selected cells of a single action on a canvas of ``grid_shape = (H, W)``.

        A cell outside the canvas is not selected.
        """

    @abc.abstractmethod
    def rules(self, config: JaxArcConfig) -> Rules:
        """Check format and shapes, and return what each field must satisfy, with its value."""

    @abc.abstractmethod
    def describe_selection(self) -> str:
        """Describe the selection of a single action in words."""

    def __repr__(self) -> str:
        """``BboxAction(fill 3, rows 0–1, column 2)``; shapes and dtypes of a batch or of traced values."""
        leaves = jax.tree.leaves(self)
        if any(isinstance(leaf, Tracer) or not isinstance(leaf, jax.Array | np.ndarray) for leaf in leaves):
            return super().__repr__()
        if self.operation.shape != ():
            return super().__repr__()
        operation = int(self.operation)
        name = OPERATION_NAMES.get(operation, f"operation {operation}")
        return f"{type(self).__name__}({name}, {self.describe_selection()})"

    def validate(self, config: JaxArcConfig) -> "BaseAction":
        """Return the action; see :meth:`JAXErrorHandler.validate_action` for what is raised."""
        return JAXErrorHandler.validate_action(self, config)


class PointAction(BaseAction):
    """An operation on the cell ``(row, col)``; row 0 is the top."""

    operation: Int32[Array, "*B"] = eqx.field(converter=_integer)
    row: Int32[Array, "*B"] = eqx.field(converter=_integer)  # 0 .. H-1
    col: Int32[Array, "*B"] = eqx.field(converter=_integer)  # 0 .. W-1

    if TYPE_CHECKING:  # mypy knows no converters

        def __init__(self, operation: ArrayLike, row: ArrayLike, col: ArrayLike) -> None: ...

    def to_selection_mask(self, grid_shape: tuple[int, int]) -> Bool[Array, "H W"]:
        rows, columns = _axes(grid_shape)
        return (rows == self.row) & (columns == self.col)

    def describe_selection(self) -> str:
        return f"row {int(self.row)}, column {int(self.col)}"

    def rules(self, config: JaxArcConfig) -> Rules:
        _require_format(self, config, "point")
        height, width = config.grid_shape
        return [
            (_operation_rule(config), self.operation),
            (IntegerRule("point row", 0, height - 1), self.row),
            (IntegerRule("point col", 0, width - 1), self.col),
        ]


class BboxAction(BaseAction):
    """An operation on the rectangle between two corners, both inclusive and in either order."""

    operation: Int32[Array, "*B"] = eqx.field(converter=_integer)
    r1: Int32[Array, "*B"] = eqx.field(converter=_integer)  # 0 .. H-1
    c1: Int32[Array, "*B"] = eqx.field(converter=_integer)  # 0 .. W-1
    r2: Int32[Array, "*B"] = eqx.field(converter=_integer)  # 0 .. H-1
    c2: Int32[Array, "*B"] = eqx.field(converter=_integer)  # 0 .. W-1

    if TYPE_CHECKING:  # mypy knows no converters

        def __init__(
            self, operation: ArrayLike, r1: ArrayLike, c1: ArrayLike, r2: ArrayLike, c2: ArrayLike
        ) -> None: ...

    def to_selection_mask(self, grid_shape: tuple[int, int]) -> Bool[Array, "H W"]:
        rows, columns = _axes(grid_shape)
        in_rows = (rows >= jnp.minimum(self.r1, self.r2)) & (rows <= jnp.maximum(self.r1, self.r2))
        in_columns = (columns >= jnp.minimum(self.c1, self.c2)) & (columns <= jnp.maximum(self.c1, self.c2))
        return in_rows & in_columns

    def describe_selection(self) -> str:
        return f"{_span('row', self.r1, self.r2)}, {_span('column', self.c1, self.c2)}"

    def rules(self, config: JaxArcConfig) -> Rules:
        _require_format(self, config, "bbox")
        height, width = config.grid_shape
        return [
            (_operation_rule(config), self.operation),
            (IntegerRule("bbox r1", 0, height - 1), self.r1),
            (IntegerRule("bbox c1", 0, width - 1), self.c1),
            (IntegerRule("bbox r2", 0, height - 1), self.r2),
            (IntegerRule("bbox c2", 0, width - 1), self.c2),
        ]


class MaskAction(BaseAction):
    """An operation on any set of cells of the canvas."""

    operation: Int32[Array, "*B"] = eqx.field(converter=_integer)
    selection: Bool[Array, "*B H W"] = eqx.field(converter=_cells)

    if TYPE_CHECKING:  # mypy knows no converters

        def __init__(self, operation: ArrayLike, selection: ArrayLike) -> None: ...

    def to_selection_mask(self, grid_shape: tuple[int, int]) -> Bool[Array, "H W"]:
        """Return the stored selection as it is.

        Raises:
            ValueError: the selection has another shape than ``grid_shape``.
        """
        _require_mask_shape(self.selection, grid_shape)
        return self.selection

    def describe_selection(self) -> str:
        return f"{int(np.sum(self.selection))} of {self.selection.size} cells"

    def rules(self, config: JaxArcConfig) -> Rules:
        _require_format(self, config, "mask")
        _require_mask_shape(self.selection, config.grid_shape)
        return [(_operation_rule(config), self.operation)]


StructuredAction = PointAction | BboxAction | MaskAction
ACTION_CLASSES: Final[dict[str, type[BaseAction]]] = {"point": PointAction, "bbox": BboxAction, "mask": MaskAction}


def action_numbers(actions: StructuredAction) -> list[tuple[int, ...]]:
    """Write actions [S] as numbers, the operation first: a box as (2, 0, 0, 1, 1), a mask with its cells' indices."""
    if isinstance(actions, MaskAction):
        cells = (np.argwhere(mask).ravel().tolist() for mask in np.asarray(actions.selection))
        return [(int(operation), *numbers) for operation, numbers in zip(actions.operation, cells, strict=True)]
    return [tuple(row) for row in np.stack(jax.tree.leaves(actions), axis=1).tolist()]


def actions_of(
    numbers: Sequence[Sequence[int]], selection_format: str, grid_shape: tuple[int, int]
) -> StructuredAction:
    """Make actions [S] of a format of their numbers: the opposite of :func:`action_numbers`."""
    if selection_format == "mask":
        # [S, H, W] masks from lists of cells: (2, 0, 0, 1, 1) selects the cells (0, 0) and (1, 1).
        cells = np.zeros((len(numbers), *grid_shape), np.bool_)
        for mask, action in zip(cells, numbers, strict=True):
            mask[list(action[1::2]), list(action[2::2])] = True
        return MaskAction(jnp.array([action[0] for action in numbers], jnp.int32), jnp.asarray(cells))
    columns = np.array(numbers, np.int32).T  # in NumPy: JAX would compile for every length
    return PointAction(*columns) if selection_format == "point" else BboxAction(*columns)


def _axes(grid_shape: tuple[int, int]) -> tuple[Int32[Array, "H 1"], Int32[Array, "1 W"]]:
    height, width = grid_shape
    return jnp.arange(height, dtype=jnp.int32)[:, None], jnp.arange(width, dtype=jnp.int32)[None, :]


def _span(axis: str, one: Int32[Array, ""], other: Int32[Array, ""]) -> str:
    first, last = sorted((int(one), int(other)))
    return f"{axis} {first}" if first == last else f"{axis}s {first}–{last}"


def _operation_rule(config: JaxArcConfig) -> IntegerRule:
    legal = config.legal_operations
    switching = "on" if config.episode.switches_pairs else "off"
    refusal = (
        f"this config allows {list(legal)} (action.allowed_operations={config.action.allowed_operations}, "
        f"{config.episode.mode} mode, pair switching {switching})"
    )
    refused = tuple(sorted(set(range(c.NUM_OPERATIONS)) - set(legal)))
    return IntegerRule("operation ID", 0, c.NUM_OPERATIONS - 1, refused, refusal)


def _require_format(action: BaseAction, config: JaxArcConfig, selection_format: str) -> None:
    expected = config.action.selection_format
    if expected != selection_format:
        raise TypeError(
            f"a {type(action).__name__} was given, but action.selection_format is {expected!r}, which takes a "
            f"{ACTION_CLASSES[expected].__name__}; change the action or the config"
        )


def _require_mask_shape(selection: Bool[Array, "*B H W"], grid_shape: tuple[int, int]) -> None:
    if selection.shape[-2:] != tuple(grid_shape):
        raise ValueError(
            f"Mask selection shape mismatch: expected {tuple(grid_shape)}, got {selection.shape[-2:]}; a mask covers "
            "the whole padded canvas, dataset.max_grid_height x max_grid_width"
        )


def refuse_invalid(action: StructuredAction, config: JaxArcConfig) -> StructuredAction:
    """Return the action; with the policy ``raise``, raise where it is invalid.

    Raises:
        TypeError, ValueError, RuntimeError: see :meth:`JAXErrorHandler.validate_action`.
    """
    if config.action.invalid_action_policy == "raise":
        if JAXErrorHandler.stops_on_error():
            action = JAXErrorHandler.validate_action(action, config)
        JAXErrorHandler.warn_of_unchecked_actions()
    return action


def check_action(action: StructuredAction, config: JaxArcConfig) -> tuple[CheckedAction, Bool[Array, ""]]:
    """Apply the invalid-action policy of the config.

    ``noop`` turns an invalid or illegal action into one that changes nothing. So does ``raise`` with one that
    :func:`refuse_invalid` let pass: where raising is switched off, and in a program for an accelerator that takes many
    steps. ``clip`` moves coordinates into range, and never an operation id.

    Returns:
        The checked action, which loads row 0 until a pair is chosen, and whether the action was invalid: out of range
        or illegal.

    Raises:
        TypeError, ValueError: the action is of another format, or a mask of another canvas.
    """
    # The operation's rule comes first. Under "clip" only that one decides, because coordinates are moved into range
    # below.
    rules = action.rules(config)
    within = [(value >= rule.low) & (value <= rule.high) for rule, value in rules]
    legal = np.isin(np.arange(c.NUM_OPERATIONS), config.legal_operations)
    # Clipped for the look-up only: `within` refuses an id out of range, under every policy.
    operation = jnp.clip(action.operation, 0, c.NUM_OPERATIONS - 1)
    valid = within[0] & jnp.asarray(legal)[operation]
    if config.action.invalid_action_policy != "clip":
        for inside in within[1:]:
            valid = valid & inside
    selection = _selection(action, config.grid_shape)
    checked = CheckedAction(jnp.where(valid, operation, c.NO_OPERATION), selection, jnp.int32(0))
    return checked, ~valid


def clip_coordinates(action: StructuredAction, shape: tuple[int, int]) -> StructuredAction:
    """Return the action with its coordinates moved to the nearest cell of the canvas, as the policy ``clip`` does."""
    row_in = lambda row: jnp.clip(row, 0, shape[0] - 1)
    column_in = lambda column: jnp.clip(column, 0, shape[1] - 1)
    match action:
        case PointAction():
            return PointAction(action.operation, row_in(action.row), column_in(action.col))
        case BboxAction():
            corners = (row_in(action.r1), column_in(action.c1), row_in(action.r2), column_in(action.c2))
            return BboxAction(action.operation, *corners)
        case MaskAction():
            return action


def _selection(action: StructuredAction, shape: tuple[int, int]) -> Int32[Array, " 4"] | Bool[Array, " HW"]:
    inside = clip_coordinates(action, shape)
    match inside:
        case PointAction():
            # A point is a box whose corners are one cell.
            return jnp.stack([inside.row, inside.col, inside.row, inside.col])
        case BboxAction():
            # Corners may come in either order: (2, 5) and (4, 1) give the box top 2, left 1, bottom 4, right 5.
            rows = (inside.r1, inside.r2)
            columns = (inside.c1, inside.c2)
            return jnp.stack([jnp.minimum(*rows), jnp.minimum(*columns), jnp.maximum(*rows), jnp.maximum(*columns)])
        case MaskAction():
            return inside.selection.reshape(-1)
