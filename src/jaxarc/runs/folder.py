"""The folder of a run: the names of its files, its lock, and the versions that wrote it."""

import datetime
import json
import platform
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, Protocol

from filelock import FileLock, Timeout

from jaxarc.config import CheckpointConfig, LoggingConfig
from jaxarc.errors import JaxarcError, UsageError
from jaxarc.files import user_path, write_whole
from jaxarc.parallel import is_primary
from jaxarc.runs.checkpoint import Checkpoints

DISTRIBUTION: Final = "jaxarc-rl"  # by which pip knows this package
_SECONDS: Final = 10.0  # git answers in milliseconds; a folder on a lost network drive must not hold up a run
_LIBRARIES: Final = ("jax", "jaxlib", "equinox", "optax", "numpy")


class RunFolderError(JaxarcError, OSError):
    """A folder is not that of a run, holds another one already, or is in use."""


class NotARunError(UsageError, RunFolderError):
    """A folder is not that of a run, or is not there."""


class RunConfig(Protocol):
    """All choices of a run: an experiment."""

    @property
    def checkpoint(self) -> CheckpointConfig: ...

    @property
    def logging(self) -> LoggingConfig: ...

    @property
    def seeds(self) -> Sequence[int]:
        """One for each that learns."""
        ...

    def as_dict(self) -> dict[str, Any]:
        """Return nested dictionaries of plain values, for JSON."""
        ...


@dataclass(frozen=True)
class RunFolder:
    """The names of a run's files, all in one folder."""

    path: Path

    @property
    def config(self) -> Path:
        """The complete config, the versions that ran, and the git revision of the working folder, if any."""
        return self.path / "config.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.jsonl"

    @property
    def checkpoints(self) -> Checkpoints:
        return Checkpoints(self.path / "checkpoints")

    @property
    def tasks(self) -> Path:
        """Attempts and solves of each training task, a line of JSON each."""
        return self.path / "tasks.jsonl"

    @property
    def measured(self) -> Path:
        """The result of each evaluated pair at the end, a line of JSON each."""
        return self.path / "measured.jsonl"

    @property
    def evaluation(self) -> Path:
        """The measurements of a surrogate, as JSON."""
        return self.path / "evaluation.json"

    @property
    def calibration(self) -> Path:
        return self.path / "calibration.png"

    @property
    def learning_curve(self) -> Path:
        return self.path / "learning_curve.png"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keep other runs from writing here; the system lets go when this process ends, however it ends.

        Of several processes of one run, process 0 holds the lock.

        Raises:
            RunFolderError: another run is writing here.
        """
        if not is_primary():
            yield
            return
        try:
            with FileLock(self.path / ".lock", timeout=0):
                yield
        except Timeout as error:
            raise RunFolderError(
                f"another process is training in {self.path}; wait until it ends, or stop it"
            ) from error


def remove_unused(folder: RunFolder) -> None:
    """Remove a new folder that has no metrics and no checkpoints: there is nothing worth keeping."""
    if is_primary() and not folder.metrics.exists() and not folder.checkpoints.updates():
        shutil.rmtree(folder.path, ignore_errors=True)


def create_run_folder(experiment: RunConfig) -> RunFolder:
    """Make ``<run_root>/<date>_<time>-<run_name>`` with the config in it; a taken name gets a number."""
    logging = experiment.logging
    name = f"{datetime.datetime.now():%Y-%m-%d_%H-%M-%S}-{logging.run_name}"
    # The config is written first, so that a folder without one is never taken for a run's.
    folder = RunFolder(make_new_folder(Path(logging.run_root), name))
    about = {"versions": library_versions(), "git_revision": git_revision(Path.cwd())}
    text = json.dumps({**experiment.as_dict(), **about}, indent=2)
    write_whole(folder.config, (text + "\n").encode())
    return folder


def open_run_folder(path: Path) -> RunFolder:
    """Return the folder of an earlier run.

    Raises:
        NotARunError: it is not the folder of a run.
    """
    folder = RunFolder(path)
    if not folder.config.is_file():
        kind = "there is no folder" if not path.is_dir() else f"there is no {folder.config.name} in"
        raise NotARunError(f"{kind} {path}; name the folder of a run of jaxarc train, such as runs/<date>_<time>-ppo")
    return folder


def library_versions() -> dict[str, str]:
    """Return the versions that the numbers of a run depend on."""
    ours = {"python": platform.python_version(), "jaxarc": version(DISTRIBUTION)}
    return ours | {name: version(name) for name in _LIBRARIES}


def make_new_folder(root: Path, name: str) -> Path:
    """Make a folder below ``root``, in which ``~`` is the home folder; a taken name gets a number."""
    root = user_path(root)
    root.mkdir(parents=True, exist_ok=True)
    number = 1
    # ``mkdir`` decides and not a look before it: of two runs that start in the same
    # second each gets a folder of its own.
    while True:
        path = root / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir()
        except FileExistsError:
            number += 1
        else:
            return path


def git_revision(folder: Path) -> str | None:
    """Return the commit that is checked out in a folder, ``-dirty`` added when its files differ; None without git."""
    command = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"]
    try:
        answer = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):  # no git, no repository, no commit yet
        return None
    return answer.stdout.strip()
