"""Candidate actions scored per second, compiled and in plain NumPy."""

import copy
import time
from collections.abc import Sequence
from typing import Final

import jax
import numpy as np
from jaxtyping import Float, Int8

from jaxarc.benchmarks.speed import play_params
from jaxarc.envs import ArcEnvironment
from jaxarc.experts.candidates import candidate_actions
from jaxarc.experts.expert import Action, ActionFormat
from jaxarc.experts.host_canvas import HostCanvas
from jaxarc.experts.lookahead import look_ahead

NUM_CANDIDATES: Final = 256
_NUM_STATES: Final = 64
_STATES_ON_HOST: Final = 4  # of them


class LookaheadSpeed:
    """The same candidates of the same states, on the first pairs of real tasks, looked at in both ways."""

    def __init__(self) -> None:
        params = play_params("bbox")
        key_reset, key_candidates = jax.random.split(jax.random.key(0))
        reset = jax.jit(jax.vmap(ArcEnvironment().reset, (0, None)))
        self._states, _ = reset(jax.random.split(key_reset, _NUM_STATES), params)
        draw = jax.jit(jax.vmap(lambda key, state: candidate_actions(key, state, params, NUM_CANDIDATES).actions))
        self._actions = draw(jax.random.split(key_candidates, _NUM_STATES), self._states)
        self._look = jax.jit(jax.vmap(lambda state, actions: look_ahead(state, actions, params).similarity))
        self._seen = np.asarray(self._look(self._states, self._actions))
        self._on_host = [self._host_state(row) for row in range(_STATES_ON_HOST)]

    def compiled(self, min_seconds: float) -> float:
        """Candidates per second of the compiled look, a batch of states at once."""
        calls, start = 0, time.perf_counter()
        while calls == 0 or time.perf_counter() - start < min_seconds:
            jax.block_until_ready(self._look(self._states, self._actions))
            calls += 1
        return calls * self._seen.size / (time.perf_counter() - start)

    def on_host(self, min_seconds: float) -> float:
        """Candidates per second in plain NumPy, one after the other.

        Raises:
            ArithmeticError: the two do not agree.
        """
        scores, rounds, start = [], 0, time.perf_counter()
        while rounds == 0 or time.perf_counter() - start < min_seconds:
            scores = [look_ahead_on_host(canvas, target, actions, "bbox") for canvas, target, actions in self._on_host]
            rounds += 1
        seconds = time.perf_counter() - start
        if not np.allclose(scores, self._seen[:_STATES_ON_HOST], rtol=1e-6):
            raise ArithmeticError("the compiled look and the one in NumPy disagree; one of them is wrong")
        return rounds * _STATES_ON_HOST * NUM_CANDIDATES / seconds

    def ratio(self, min_seconds: float) -> float:
        """How many times as fast the compiled one is, measured one after the other."""
        return self.compiled(min_seconds) / self.on_host(min_seconds)

    def _host_state(self, row: int) -> tuple[HostCanvas, np.ndarray, list[tuple[int, ...]]]:
        """Canvas, target and actions of a state as experts on the host know them; it starts from its input."""
        numbers = np.stack([np.asarray(leaf[row]) for leaf in jax.tree.leaves(self._actions)], axis=1)
        grid, target = (np.asarray(x[row]) for x in (self._states.working_grid, self._states.target_grid))
        return HostCanvas(_cut(grid)), _cut(target), [tuple(action) for action in numbers.tolist()]


def _cut(grid: np.ndarray) -> np.ndarray:
    """The active area."""
    return grid[grid[:, 0] >= 0][:, grid[0] >= 0]


def look_ahead_on_host(
    canvas: HostCanvas, target: Int8[np.ndarray, "h w"], actions: Sequence[Action], action_format: ActionFormat
) -> Float[np.ndarray, " k"]:
    """Play each of k actions on a copy of a canvas, and tell how similar the grid then is to the target, 0 .. 1."""
    return np.array([_similarity_after(canvas, target, action, action_format) for action in actions])


def _similarity_after(
    canvas: HostCanvas, target: Int8[np.ndarray, "h w"], action: Action, action_format: ActionFormat
) -> float:
    edited = copy.copy(canvas)
    edited.grid = canvas.grid.copy()
    edited.apply(action, action_format)
    (height, width), (wanted_height, wanted_width) = edited.grid.shape, target.shape
    rows, columns = min(height, wanted_height), min(width, wanted_width)
    matches = np.count_nonzero(edited.grid[:rows, :columns] == target[:rows, :columns])
    return matches / (max(height, wanted_height) * max(width, wanted_width))
