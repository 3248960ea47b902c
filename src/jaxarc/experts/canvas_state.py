"""The part of an episode that edits depend on, for experts that try edits: canvas, target and the pair's input."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int8, Int32

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.envs.canvas import Canvas, grid_size
from jaxarc.envs.operations.execute import KernelStatics, statics_of
from jaxarc.envs.pairs import pairs_in_play
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import StructuredAction, check_action
from jaxarc.types import Observation


class CanvasState(eqx.Module):
    """A canvas and the input that operation 32 loads: all that the result of an edit depends on."""

    canvas: Canvas
    pair_input: Int8[Array, "*B HW"]


class CheckedEdits(NamedTuple):
    """Actions after the check of :func:`check_edits`."""

    operation: Int32[Array, "*B"]  # 0 .. 34, or -1: leave the canvas as it is
    selection: Int32[Array, "*B 4"] | Bool[Array, "*B HW"]
    is_valid: Bool[Array, "*B"]


def canvas_of_state(state: ArcEnvState, params: EnvParams) -> CanvasState:
    """Read the canvas state of one state of ``env.reset`` or ``env.step``. It holds the target, in test mode too.

    Raises:
        ValueError: the state is a batch, or one of the guide API.
    """
    if state.counts.ndim != 1 or state.task_data is not None:
        raise ValueError(
            "a canvas state is made of one state of env.reset or env.step, got counts of shape "
            f"{state.counts.shape} and task_data {'set' if state.task_data is not None else 'unset'}; vmap over a "
            "batch, make states with env"
        )
    mode = params.config.episode.mode
    source = pairs_in_play(params.tasks, state.pairs, state.task_index, state.augmentation, mode)
    return CanvasState(state.canvas, source.input_of(state.pair_index))


def canvas_of_observation(observation: Observation, config: JaxArcConfig) -> CanvasState:
    """Read the canvas state of one observation with ``working_grid``, ``target_grid`` and ``input_grid`` as planes.

    An empty clipboard and no selection are assumed.
    """
    grid, target, pair_input = (observation[name].reshape(-1) for name in ("working_grid", "target_grid", "input_grid"))
    zero = jnp.zeros((), jnp.int8)
    sizes = jnp.stack([*grid_size(grid, config.grid_shape), *grid_size(target, config.grid_shape), zero, zero])
    if config.action.selection_format == "mask":
        selection = jnp.zeros((config.grid_shape[1],), jnp.uint32)
    else:
        selection = jnp.array([0, 0, -1, -1], jnp.int8)
    return CanvasState(Canvas(grid, jnp.full_like(grid, c.PADDING), target, selection, sizes), pair_input)


def check_edits(actions: StructuredAction, config: JaxArcConfig) -> CheckedEdits:
    """Check a row of actions; one that is illegal, out of range or changes the pair becomes an edit without effect."""
    # Search tries many actions, so a wrong one must not raise: it becomes operation -1 and is marked.
    lenient = config.with_fields(invalid_action_policy="noop")
    checked, invalid = jax.vmap(lambda action: check_action(action, lenient))(actions)
    is_valid = ~invalid & (checked.operation < c.NUM_GRID_OPERATIONS)
    return CheckedEdits(jnp.where(is_valid, checked.operation, c.NO_OPERATION), checked.selection, is_valid)


def edit_statics(config: JaxArcConfig) -> KernelStatics:
    """Return the statics of kernels for the legal operations that keep the pair."""
    operations = tuple(i for i in config.legal_operations if i < c.NUM_GRID_OPERATIONS)
    return statics_of(config, operations)
