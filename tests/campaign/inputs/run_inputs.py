"""Readers of what runs leave as targets: saved states, checkpoints, metrics, configs and tables of a run's folder."""

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any, Final

import jax
import numpy as np

from campaign.inputs.input_target import Maker, Target, require
from campaign.inputs.task_inputs import small_tasks
from jaxarc.agents.experiment import Report, read_metrics
from jaxarc.cli.compare import ComparisonError, band_of, read_groups
from jaxarc.cli.settings import read_experiment
from jaxarc.envs import arc_reset
from jaxarc.io.serialization import MAGIC, StateFileError, load_state_efficiently, save_state_efficiently
from jaxarc.runs import CheckpointError, RunFolder
from jaxarc.runs.checkpoint import CheckpointRecord, read_checkpoint, save_checkpoint
from jaxarc.runs.folder import MetricsFile, RunFolderError
from jaxarc.tasks import UnknownTaskError
from jaxarc.testing import create_test_config


def checked_state(folder: Path) -> Target:
    """The header of a saved state whose checksum is right, whatever it says."""
    file, tasks, config = folder / "saved.state", small_tasks(), create_test_config(grid_shape=(4, 4))
    state, _ = arc_reset(jax.random.key(0), config, tasks.get_task_by_id("one"))
    save_state_efficiently(state, file)
    digest_end = len(MAGIC) + hashlib.sha256().digest_size
    header, _, packed = file.read_bytes()[digest_end:].partition(b"\n")

    def read(content: bytes) -> None:
        arrays = zlib.compress(bytes(2**24), 1) if content.endswith(b" ") else packed
        body = content.replace(b"\n", b" ") + b"\n" + arrays
        file.write_bytes(MAGIC + hashlib.sha256(body).digest() + body)
        load_state_efficiently(file, tasks, state)

    words = ("task_id", "task_checksum", "task_shape", "one", "two")
    return Target(read, (StateFileError, UnknownTaskError), (header,), words)


def checkpoint_record(folder: Path) -> Target:
    """The record of a checkpoint."""
    path = _checkpoint(folder)

    def read(content: bytes) -> None:
        (path / "record.json").write_bytes(content)
        read_checkpoint(path)

    return Target(read, (CheckpointError,), ((path / "record.json").read_bytes(),), _RECORD_WORDS)


def metrics_file(folder: Path) -> Target:
    """The lines of a run's metrics, as a resume and as a comparison read them."""
    run = RunFolder(folder)
    run.config.write_text(_CONFIG)

    def read(content: bytes) -> None:
        run.metrics.write_bytes(content)
        try:
            MetricsFile(run.metrics, Report).head(1)
        except RunFolderError as error:
            require(str(error).isprintable(), "a message of several lines")
        for group in read_groups([folder], "train_solve_rate")[0]:
            band_of(group.curves, "steps")
        read_metrics(run.metrics)

    seeds = ("".join(json.dumps(_report(update, seed)) + "\n" for update in (0, 10) for seed in (0, 1)).encode(),)
    return Target(read, (ComparisonError, ValueError), seeds, tuple(_report(0, 0)))


def run_config(folder: Path) -> Target:
    """The config of a run's folder, as a comparison reads it."""
    runs = [RunFolder(folder / name) for name in ("a", "b")]
    for run in runs:
        run.path.mkdir()
        run.config.write_text(_CONFIG)
        run.metrics.write_text(json.dumps(_report(0, 0)) + "\n")

    def read(content: bytes) -> None:
        runs[0].config.write_bytes(content)
        read_groups([folder], "train_solve_rate")

    words = ("environment", "training", "agent", "surrogate", "seed", "versions")
    return Target(read, (ComparisonError,), (runs[1].config.read_bytes(), b'{"environment": {}, "agent": {}}'), words)


TARGETS: Final[tuple[Maker, ...]] = (checked_state, checkpoint_record, metrics_file, run_config)

_CONFIG: Final = json.dumps(read_experiment(["experiment=small_grids"]).as_dict())
_RECORD_WORDS: Final = ("format", "record", "files", "update", "num_lines", "seconds", "score", "config", "versions")


def _checkpoint(folder: Path) -> Path:
    path = RunFolder(folder).checkpoints.at(5)
    record = CheckpointRecord(5, 2, 1.5, 0.5, json.loads(_CONFIG), {"jax": "0"})
    save_checkpoint(path, {"weights": np.zeros(2, np.float32)}, record)
    return path


def _report(update: int, seed: int) -> dict[str, Any]:
    return {"update": update, "environment_steps": update * 64, "seconds": 0.5 * update, "seed": seed,
            "mean_return": 0.1, "train_solve_rate": 0.25, "evaluation_solve_rate": None}  # fmt: skip
