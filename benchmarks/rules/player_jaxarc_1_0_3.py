"""JaxARC 1.0.3 plays the cases; episodes start from demonstration inputs only, its other start grids are off."""

import shutil  # noqa: I001  the jaxarc below is another one
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from cases import Action, Frame, operation_of
from loguru import logger

from jaxarc.configs import (
    ActionConfig,
    DatasetConfig,
    EnvironmentConfig,
    GridInitializationConfig,
    JaxArcConfig,
)
from jaxarc.envs import Environment
from jaxarc.envs.actions import create_action
from jaxarc.parsers import ArcAgiParser
from jaxarc.types import EnvParams
from jaxarc.utils.buffer import stack_task_list

TERMINATED, TRUNCATED = 2, 3
_OPERATIONS = {"up": 20, "rotate": 24, "copy": 28, "paste": 29, "resize": 33, "submit": 34}


class JaxArcPlayer:
    def __init__(self, folder: Path):
        data = folder / "data" / "training"
        data.mkdir(parents=True, exist_ok=True)
        for file in folder.glob("*.json"):
            shutil.copy(file, data / file.name)
        (folder / ".here").touch()  # JaxARC takes the folder that this file marks as its root
        self._dataset = DatasetConfig(
            dataset_path=str(folder), max_grid_height=30, max_grid_width=30, min_grid_height=1, min_grid_width=1
        )
        parser = ArcAgiParser(self._dataset)
        self._names = sorted(parser.get_available_task_ids())
        stacked = stack_task_list([parser.get_task_by_id(name) for name in self._names])
        self._buffer = jax.tree.map(jnp.asarray, stacked)

    def play(
        self,
        task: str,
        actions: Sequence[Action],
        *,
        test: bool = False,
        max_steps: int = 100,
        allowed: Sequence[str] | None = None,
    ) -> list[Frame]:
        env, params = self._env(task, test, max_steps, allowed)
        self._space = env.observation_space(params)
        state, timestep = env.reset(jax.random.PRNGKey(0), env_params=params)
        frames = [_frame(state, timestep)]
        for name, cells in actions:
            mask = np.zeros((30, 30), np.bool_)
            mask[tuple(np.transpose(cells).astype(int))] = True
            action = create_action(jnp.asarray(operation_of(name, _OPERATIONS)), jnp.asarray(mask))
            state, timestep = env.step(state, action, env_params=params)
            frames.append(_frame(state, timestep))
        return frames

    def starts(self, task: str, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
        env, params = self._env(task, False, 100, None)
        reset = jax.jit(lambda key: env.reset(key, env_params=params)[0])
        states = [reset(jax.random.PRNGKey(seed)) for seed in range(count)]
        return [
            (_active(s.working_grid, s.working_grid_mask), _active(s.input_grid, s.input_grid_mask)) for s in states
        ]

    def is_in_space(self, observation: Any) -> bool:
        space, values = self._space, np.asarray(observation)
        within = (values >= np.asarray(space.minimum)).all() and (values <= np.asarray(space.maximum)).all()
        return values.shape == tuple(space.shape) and values.dtype == np.dtype(space.dtype) and bool(within)

    def _env(self, task: str, test: bool, max_steps: int, allowed: Sequence[str] | None) -> tuple[Any, Any]:
        start = GridInitializationConfig(demo_weight=1.0, permutation_weight=0.0, empty_weight=0.0, random_weight=0.0)
        limits = (
            {}
            if allowed is None
            else {"allowed_operations": tuple(operation_of(name, _OPERATIONS) for name in allowed)}
        )
        config = JaxArcConfig(
            dataset=self._dataset,
            environment=EnvironmentConfig(max_episode_steps=max_steps),
            action=ActionConfig(**limits),
            grid_initialization=start,
        )
        index = jnp.asarray([self._names.index(task)])
        params = EnvParams.from_config(config, episode_mode=int(test), buffer=self._buffer, subset_indices=index)
        return Environment(config, self._buffer), params


def make_player(folder: Path) -> tuple[JaxArcPlayer, dict[str, str]]:
    logger.disable("jaxarc")
    return JaxArcPlayer(folder), {name: metadata.version(name) for name in ("jaxarc", "jax")}


def _frame(state: Any, timestep: Any) -> Frame:
    kind = int(timestep.step_type)
    return Frame(
        grid=_active(state.working_grid, state.working_grid_mask),
        observation=timestep.observation,
        reward=float(timestep.reward),
        terminated=kind == TERMINATED,
        truncated=kind == TRUNCATED,
        discount=float(timestep.discount),
    )


def _active(grid: Any, mask: Any) -> np.ndarray:
    grid, mask = np.asarray(grid), np.asarray(mask)
    return grid[mask.any(axis=1)][:, mask.any(axis=0)].astype(int)
