"""Traces replayed in the environment itself, many at a time in one compiled program."""

from collections.abc import Sequence
from typing import Final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from jaxarc import constants as c
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction, StructuredAction
from jaxarc.experts.expert import Action, ActionFormat, Pair
from jaxarc.experts.traces.pair_environment import pair_params

_BATCH: Final = {"point": 128, "bbox": 128, "mask": 32}  # traces side by side; masks take the memory of a grid per step
_SIDE: Final = c.MAX_GRID_SIZE  # of the canvas
_STEPS: Final = 32  # that one call plays; traces of any length need only this one program


def replay(pairs: Sequence[Pair], traces: Sequence[Sequence[Action]], action_format: ActionFormat) -> np.ndarray:
    """Play actions from the input of each pair, on the full canvas, and tell which of them solve it.

    Args:
        pairs: what they should solve.
        traces: the actions for each pair, valid ones; see :func:`jaxarc.experts.host_canvas.check_solution`.
        action_format: of all of them.

    Returns:
        ``bool[len(pairs)]``: whether the environment says that the episode was solved.

    Raises:
        ValueError: there are not as many traces as pairs.
    """
    if len(pairs) != len(traces):
        raise ValueError(f"there must be one trace for each pair, got {len(pairs)} pairs and {len(traces)} traces")
    solved = np.zeros(len(pairs), np.bool_)
    by_length = sorted(range(len(pairs)), key=lambda place: len(traces[place]))
    batch = _BATCH[action_format]
    for start in range(0, len(pairs), batch):
        places = by_length[start : start + batch]
        params = pair_params([pairs[i] for i in places], batch, action_format, _SIDE)
        states = _start(params)
        for step in range(0, max(len(traces[i]) for i in places), _STEPS):
            parts = [traces[i][step : step + _STEPS] for i in places]
            states = _play(params, states, _stack(parts, batch, action_format))
        solved[places] = np.asarray(states.is_solved)[: len(places)]
    return solved


@eqx.filter_jit
def _start(params: EnvParams) -> ArcEnvState:
    reset = lambda place: ArcEnvironment().reset(jax.random.key(0), params, place, 0)[0]
    return jax.vmap(reset)(jnp.arange(params.tasks.num_tasks, dtype=jnp.int32))


@eqx.filter_jit
def _play(params: EnvParams, states: ArcEnvState, actions: StructuredAction) -> ArcEnvState:
    step = jax.vmap(lambda state, action: ArcEnvironment().step(state, action, params)[0])
    return jax.lax.scan(lambda states, action: (step(states, action), None), states, actions)[0]


def _stack(traces: Sequence[Sequence[Action]], batch: int, action_format: ActionFormat) -> StructuredAction:
    """Put actions into arrays [S, B], short traces filled up with copies, which change no grid and submit nothing."""
    operations = np.full((_STEPS, batch), c.COPY, np.int32)
    for column, trace in enumerate(traces):
        operations[: len(trace), column] = [action[0] for action in trace]
    if action_format == "mask":
        cells = np.zeros((_STEPS, batch, _SIDE, _SIDE), np.bool_)
        for column, trace in enumerate(traces):
            for row, action in enumerate(trace):
                cells[row, column, list(action[1::2]), list(action[2::2])] = True
        return MaskAction(jnp.asarray(operations), jnp.asarray(cells))
    places = np.zeros((4 if action_format == "bbox" else 2, _STEPS, batch), np.int32)
    for column, trace in enumerate(traces):
        if trace:
            places[:, : len(trace), column] = np.array([action[1:] for action in trace], np.int32).T
    columns = [jnp.asarray(column) for column in (operations, *places)]
    return BboxAction(*columns) if action_format == "bbox" else PointAction(*columns)
