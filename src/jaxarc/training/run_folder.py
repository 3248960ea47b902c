"""Where a run leaves its files."""

import datetime
import json
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Final

from jaxarc.training.checkpoint import write_whole
from jaxarc.training.experiment import Experiment

_LIBRARIES: Final = ("jax", "jaxlib", "equinox", "optax", "numpy")


@dataclass(frozen=True)
class RunFolder:
    """The names of a run's files, all in one folder."""

    path: Path

    @property
    def config(self) -> Path:
        """The complete config, and the versions that ran."""
        return self.path / "config.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def checkpoint(self) -> Path:
        return self.path / "checkpoint.eqx"

    @property
    def tasks(self) -> Path:
        """How each learned task went, a line of JSON each."""
        return self.path / "tasks.jsonl"

    @property
    def learning_curve(self) -> Path:
        return self.path / "learning_curve.png"


def create_run_folder(experiment: Experiment) -> RunFolder:
    """Make ``<run_root>/<date>_<time>-<run_name>`` with the config in it; a taken name gets a number."""
    logging = experiment.logging
    name = f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}-{logging.run_name}"
    folder = RunFolder(_make_new(Path(logging.run_root), name))
    versions = {"python": platform.python_version(), **{name: version(name) for name in _LIBRARIES}}
    text = json.dumps({**experiment.as_dict(), "versions": versions}, indent=2)
    write_whole(folder.config, (text + "\n").encode())
    return folder


def _make_new(root: Path, name: str) -> Path:
    root.mkdir(parents=True, exist_ok=True)
    number = 1
    while True:
        path = root / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            number += 1
        else:
            return path
