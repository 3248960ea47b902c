"""Replay traces in the environment, many at a time in one compiled program; each pair is a task of its own."""

from collections.abc import Sequence
from typing import Final

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.datasets import TaskSet
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction, StructuredAction
from jaxarc.experts.expert import Action, ActionFormat, Pair
from jaxarc.tasks import RawTask
from jaxarc.tasks.buffer import uniform_weights
from jaxarc.unroll import replay_actions, unroll

_BATCH: Final = {"point": 128, "bbox": 128, "mask": 32}  # traces side by side; masks take the memory of a grid per step
_SIDE: Final = c.MAX_GRID_SIZE  # of the canvas
_STEPS: Final = 32  # that one call plays; traces of any length need only this one program
_MOST_STEPS: Final = 10**6  # longer than any trace; episodes end with their submit


def replay(
    pairs: Sequence[Pair], traces: Sequence[Sequence[Action]], action_format: ActionFormat
) -> Bool[np.ndarray, " N"]:
    """Play actions from the input of each pair, on the full canvas, and return which of them solve it.

    Args:
        pairs: what they should solve.
        traces: valid actions for each pair; see :func:`jaxarc.experts.host_canvas.check_solution`.
        action_format: of all of them.

    Returns:
        For each pair, whether the environment reports the episode as solved.

    Raises:
        ValueError: there are not as many traces as pairs.
    """
    if len(pairs) != len(traces):
        raise ValueError(f"there must be one trace for each pair, got {len(pairs)} pairs and {len(traces)} traces")
    solved = np.zeros(len(pairs), np.bool_)
    # Traces of about one length are played side by side, so that few steps are padding. A batch takes as many calls of
    # 32 steps as its longest trace needs; an episode that is submitted stays as it is in the rest.
    by_length = sorted(range(len(pairs)), key=lambda index: len(traces[index]))
    batch = _BATCH[action_format]
    for start in range(0, len(pairs), batch):
        indices = by_length[start : start + batch]
        params = _params([pairs[i] for i in indices], batch, action_format)
        states = _start(params)
        for step in range(0, max(len(traces[i]) for i in indices), _STEPS):
            parts = [traces[i][step : step + _STEPS] for i in indices]
            states = _play(params, states, _stack(parts, batch, action_format))
        solved[indices] = np.asarray(states.is_solved)[: len(indices)]
    return solved


def _params(pairs: Sequence[Pair], count: int, action_format: ActionFormat) -> EnvParams:
    """Return params whose task ``i`` is the pair ``i``; the last is repeated, so that fewer run the same program."""
    config = JaxArcConfig().with_fields(
        selection_format=action_format,
        max_grid_height=_SIDE,
        max_grid_width=_SIDE,
        max_episode_steps=_MOST_STEPS,
        history_enabled=False,
    )
    filled = [*pairs, *[pairs[-1]] * (count - len(pairs))]
    tasks = [RawTask.of_checked_pairs(f"pair-{i}", (pair,), (pair,)) for i, pair in enumerate(filled)]
    buffer = TaskSet("pairs", tuple(tasks)).buffer((_SIDE, _SIDE))
    return EnvParams(buffer, uniform_weights(count), config)


@eqx.filter_jit
def _start(params: EnvParams) -> ArcEnvState:
    reset = lambda index: ArcEnvironment().reset(jax.random.key(0), params, index, 0)[0]
    return jax.vmap(reset)(jnp.arange(params.tasks.num_tasks, dtype=jnp.int32))


@eqx.filter_jit
def _play(params: EnvParams, states: ArcEnvState, actions: StructuredAction) -> ArcEnvState:
    return unroll(ArcEnvironment(), params, replay_actions, states, actions, record=lambda _: None)[0]


def _stack(traces: Sequence[Sequence[Action]], batch: int, action_format: ActionFormat) -> StructuredAction:
    """Put actions into arrays [S, B], short traces padded with copies, which change no grid."""
    # int32[S, B]: column b is a trace. A copy changes the clipboard only, and in mask format, with no cells, nothing.
    operations = np.full((_STEPS, batch), c.COPY, np.int32)
    for column, trace in enumerate(traces):
        operations[: len(trace), column] = [action[0] for action in trace]
    if action_format == "mask":
        cells = np.zeros((_STEPS, batch, _SIDE, _SIDE), np.bool_)
        for column, trace in enumerate(traces):
            for row, action in enumerate(trace):
                cells[row, column, list(action[1::2]), list(action[2::2])] = True
        return MaskAction(jnp.asarray(operations), jnp.asarray(cells))
    # int32[4, S, B]: one array for each coordinate, as the action's fields want them.
    coordinates = np.zeros((4 if action_format == "bbox" else 2, _STEPS, batch), np.int32)
    for column, trace in enumerate(traces):
        if trace:
            coordinates[:, : len(trace), column] = np.array([action[1:] for action in trace], np.int32).T
    columns = [jnp.asarray(column) for column in (operations, *coordinates)]
    return BboxAction(*columns) if action_format == "bbox" else PointAction(*columns)
