"""States, params and actions in ``flax.serialization``, which stores only classes that are registered with it."""

import dataclasses
from typing import Any, Final

import equinox as eqx
import jax
import numpy as np
from flax import serialization

from jaxarc.envs.canvas import Canvas
from jaxarc.envs.pairs import PairTable
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction
from jaxarc.games import Board, GameParams, GameState
from jaxarc.tasks.augmentation import Augmentation
from jaxarc.tasks.buffer import TaskBuffer
from jaxarc.types import JaxArcTask
from jaxarc.wrappers.episode_statistics import StatisticsState
from jaxarc.wrappers.trials import TrialsState

_STATES: Final = (ArcEnvState, StatisticsState, TrialsState, Canvas, Augmentation, PairTable, JaxArcTask)
_CLASSES: Final = (*_STATES, EnvParams, TaskBuffer, PointAction, BboxAction, MaskAction, GameState, Board, GameParams)
_CANVAS: Final = "grid_shape"


def register_flax() -> None:
    """Register our classes, so that ``flax.serialization.to_bytes(state)`` stores their arrays by the fields' names.

    ``from_bytes(state, stored)`` takes what is not an array, such as the size of the canvas, from the state that it is
    given, whose arrays must have the shapes and dtypes of those stored. :func:`jaxarc.make` calls this where flax is
    imported by then, and so does importing ``jaxarc.adapters``.
    """
    for kind in _CLASSES:
        serialization.register_serialization_state(kind, _to_dict, _from_dict, override=True)


def _to_dict(tree: Any) -> dict[str, Any]:
    arrays = {name: serialization.to_state_dict(getattr(tree, name)) for name in _names(tree)}
    return {**arrays, **_canvas(tree)}


def _from_dict(tree: Any, stored: dict[str, Any]) -> Any:
    kind = type(tree).__name__
    names = _names(tree)
    if names != sorted(stored.keys() - {_CANVAS}):
        raise ValueError(f"{kind} has the arrays {names}, but those stored are {sorted(stored.keys() - {_CANVAS})}")
    # Grids are flat, so one of 5x6 and one of 6x5 differ in nothing else.
    for name, mine in _canvas(tree).items():
        if name in stored:  # it is not in what was stored by an earlier version
            _require_same(f"{kind}.{name}", tuple(mine), tuple(stored[name]))
    fields: list[Any] = [serialization.from_state_dict(getattr(tree, name), stored[name], name) for name in names]
    for name, field in zip(names, fields, strict=True):
        mine = getattr(tree, name)
        if isinstance(mine, jax.Array | np.ndarray | jax.ShapeDtypeStruct):  # others are of our classes, and look there
            _require_same(f"{kind}.{name}", (*mine.shape, mine.dtype.name), (*field.shape, field.dtype.name))
    return eqx.tree_at(lambda tree: [getattr(tree, name) for name in names], tree, fields)


def _canvas(tree: Any) -> dict[str, Any]:
    """The size of the canvas, where a class has it as a static field."""
    fields = {field.name: field for field in dataclasses.fields(tree)}
    has_it = _CANVAS in fields and fields[_CANVAS].metadata.get("static", False)
    return {_CANVAS: np.array(tree.grid_shape)} if has_it else {}


def _require_same(name: str, mine: tuple[Any, ...], stored: tuple[Any, ...]) -> None:
    if mine != stored:
        shown = [" ".join(map(str, values)) for values in (mine, stored)]
        raise ValueError(
            f"{name} is {shown[0]} in the object that is given and {shown[1]} in what is stored; give one of the same "
            "canvas, batch and tasks"
        )


def _names(tree: Any) -> list[str]:
    """The fields that hold arrays."""
    children, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda child: child is not tree)
    return sorted(path[0].name for path, child in children if path and child is not None)
