"""What all adapters share: ids of environments, and actions as integers by name."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import jax.numpy as jnp
from jaxtyping import Array, Int

from jaxarc.constants import ENVIRONMENT_VERSION, NO_OPERATION
from jaxarc.datasets import dataset_names
from jaxarc.datasets.task_set import TaskSet
from jaxarc.envs.environment import Environment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.spaces import ActionSpace
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction, StructuredAction
from jaxarc.registration import make
from jaxarc.tasks.buffer import TaskGenerator
from jaxarc.wrappers.flat_actions import FlatActions


def environment_id(dataset: str) -> str:
    """Return the id of a dataset; an id has one slash: ``jaxarc/arc-agi-1-training-v1`` for ``arc-agi-1/training``."""
    return f"jaxarc/{dataset.replace('/', '-')}-v{ENVIRONMENT_VERSION}"


def environment_ids() -> dict[str, str]:
    """Return the dataset of every id, installed or not."""
    return {environment_id(name): name for name in dataset_names()}


def make_chosen(
    dataset: str | Path | TaskSet | TaskGenerator, *, flat_actions: bool = False, **choice: Any
) -> tuple[Environment[Any], EnvParams]:
    """Make an environment as :func:`jaxarc.make` does.

    Args:
        dataset: what ``jaxarc.make`` takes.
        flat_actions: one integer per action, see :class:`~jaxarc.wrappers.FlatActions`.
        **choice: the other arguments of ``jaxarc.make``.
    """
    env, params = make(dataset, **choice)
    return (FlatActions(env) if flat_actions else env), params


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
