"""ARCLE 0.2.6 plays the cases. A submit ends an episode, as it does in the other packages (max_trial=1)."""

import copy
import warnings
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from cases import Action, Frame, NotOfferedError, RefusedError, operation_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # pygame's, about packages that it uses
    from arcle.envs import O2ARCv2Env
    from arcle.loaders import ARCLoader

_OPERATIONS = {"up": 20, "rotate": 24, "copy": 29, "paste": 30, "resize": 33, "submit": 34}


class OneTask(ARCLoader):
    def __init__(self, path: Path):
        self._path = path
        super().__init__()

    def get_path(self, **_: object) -> list[str]:
        return [str(self._path)]


class ArclePlayer:
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
        if allowed is not None or max_steps != 100:
            raise NotOfferedError("has no such setting; Gymnasium's wrappers do it")
        env = self._env(task)
        observation, _ = env.reset(options={"adaptation": not test})
        self._space = env.observation_space
        frames = [Frame(_active(observation), observation, 0.0, False, False, None)]
        for name, cells in actions:
            selection = np.zeros((30, 30), np.int8)
            selection[tuple(np.transpose(cells).astype(int))] = 1
            try:
                step = env.step({"operation": operation_of(name, _OPERATIONS), "selection": selection})
            except (IndexError, TypeError) as error:
                raise RefusedError(str(error)) from None
            observation, reward, terminated, truncated, _ = step
            frames.append(Frame(_active(observation), observation, float(reward), terminated, truncated, None))
        return frames

    def starts(self, task: str, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
        env, pairs = self._env(task), []
        for _ in range(count):
            observation, info = env.reset()
            height, width = info["input_dim"]
            pairs.append((_active(observation), np.array(info["input"][:height, :width])))
        return pairs

    def is_in_space(self, observation: Any) -> bool:
        return self._space.contains(copy.deepcopy(observation))

    def _env(self, task: str) -> Any:
        return O2ARCv2Env(data_loader=OneTask(self._folder / f"{task}.json"), max_grid_size=(30, 30), max_trial=1)


def make_player(folder: Path) -> tuple[ArclePlayer, dict[str, str]]:
    return ArclePlayer(folder), {name: metadata.version(name) for name in ("arcle", "gymnasium")}


def _active(observation: Any) -> np.ndarray:
    height, width = observation["grid_dim"]
    return np.array(observation["grid"][:height, :width]).astype(int)
