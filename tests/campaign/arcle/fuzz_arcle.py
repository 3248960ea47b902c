"""Random operations here and in ARCLE 0.2.6, in its own Python environment: every difference is of a known class.

``make fuzz-arcle`` plays a million steps of the operations that both have: fill, flood fill, move, turn, flip, copy,
paste, clear, copy input, submit. Cut, resize (which empties the grid in ARCLE) and the pair operations are left out.
A difference counts as explained when it falls in a class of `arcle_rules` and ARCLE shows exactly what its rule,
written there, gives; only where nothing is selected that is not predicted.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np
from reference.cases import random_pairs, random_selection
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

import jaxarc
from campaign.arcle.arcle_rules import CLASSES, ArcleStep
from jaxarc.datasets import TaskSet
from jaxarc.envs import MaskAction
from jaxarc.tasks import RawTask

ROOT = Path(__file__).parents[3]
ARCLE_PYTHON = ROOT / "benchmarks" / ".venv-peers" / "bin" / "python"
SHAPES = ((6, 6), (10, 10), (30, 30))
SEQUENCES, STEPS = 400, 50  # of one chunk; the last step of a sequence is a submit
OPERATIONS = (*range(30), 31, 32)  # that both have, submit apart
DEPENDS_ON_THE_PAST = ("nothing selected",)  # ARCLE takes what was selected before, so its result is not predicted


@dataclass
class Comparison:
    """What was compared so far."""

    steps: int = 0
    agreeing: int = 0
    explained: Counter = field(default_factory=Counter)  # by class
    unexplained: list[str] = field(default_factory=list)
    submits: int = 0
    painted_outside: int = 0  # steps after which ARCLE had painted cells outside the grid, which it does not show
    arcle_seconds: float = 0.0
    versions: list[str] = field(default_factory=list)

    def summary(self, seed: int, seconds: float) -> dict[str, Any]:
        return {
            "steps": self.steps,
            "agreeing": self.agreeing,
            "explained": {name: self.explained[name] for name in CLASSES},
            "unexplained": len(self.unexplained),
            "submits": self.submits,
            "painted outside": self.painted_outside,
            "seconds": round(seconds),
            "seconds in ARCLE": round(self.arcle_seconds),
            "seed": seed,
            "versions": [f"python {platform.python_version()}", f"jax {jax.__version__}", *self.versions],
        }


class Chunk:
    """Sequences on one canvas: what is done, and what is shown here after every step."""

    def __init__(self, rng: np.random.Generator, shape: tuple[int, int], sequences: int = SEQUENCES):
        self.shape = shape
        self.pairs = random_pairs(rng, sequences, *shape)
        sizes = [(int((grid[:, 0] >= 0).sum()), int((grid[0] >= 0).sum())) for grid, _ in self.pairs]
        drawn = [[_draw_step(rng, size, shape) for _ in range(STEPS - 1)] + [(34, _nothing(shape))] for size in sizes]
        self.operations = np.array([[step[0] for step in steps] for steps in drawn], np.int32)
        self.selections = np.array([[step[1] for step in steps] for steps in drawn])

    def play_here(self) -> None:
        """Plays all sequences in one batch."""
        crop = lambda grid: grid[: (grid[:, 0] >= 0).sum(), : (grid[0] >= 0).sum()]
        pairs = [tuple(crop(grid) for grid in pair) for pair in self.pairs]
        tasks = TaskSet("sequences", tuple(RawTask(f"sequences/{i}", [p], [p]) for i, p in enumerate(pairs)))
        height, width = self.shape
        fields = {"max_grid_height": height, "max_grid_width": width, "max_episode_steps": STEPS + 1}
        env, params = jaxarc.make(tasks, selection_format="mask", history_enabled=False, **fields)
        places = np.arange(len(pairs), dtype=np.int32)
        keys = jax.random.split(jax.random.key(0), len(pairs))
        states, _ = jax.vmap(env.reset, (0, None, 0))(keys, params, places)
        actions = MaskAction(self.operations.T, np.swapaxes(self.selections, 0, 1))
        shown = jax.device_get(_play(states, actions, params))
        self.grids, self.clips, self.sizes, self.success, self.terminated = (np.swapaxes(x, 0, 1) for x in shown)
        held = self.clips >= 0
        heights, widths = (np.arange(1, side + 1) for side in self.shape)
        self.clip_sizes = np.stack([(held.any(3) * heights).max(2), (held.any(2) * widths).max(2)], axis=2)

    def moment(self, sequence: int, step: int) -> ArcleStep:
        """Returns the state before a step, and the step."""
        grid, clip = self.pairs[sequence][0], np.full(self.shape, -1, np.int8)
        if step:
            grid, clip = self.grids[sequence, step - 1], self.clips[sequence, step - 1]
        clip_size = self.clip_sizes[sequence, step - 1] if step else (0, 0)
        size = int((grid[:, 0] >= 0).sum()), int((grid[0] >= 0).sum())
        return ArcleStep(
            grid,
            clip,
            size,
            (int(clip_size[0]), int(clip_size[1])),
            int(self.operations[sequence, step]),
            self.selections[sequence, step],
        )


def compare(chunk: Chunk, comparison: Comparison, python: Path) -> None:
    """Plays a chunk here and in ARCLE, and sorts what differs."""
    chunk.play_here()
    replayed = _play_there(chunk, python)
    differing = list(map(tuple, replayed["differing"].tolist()))
    comparison.steps += chunk.operations.size
    comparison.agreeing += chunk.operations.size - len(differing)
    comparison.painted_outside += int(replayed["painted_outside"])
    comparison.arcle_seconds += float(replayed["seconds"])
    comparison.versions = replayed["versions"].tolist()
    for number, (sequence, step) in enumerate(differing):
        moment = chunk.moment(sequence, step)
        name = explanation(moment, *(replayed[part][number] for part in ("grids", "clips", "errors")))
        if name:
            comparison.explained[name] += 1
        else:
            shown = f"here {chunk.grids[sequence, step].tolist()}, ARCLE {replayed['grids'][number].tolist()}"
            comparison.unexplained.append(f"{moment}\n{shown}\n{replayed['errors'][number]}")
    ours = np.stack([chunk.success[:, -1], chunk.terminated[:, -1]], axis=1)
    comparison.submits += len(ours)
    for sequence in np.flatnonzero((ours != replayed["outcomes"]).any(axis=1)).tolist():
        comparison.unexplained.append(f"submit: here {ours[sequence]}, ARCLE {replayed['outcomes'][sequence]}")


def explanation(moment: ArcleStep, grid: np.ndarray, clip: np.ndarray, error: str) -> str:
    """Returns the class that explains what ARCLE shows after a step; empty where none does."""
    name = "" if error else moment.difference_class()
    if not name or name in DEPENDS_ON_THE_PAST:
        return name
    expected_grid, expected_clip = moment.by_arcle()
    return name if np.array_equal(expected_grid, grid) and np.array_equal(expected_clip, clip) else ""


def main(arguments: list[str] | None = None) -> int:
    """Runs the comparison; returns 1 when a difference is not explained."""
    options = _parser().parse_args(arguments)
    rng, comparison, started = np.random.default_rng(options.seed), Comparison(), time.monotonic()
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=Console(stderr=True)) as progress:
        bar = progress.add_task("steps", total=options.steps)
        for number in range(-(-options.steps // (SEQUENCES * STEPS))):
            compare(Chunk(rng, SHAPES[number % len(SHAPES)]), comparison, options.python)
            progress.update(bar, completed=comparison.steps)
            if options.json is not None:
                summary = comparison.summary(options.seed, time.monotonic() - started)
                options.json.write_text(json.dumps(summary, indent=1), encoding="utf-8")
    for finding in comparison.unexplained[:5]:
        print(finding)
    for name, value in comparison.summary(options.seed, time.monotonic() - started).items():
        if name != "explained":
            print(f"{name}: {f'{value:,}' if isinstance(value, int) else value}")
            continue
        for difference, count in value.items():
            print(f"  {count:,} x {difference}: {CLASSES[difference]}")
    return 1 if comparison.unexplained else 0


@jax.jit
def _play(states: Any, actions: Any, params: Any) -> Any:
    env = jaxarc.ArcEnvironment()

    def step(states: Any, action: Any) -> Any:
        states, _, _, _, info = jax.vmap(env.step, (0, 0, None))(states, action, params)
        return states, (states.working_grid, states.clipboard, states.grid_size, info["success"], info["terminated"])

    return jax.lax.scan(step, states, actions)[1]


def _play_there(chunk: Chunk, python: Path) -> dict[str, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "sequences.npz", Path(folder) / "replayed.npz"
        inputs, targets = (np.stack(side) for side in zip(*chunk.pairs, strict=True))
        np.savez(
            source,
            operations=chunk.operations,
            selections=chunk.selections,
            inputs=inputs,
            targets=targets,
            grids=chunk.grids,
            sizes=chunk.sizes,
            clips=chunk.clips,
            clip_sizes=chunk.clip_sizes,
        )
        worker = Path(__file__).with_name("arcle_worker.py")
        subprocess.run([python, worker, source, result], check=True)
        with np.load(result) as replayed:
            return dict(replayed)


def _draw_step(rng: np.random.Generator, size: tuple[int, int], shape: tuple[int, int]) -> tuple[int, np.ndarray]:
    """Returns an operation and a selection: mostly a box inside the grid, sometimes anything."""
    operation = int(rng.choice(OPERATIONS))
    if operation == 31:
        return operation, _nothing(shape)
    style, selection = rng.random(), _nothing(shape)
    if style < 0.2:
        return operation, random_selection(rng, *size, *shape)
    row, column = int(rng.integers(size[0])), int(rng.integers(size[1]))
    height, width = int(rng.integers(1, size[0] - row + 1)), int(rng.integers(1, size[1] - column + 1))
    if 10 <= operation <= 19:
        height = width = 1
    if operation in (24, 25) and style < 0.85:
        height = width = min(height, width)
    selection[row : row + height, column : column + width] = True
    return operation, selection


def _nothing(shape: tuple[int, int]) -> np.ndarray:
    return np.zeros(shape, bool)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--steps", type=int, default=1_000_000, help="operations in all (%(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="of all that is random (%(default)s)")
    parser.add_argument("--python", type=Path, default=ARCLE_PYTHON, help="the interpreter that has ARCLE")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the summary goes, also while it runs")
    return parser


if __name__ == "__main__":
    sys.exit(main())
