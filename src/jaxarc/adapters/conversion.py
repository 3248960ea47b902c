"""What all adapters share: what an id alone chooses, and actions as integers by name."""

from collections.abc import Mapping
from typing import Any, Final

import jax.numpy as jnp
from jaxtyping import Array, Int

from jaxarc.constants import NO_OPERATION
from jaxarc.device_arrays import device_array
from jaxarc.envs.action_space import COORDINATES, ActionSpace
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction, StructuredAction

_OBSERVATION_NAMES: Final = {"config", "observation", "layout", "grid_format"}
_ACTION_NAMES: Final = {"config", "action", "selection_format", "flat_actions"}


def choice_of_id(choice: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of :func:`jaxarc.make` for a registered id: one array to see, one integer to act.

    Most clients take nothing else, and inside a compiled loop no step should check its action. A layout or a form of
    actions that is named replaces these; ``layout="dict"`` and ``selection_format="mask"`` are those of ``make``.

    Args:
        choice: arguments that the user gave.
    """
    defaults: dict[str, Any] = {}
    if not _OBSERVATION_NAMES & choice.keys():
        defaults["layout"] = "stacked"
    if not _ACTION_NAMES & choice.keys():
        defaults |= {"selection_format": "point", "flat_actions": True, "invalid_action_policy": "noop"}
    return {**defaults, **choice}


def field_sizes(space: ActionSpace) -> dict[str, int]:
    """Return the number of values of each integer of an action: ``{"operation": K, "row": H, "col": W}`` for points.

    The mask format has the operation only: its selection is an array, 0 or 1 for each cell.
    """
    # On 3x4 cells a box has the sizes r1 3, c1 4, r2 3, c2 4.
    coordinates = {name: space.grid_shape[axis] for name, axis in COORDINATES[space.selection_format]}
    return {"operation": len(space.operation.values), **coordinates}


def action_of_fields(space: ActionSpace, fields: Mapping[str, Any]) -> StructuredAction:
    """Make a structured action from its integers by name, and ``"selection"`` in the mask format.

    ``operation`` is an index into the legal operations: with legal operations 3, 7, 34 the index 1 is operation 7. An
    index out of range becomes ``NO_OPERATION``, an id that does not exist, so the invalid-action policy applies.
    """
    # An index outside of the space becomes "no operation" and not the nearest one,
    # so that the environment can report it.
    index = device_array(fields["operation"], jnp.int32)
    exists = (index >= 0) & (index < len(space.operation.values))
    operation = jnp.where(exists, space.operation.at(jnp.where(exists, index, 0)), NO_OPERATION)
    if space.selection_format == "mask":
        return MaskAction(operation, device_array(fields["selection"]) != 0)
    coordinates = [device_array(fields[name], jnp.int32) for name, _ in COORDINATES[space.selection_format]]
    kind = PointAction if space.selection_format == "point" else BboxAction
    return kind(operation, *coordinates)


def action_of_vector(space: ActionSpace, vector: Int[Array, "*B fields"]) -> StructuredAction:
    """Make a structured action from its integers along the last axis, in the order of :func:`field_sizes`."""
    return action_of_fields(space, {name: vector[..., index] for index, name in enumerate(field_sizes(space))})
