"""Measures ARCLE 0.2.6 on request, one environment from a Python loop, its only form without processes.

The current folder holds the tasks. Actions are drawn before the clock starts, and a submit ends an episode.
"""

import glob
import time
import warnings
from importlib import metadata

import numpy as np
from worker_protocol import Request, serve

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # pygame's, about packages that it uses
    from arcle.envs import O2ARCv2Env
    from arcle.loaders import ARCLoader

NUM_OPERATIONS, SIDE, EPISODE_STEPS, NUM_ACTIONS = 35, 30, 100, 5000


class SameTasks(ARCLoader):
    """The tasks of all workers, instead of the copy inside the package."""

    def get_path(self, **_: object) -> list[str]:
        return sorted(glob.glob("data/ARC-AGI-1/data/training/*.json"))


def draw_actions() -> list[dict]:
    generator, actions = np.random.default_rng(0), []
    for _ in range(NUM_ACTIONS):
        (top, bottom), (left, right) = np.sort(generator.integers(0, SIDE, (2, 2)))
        selection = np.zeros((SIDE, SIDE), np.int8)
        selection[top : bottom + 1, left : right + 1] = 1
        actions.append({"selection": selection, "operation": int(generator.integers(NUM_OPERATIONS))})
    return actions


class Loop:
    """One environment that goes on where the last sample stopped."""

    def __init__(self) -> None:
        self.env = O2ARCv2Env(data_loader=SameTasks(), max_grid_size=(SIDE, SIDE), max_trial=1)
        self.env.reset()
        self.actions, self.steps = draw_actions(), 0

    def sample(self, min_seconds: float) -> float:
        """Steps per second, resets included."""
        taken, start = 0, time.perf_counter()
        while True:
            for action in self.actions:
                terminated = self.env.step(action)[2]
                self.steps += 1
                if terminated or self.steps >= EPISODE_STEPS:
                    self.env.reset()
                    self.steps = 0
            taken, seconds = taken + len(self.actions), time.perf_counter() - start
            if seconds >= min_seconds:
                return taken / seconds


_loops: list[Loop] = []


def measure(request: Request) -> float:
    if not _loops:
        _loops.append(Loop())
    return _loops[0].sample(request["seconds"])


def describe() -> dict[str, str]:
    return {"package": "ARCLE", **{name: metadata.version(name) for name in ("arcle", "gymnasium", "numpy")}}


if __name__ == "__main__":
    serve(describe, measure, _loops.clear)
