"""States, params and actions in ``flax.serialization``, which stores only classes that are registered with it."""

from typing import Any, Final

import equinox as eqx
import jax
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


def register_flax() -> None:
    """Register our classes, so that ``flax.serialization.to_bytes(state)`` stores their arrays by the fields' names.

    ``from_bytes(state, stored)`` takes what is not an array, such as the size of the canvas, from the state that it is
    given. :func:`jaxarc.make` calls this where flax is imported by then, and so does importing ``jaxarc.adapters``.
    """
    for kind in _CLASSES:
        serialization.register_serialization_state(kind, _to_dict, _from_dict, override=True)


def _to_dict(tree: Any) -> dict[str, Any]:
    return {name: serialization.to_state_dict(getattr(tree, name)) for name in _names(tree)}


def _from_dict(tree: Any, stored: dict[str, Any]) -> Any:
    names = _names(tree)
    if names != sorted(stored):
        raise ValueError(f"{type(tree).__name__} has the arrays {names}, but those stored are {sorted(stored)}")
    fields = [serialization.from_state_dict(getattr(tree, name), stored[name], name) for name in names]
    return eqx.tree_at(lambda tree: [getattr(tree, name) for name in names], tree, fields)


def _names(tree: Any) -> list[str]:
    """The fields that hold arrays."""
    children, _ = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda child: child is not tree)
    return sorted(path[0].name for path, child in children if path and child is not None)
