"""From a user's action to a checked command: which operation, on which cells, and whether it was in order."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Int32

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction, StructuredAction
from jaxarc.utils.error_handling import JAXErrorHandler


class CheckedAction(NamedTuple):
    operation: Int32[Array, ""]  # 0 .. 41, or -1 for an action that must change nothing
    selection: Int32[Array, " 4"] | Bool[Array, " HW"]  # box with ordered corners inside the canvas, or cells
    invalid: Bool[Array, ""]  # out of range or illegal


def check_action(action: StructuredAction, config: JaxArcConfig) -> CheckedAction:
    """Apply the invalid-action policy of the config.

    Policy ``raise`` raises; where raising is switched off it acts like ``noop``. ``noop`` turns an invalid or illegal
    action into one that changes nothing. ``clip`` moves coordinates into range, and never an operation id.

    Raises:
        TypeError, ValueError, RuntimeError: see :meth:`JAXErrorHandler.validate_action`.
    """
    if config.action.invalid_action_policy == "raise" and JAXErrorHandler.stops_on_error():
        action = JAXErrorHandler.validate_action(action, config)
    rules = action.rules(config)
    within = [(value >= rule.low) & (value <= rule.high) for rule, value in rules]
    legal = np.isin(np.arange(c.NUM_OPERATIONS), config.legal_operations)
    operation = jnp.clip(action.operation, 0, c.NUM_OPERATIONS - 1)
    valid = within[0] & jnp.asarray(legal)[operation]
    if config.action.invalid_action_policy != "clip":
        for inside in within[1:]:
            valid = valid & inside
    selection = _selection(action, config.grid_shape)
    return CheckedAction(jnp.where(valid, operation, c.NO_OPERATION), selection, ~valid)


def _selection(action: StructuredAction, shape: tuple[int, int]) -> Int32[Array, " 4"] | Bool[Array, " HW"]:
    row_in = lambda row: jnp.clip(row, 0, shape[0] - 1)
    column_in = lambda column: jnp.clip(column, 0, shape[1] - 1)
    match action:
        case PointAction():
            row, column = row_in(action.row), column_in(action.col)
            return jnp.stack([row, column, row, column])
        case BboxAction():
            rows, columns = (row_in(action.r1), row_in(action.r2)), (column_in(action.c1), column_in(action.c2))
            return jnp.stack([jnp.minimum(*rows), jnp.minimum(*columns), jnp.maximum(*rows), jnp.maximum(*columns)])
        case MaskAction():
            return action.selection.reshape(-1)
