"""Replays sequences of operations in ARCLE 0.2.6, in its own Python environment, which has no jaxarc.

    python arcle_worker.py SEQUENCES.npz REPLAYED.npz

ARCLE's state runs on from step to step. Where it shows something else than the other side, that is written down, and
ARCLE's state is set to the other side's, so that every step starts from what both agree on.
"""

from __future__ import annotations

import sys
import time
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # pygame's, about packages that it uses
    from arcle.envs import O2ARCv2Env
    from arcle.loaders import Loader

ARCLE_IDS = {  # ours -> ARCLE's, for operations that both have
    **{operation: operation for operation in (*range(20), 20, 21, 26, 27, 34)},
    22: 23,  # left; ARCLE's 22 is right
    23: 22,
    24: 25,  # clockwise
    25: 24,
    28: 29,  # copy from the grid; ARCLE's 28 copies from the input
    29: 30,
    31: 32,  # clear with nothing selected
    32: 31,  # copy input
}


class OnePair(Loader):
    """Gives the pair that it was told last."""

    def __init__(self) -> None:
        self.pair: tuple[np.ndarray, np.ndarray] = (np.zeros((1, 1), np.int8),) * 2
        super().__init__()

    def get_path(self, **_: object) -> list[str]:
        return []

    def parse(self, **_: object) -> list:
        return []

    def pick(self, data_index: object = None, **_: object) -> tuple:
        source, target = self.pair
        return [source], [target], [source], [target], {}


class ArcleReplay:
    """One ARCLE environment that plays sequence after sequence."""

    def __init__(self, shape: tuple[int, int]):
        self.loader = OnePair()
        self.env = O2ARCv2Env(data_loader=self.loader, max_grid_size=shape, max_trial=1)
        self.shape = shape
        self.differing: list[tuple[int, int]] = []  # sequence and step
        self.grids: list[np.ndarray] = []  # what ARCLE shows there, -1 outside the grid
        self.clips: list[np.ndarray] = []  # and on its clipboard, -1 outside
        self.errors: list[str] = []  # what it raised there
        self.painted_outside = 0  # steps after which cells outside the grid were not empty

    def play(self, sequence: int, pair: tuple[np.ndarray, np.ndarray], steps: list[tuple[Any, ...]]) -> tuple[int, int]:
        """Plays one sequence; returns reward and ending of its last step, a submit."""
        self.loader.pair = pair
        self.env.reset()
        reward, terminated = 0, False
        for step, (operation, selection, grid, size, clip, clip_size) in enumerate(steps):
            error = ""
            try:
                _, reward, terminated, _, _ = self.env.step(
                    {"operation": ARCLE_IDS[operation], "selection": selection.astype(np.int8)}
                )
            except (RecursionError, IndexError, ValueError) as raised:
                error = f"{type(raised).__name__}: {raised}"
            self._wipe_outside()
            if error or not self._agrees(grid, size, clip, clip_size):
                self.differing.append((sequence, step))
                self.grids.append(_padded(self.env.current_state, "grid"))
                self.clips.append(_padded(self.env.current_state, "clip"))
                self.errors.append(error)
                self._set(grid, size, clip, clip_size)
        return int(reward), int(terminated)

    def _agrees(self, grid: np.ndarray, size: np.ndarray, clip: np.ndarray, clip_size: np.ndarray) -> bool:
        state = self.env.current_state
        height, width = size
        return (
            tuple(state["grid_dim"]) == (height, width)
            and np.array_equal(state["grid"][:height, :width], grid[:height, :width])
            and tuple(state["clip_dim"]) == tuple(clip_size)
            and np.array_equal(state["clip"], np.maximum(clip, 0))
        )

    def _set(self, grid: np.ndarray, size: np.ndarray, clip: np.ndarray, clip_size: np.ndarray) -> None:
        state = self.env.current_state
        state["grid"][:] = np.maximum(grid, 0)
        state["grid_dim"][:] = size
        state["clip"][:] = np.maximum(clip, 0)
        state["clip_dim"][:] = clip_size
        state["object_states"]["active"][0] = 0

    def _wipe_outside(self) -> None:
        """Empties the cells outside the grid, which ARCLE lets an operation paint and never shows."""
        state = self.env.current_state
        height, width = state["grid_dim"]
        if state["grid"][height:].any() or state["grid"][:, width:].any():
            self.painted_outside += 1
            state["grid"][height:], state["grid"][:, width:] = 0, 0


def _padded(state: Any, name: str) -> np.ndarray:
    height, width = state[f"{name}_dim"]
    padded = np.full(state[name].shape, -1, np.int8)
    padded[:height, :width] = state[name][:height, :width]
    return padded


def main(source: Path, result: Path) -> None:
    """Replays what a file holds and writes what differs."""
    given = np.load(source)
    operations, selections = given["operations"], given["selections"]
    replay, outcomes = ArcleReplay(selections.shape[2:]), []
    seconds = time.perf_counter()
    fields = [given[name] for name in ("grids", "sizes", "clips", "clip_sizes")]
    for sequence in range(len(operations)):
        sides = (given[f"{side}s"][sequence] for side in ("input", "target"))
        pair = tuple(grid[: (grid[:, 0] >= 0).sum(), : (grid[0] >= 0).sum()] for grid in sides)
        columns = [operations[sequence].tolist(), selections[sequence], *(field[sequence] for field in fields)]
        outcomes.append(replay.play(sequence, pair, list(zip(*columns, strict=True))))
    np.savez(
        result,
        seconds=time.perf_counter() - seconds,
        differing=np.array(replay.differing, np.int32).reshape(-1, 2),
        grids=np.array(replay.grids, np.int8).reshape(-1, *replay.shape),
        clips=np.array(replay.clips, np.int8).reshape(-1, *replay.shape),
        errors=np.array(replay.errors, str),
        outcomes=np.array(outcomes, np.int32),
        painted_outside=replay.painted_outside,
        versions=np.array([f"{name} {metadata.version(name)}" for name in ("arcle", "gymnasium", "numpy")]),
    )


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
