"""Actions as other libraries send them: small integers by name, an operation by its place among the legal ones."""

from collections.abc import Mapping
from typing import Any, Final

import jax.numpy as jnp
from jaxtyping import Array, Int

from jaxarc.constants import NO_OPERATION
from jaxarc.envs.spaces import ActionSpace
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction, StructuredAction

_COORDINATES: Final = {  # selection format -> its coordinates, each with the axis of the canvas it runs along
    "point": (("row", 0), ("col", 1)),
    "bbox": (("r1", 0), ("c1", 1), ("r2", 0), ("c2", 1)),
    "mask": (),
}


def field_sizes(space: ActionSpace) -> dict[str, int]:
    """Return how many values each integer of an action has, by name: ``{"operation": K, "row": H, "col": W}``.

    Of the mask format that is the operation alone: its selection is an array, 0 or 1 for each cell.
    """
    coordinates = {name: space.grid_shape[axis] for name, axis in _COORDINATES[space.selection_format]}
    return {"operation": len(space.operation.values), **coordinates}


def action_of_fields(space: ActionSpace, fields: Mapping[str, Any]) -> StructuredAction:
    """Make a structured action of its integers by name, and ``"selection"`` in the mask format.

    An operation beyond the legal ones gets an id that does not exist, so that the invalid-action policy sees it.
    """
    place, count = jnp.asarray(fields["operation"], jnp.int32), len(space.operation.values)
    exists = (place >= 0) & (place < count)
    operation = jnp.where(exists, space.operation.at(jnp.where(exists, place, 0)), NO_OPERATION)
    if space.selection_format == "mask":
        return MaskAction(operation, jnp.asarray(fields["selection"]) != 0)
    coordinates = [jnp.asarray(fields[name], jnp.int32) for name, _ in _COORDINATES[space.selection_format]]
    kind = PointAction if space.selection_format == "point" else BboxAction
    return kind(operation, *coordinates)


def action_of_vector(space: ActionSpace, vector: Int[Array, "*B fields"]) -> StructuredAction:
    """Make a structured action of its integers along the last axis, in the order of :func:`field_sizes`."""
    return action_of_fields(space, {name: vector[..., place] for place, name in enumerate(field_sizes(space))})
