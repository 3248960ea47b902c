"""This package plays the cases."""

from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import numpy as np
from cases import Action, Frame, RefusedError, operation_of

import jaxarc

_OPERATIONS = {"up": 20, "rotate": 24, "copy": 28, "paste": 29, "resize": 33, "submit": 34}


class HerePlayer:
    def __init__(self, folder: Path):
        self._folder = folder

    def play(
        self,
        task: str,
        actions: Sequence[Action],
        *,
        test: bool = False,
        max_steps: int = 100,
        allowed: Sequence[str] | None = None,
    ) -> list[Frame]:
        fields: dict[str, Any] = (
            {}
            if allowed is None
            else {"allowed_operations": tuple(operation_of(name, _OPERATIONS) for name in allowed)}
        )
        env, params = jaxarc.make(
            self._folder / f"{task}.json",
            selection_format="mask",
            max_episode_steps=max_steps,
            invalid_action_policy="noop",
            mode="test" if test else "train",
            score_on_submit=True,  # in test mode as well, as the others do
            **fields,
        )
        state, observation = env.reset(jax.random.key(0), params)
        self._space = env.observation_space(params)
        frames = [Frame(_active(state), observation, 0.0, False, False, 1.0)]
        step = jax.jit(env.step)
        for name, cells in actions:
            mask = np.zeros(params.config.grid_shape, np.bool_)
            mask[tuple(np.transpose(cells).astype(int))] = True
            action = jaxarc.MaskAction(operation=operation_of(name, _OPERATIONS), selection=mask)
            state, observation, reward, _, info = step(state, action, params)
            if bool(info["invalid_action"]) and len(actions) == 1:
                raise RefusedError("info['invalid_action'] is true, and nothing happens")
            ended = bool(info["terminated"]), bool(info["truncated"])
            frames.append(Frame(_active(state), observation, float(reward), *ended, float(info["discount"])))
        return frames

    def starts(self, task: str, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
        env, params = jaxarc.make(self._folder / f"{task}.json", include_input=True, reveal_target=True)
        states, observations = jax.vmap(env.reset, (0, None))(jax.random.split(jax.random.key(0), count), params)
        grids = np.asarray(states.working_grid), np.asarray(observations["input_grid"])
        return [tuple(_cut(grid) for grid in pair) for pair in zip(*grids, strict=True)]

    def is_in_space(self, observation: Any) -> bool:
        return bool(self._space.contains(observation))


def make_player(folder: Path) -> tuple[HerePlayer, dict[str, str]]:
    return HerePlayer(folder), {"jaxarc": jaxarc.__version__, "jax": metadata.version("jax")}


def _active(state: Any) -> np.ndarray:
    return _cut(np.asarray(state.working_grid))


def _cut(grid: np.ndarray) -> np.ndarray:
    return grid[grid[:, 0] >= 0][:, grid[0] >= 0].astype(int)
