"""Observations of a state whose arrays are NumPy's, in the shapes and dtypes of the Gymnasium space."""

import functools
from collections.abc import Callable
from typing import Any, Final

import jax
import numpy as np
from jaxtyping import Int8, Shaped

from jaxarc import constants as c
from jaxarc.adapters.gymnasium_conversion import to_gymnasium_observation
from jaxarc.config import JaxArcConfig
from jaxarc.envs.action_masks import applicable_operations
from jaxarc.envs.canvas import CLIPBOARD_HEIGHT
from jaxarc.envs.observations import entry_slices, grid_form, joined_value
from jaxarc.envs.state import STEP, SUBMISSION, ArcEnvState

_HOT: Final = np.eye(c.NUM_COLORS + 1, dtype=np.int8)  # row 2 is color 2; row -1, the last one, is padding


def shows_more_than_the_canvas(config: JaxArcConfig) -> bool:
    """Whether an observation has entries that stay as they are until the pair changes."""
    return config.observation.include_input or config.observation.include_demonstrations


class HostObservations:
    """Shows one state again and again, as :func:`jaxarc.envs.observations.observe` does.

    Args:
        config: says what is shown.
        state: of NumPy arrays, which are edited in place.
        first: what the compiled program shows of the state in which the episode begins, as NumPy arrays.
    """

    def __init__(self, config: JaxArcConfig, state: ArcEnvState, first: Any):
        self._config = config
        self._is_joined = config.observation.layout != "dict"
        has_tokens = config.observation.grid_format == "tokens"
        self._dtype = np.int32 if has_tokens and config.observation.layout == "stacked" else np.float32
        self._makers = self._entry_makers(state)
        self._slices: list[tuple[slice, Callable[[], np.ndarray]]] = []
        if self._is_joined:
            demonstrations = state.demonstrations
            slices = entry_slices(config, 0 if demonstrations is None else demonstrations.inputs.shape[0])
            self._slices = [(slices[name], make) for name, make in self._makers.items()]
        self._first = first
        is_dict = not self._is_joined and isinstance(first, dict)
        constant = {name: value for name, value in first.items() if name not in self._makers} if is_dict else {}
        self._constant = to_gymnasium_observation(constant)
        self._names = sorted([*self._constant, *self._makers])

    def show(self) -> Any:
        """Return the observation of the state as it is now, in arrays of its own."""
        if self._is_joined:
            return self._join()
        if len(self._names) == 1:
            return self._makers["working_grid"]()
        makers = self._makers
        return {
            name: makers[name]() if name in makers else jax.tree.map(np.copy, self._constant[name])
            for name in self._names
        }

    def _join(self) -> np.ndarray:
        where, make = self._slices[0]
        if len(self._slices) == 1 and where == slice(0, self._first.shape[-1]):
            return make().reshape(self._first.shape)
        joined = self._first.copy()
        for where, make in self._slices:
            part = joined[..., where]
            value = make()
            # An entry has a value for each cell, in both layouts, or one for all cells.
            part[...] = value.reshape(part.shape) if value.size == part.size else value.reshape(-1)
        return joined

    def _entry_makers(self, state: Any) -> dict[str, Callable[[], np.ndarray]]:
        rule = self._config.observation
        canvas = state.canvas
        limits = self._config.environment
        makers = {
            "working_grid": (True, self._grid_maker(canvas.grid)),
            "target_grid": (rule.reveal_target, self._grid_maker(canvas.target)),
            "clipboard": (rule.include_clipboard, self._grid_maker(canvas.clipboard)),
            "selection": (rule.include_selection, self._selection_maker(canvas.selection)),
            "operations": (rule.include_operations, self._operations_maker(canvas.sizes)),
        }
        makers = {name: make for name, (is_shown, make) in makers.items() if is_shown}
        if rule.include_step_count:
            makers["step_count"] = self._number_maker(state.counts, STEP, limits.max_episode_steps)
        if rule.include_submission_count:
            makers["submission_count"] = self._number_maker(state.counts, SUBMISSION, limits.max_submissions)
        return makers

    def _grid_maker(self, grid: Int8[np.ndarray, " HW"]) -> Callable[[], np.ndarray]:
        form = grid_form(self._config)
        shape = self._config.grid_shape
        if form == "tokens":
            return lambda: (grid + np.int8(1)).astype(self._dtype if self._is_joined else np.int32)
        if form == "planes":
            return lambda: grid.reshape(shape).copy()
        hot = _HOT.astype(self._dtype) if self._is_joined else _HOT
        cells = grid.reshape(shape)
        return lambda: hot.take(cells, axis=0, mode="wrap")

    def _selection_maker(self, stored: np.ndarray) -> Callable[[], np.ndarray]:
        shape = self._config.grid_shape
        rows = np.arange(shape[0], dtype=np.uint32)[:, None]

        def of_box() -> np.ndarray:
            selected = np.zeros(shape, np.int8)
            top, left, bottom, right = stored.tolist()
            selected[top : bottom + 1, left : right + 1] = 1
            return selected

        def of_words() -> np.ndarray:  # bit r of a column's word is row r
            return ((stored >> rows) & np.uint32(1)).astype(np.int8)

        return of_words if self._config.action.selection_format == "mask" else of_box

    def _operations_maker(self, sizes: Int8[np.ndarray, " 6"]) -> Callable[[], np.ndarray]:
        masks = [mask.astype(np.int8) for mask in applicable_operations(self._config)]
        return lambda: masks[int(sizes[CLIPBOARD_HEIGHT] > 0)].copy()

    def _number_maker(self, counts: np.ndarray, index: int, high: int) -> Callable[[], np.ndarray]:
        if not self._is_joined:
            return lambda: counts[index : index + 1].copy()
        values = _joined_values(high, self._config)
        return lambda: values[counts[index], None]


@functools.cache
def _joined_values(high: int, config: JaxArcConfig) -> Shaped[np.ndarray, " values"]:
    """Every value that a number can have in a joined observation, divided as a compiled program divides it."""
    numbers = np.arange(high + 1, dtype=np.int32)
    return np.asarray(jax.jit(joined_value, static_argnums=(1, 2))(numbers, high, config))
