"""The folder of a run: the names of its files, who writes them, the versions that wrote it, and its lines of metrics.

Metrics are the reports of a run, one line of JSON for each seed and moment; tables have a line of JSON for each row.
"""

import dataclasses
import datetime
import errno
import json
import os
import platform
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol, TypeVar

from filelock import FileLock, Timeout

from jaxarc.config import CheckpointConfig, LoggingConfig
from jaxarc.errors import JaxarcError, UsageError
from jaxarc.files import TRAINED, names_file, user_path, write_whole
from jaxarc.parallel import is_primary
from jaxarc.runs.checkpoint import Checkpoints

DISTRIBUTION: Final = "jaxarc-rl"  # by which pip knows this package
_SECONDS: Final = 10.0  # git answers in milliseconds; a folder on a lost network drive must not hold up a run
_LAST_STEP: Final = 60.0  # seconds for a process that lost its run to notice it and let go of the lock
_DRAWN: Final = secrets.token_hex(4)  # two machines may have one name, and their processes one number
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

        Of several processes of one run, process 0 holds the lock. A job that SLURM starts again takes the run from its
        earlier start, which may still run on a node that was lost.

        Raises:
            RunFolderError: another run is writing here.
        """
        if not is_primary():
            yield
            return
        is_taken_over = self.is_of_this_job
        if is_taken_over:
            self.claim()
        lock = FileLock(self.path / ".lock", timeout=_LAST_STEP if is_taken_over else 0)
        try:
            lock.acquire()
        except Timeout as error:
            if not is_taken_over:
                raise RunFolderError(
                    f"another process is training in {self.path}; wait until it ends, or stop it"
                ) from error
        except OSError as error:
            if error.errno not in (errno.ENOLCK, errno.ENOTSUP):  # of a shared disk without locks
                raise
        try:
            self.claim()
            yield
        finally:
            lock.release()

    # A disk that machines share may have no locks, and a machine without a network keeps its own. So each run names its
    # writer in a file, which a rename replaces for all, and the writer reads it before it writes anything. What it may
    # write in the moment between is a line or a checkpoint that the other one computes, too.
    @property
    def _writer(self) -> Path:
        return self.path / ".writer"

    def claim(self) -> None:
        """Make this process the one that writes here; another one that does stops before it writes again."""
        write_whole(self._writer, json.dumps(_this_process()).encode())

    @property
    def is_claimed(self) -> bool:
        """Whether this process is the last that claimed the run."""
        return self._read_writer() == _this_process()

    @property
    def is_of_this_job(self) -> bool:
        """Whether this job of SLURM claimed the run before SLURM started it again."""
        claim, mine = self._read_writer(), _this_process()
        is_same = mine["slurm_job"] is not None and claim.get("slurm_job") == mine["slurm_job"]
        return is_same and claim["restarts"] < mine["restarts"]

    def require_claimed(self) -> None:
        """Raise RunFolderError in process 0 if it is not the last that claimed the run."""
        if is_primary() and not self.is_claimed:
            other = ", ".join(f"{name} {value}" for name, value in self._read_writer().items())
            raise RunFolderError(f"another process goes on with {self.path} ({other}); this one stops")

    def _read_writer(self) -> dict[str, Any]:
        return (read_row(self._writer.read_bytes()) if self._writer.exists() else None) or {}


def _this_process() -> dict[str, Any]:
    """Name this process as no other: its host, its job of SLURM, and how often that was started again."""
    job = os.environ.get("SLURM_JOB_ID")
    restarts = int(os.environ.get("SLURM_RESTART_COUNT", "0"))
    return {"host": platform.node(), "slurm_job": job, "restarts": restarts, "process": f"{os.getpid()}-{_DRAWN}"}


def remove_unused(folder: RunFolder) -> None:
    """Remove a new folder of this process without checkpoints and without a report of anything learned.

    The first report, of update 0, is made anew by a run that goes on; so alone it is not worth keeping.
    """
    if not (is_primary() and folder.is_claimed) or folder.checkpoints.updates():
        return
    with suppress(OSError):  # this is done at a signal as well, when nothing may hold up the end
        lines = folder.metrics.read_bytes().splitlines() if folder.metrics.exists() else []
        if all((read_row(line) or {}).get("update") == 0 for line in lines):
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
    folder.claim()
    return folder


def folder_of_this_job(experiment: RunConfig) -> RunFolder | None:
    """Return the folder of this run where a job of SLURM began it and was started again; None for a new run."""
    if _this_process()["restarts"] == 0:
        return None
    choices = json.loads(json.dumps(experiment.as_dict()))
    choices.pop("parallel", None)  # the nodes may be others now
    for path in user_path(Path(experiment.logging.run_root)).glob("*/"):
        folder = RunFolder(path)
        if folder.is_of_this_job and choices.items() <= json.loads(folder.config.read_bytes()).items():
            return folder
    return None


def open_run_folder(path: Path) -> RunFolder:
    """Return the folder of an earlier run.

    Raises:
        NotARunError: it is not the folder of a run.
    """
    folder = RunFolder(path)
    if not folder.config.is_file():
        kind = "there is no folder" if not path.is_dir() else f"there is no {folder.config.name} in"
        brought = ", ".join(sorted(folder.name for folder in TRAINED.iterdir()))
        raise NotARunError(
            f"{kind} {path}; name the folder of a run of jaxarc train, such as runs/<date>_<time>-ppo, or an agent "
            f"that comes with this package: {brought}"
        )
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


class RunReport(Protocol):
    """The fields that reports of all kinds of runs have."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def update(self) -> int:
        """Updates so far."""
        ...

    @property
    def seconds(self) -> float:
        """Since learning began, without compilation and saving."""
        ...

    @property
    def seed(self) -> int: ...

    @property
    def samples(self) -> int:
        """The samples so far: environment steps, or examples."""
        ...

    @property
    def score(self) -> float | None:
        """By which one checkpoint is better than another, the higher the better; None where nothing was measured."""
        ...


Kind = TypeVar("Kind", bound=RunReport)


@dataclass(frozen=True)
class MetricsFile:
    """Reports as lines of JSON; those of one moment are handed to the system in one piece."""

    path: Path
    kind: type[RunReport]

    def append(self, reports: Sequence[Any]) -> None:
        lines = [json.dumps(dataclasses.asdict(report)) + "\n" for report in reports]
        # All seeds of one moment go out in one write, so that a run that is killed rarely leaves a part of them.
        with names_file(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write("".join(lines))

    def flush(self) -> None:
        """Wait until all lines are on the disk."""
        with names_file(self.path), self.path.open("ab") as file:
            os.fsync(file.fileno())

    def cut(self, num_lines: int) -> list[Any]:
        """Drop what follows the first lines, and return their reports.

        Raises:
            RunFolderError: there are fewer lines, or one of them is not a report; the file is left as it is.
        """
        # The lines are read before the file is replaced: what cannot be read is not cut.
        reports = self.head(num_lines)
        write_whole(self.path, b"".join(self._lines()[:num_lines]))
        return reports

    def head(self, num_lines: int) -> list[Any]:
        """Return the reports of the first lines."""
        lines = self._lines()
        if len(lines) < num_lines:
            raise RunFolderError(
                f"{self.path} has {len(lines)} lines, but its run's checkpoint was saved after {num_lines}; "
                "bring the file back, or train again"
            )
        try:
            return _read_lines(self.path, lines[:num_lines], self.kind)
        except ValueError as error:
            raise RunFolderError(f"{error}; bring the file back, or train again") from error

    def _lines(self) -> list[bytes]:
        return self.path.read_bytes().splitlines(keepends=True) if self.path.exists() else []


def read_reports(path: Path, kind: type[Kind]) -> list[Kind]:
    """Read the reports of a kind, in order.

    Raises:
        ValueError: a line is not a report of this kind.
    """
    return _read_lines(path, path.read_bytes().splitlines(), kind)


def _read_lines(path: Path, lines: Sequence[bytes], kind: type[Kind]) -> list[Kind]:
    reports = []
    for number, line in enumerate(lines, start=1):
        try:
            reports.append(_report(line, kind))
        except (ValueError, TypeError, RecursionError) as error:
            raise ValueError(f"{path}, line {number} is not a report of a training run: {error}") from error
    return reports


def _report(line: bytes, kind: type[Kind]) -> Kind:
    row = json.loads(line)
    known = [field.name for field in dataclasses.fields(kind)]
    if not isinstance(row, dict):
        raise ValueError("it is no JSON object")
    for name, value in row.items():
        if name not in known:
            raise ValueError(f"there is no number {name!r:.60}")
        # ``type`` and not ``isinstance``, which takes true for 1. A huge integer has no float, so it cannot be drawn.
        is_number = type(value) is float or (type(value) is int and abs(value) <= sys.float_info.max)
        if value is not None and not is_number:
            raise ValueError(f"{name} is a number or null, got {value!r:.60}")
    return kind(**row)


def write_table(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows, whole or not at all; each row has in ``of`` the number of rows, so that a reader misses none.

    Raises:
        OSError: the file cannot be written.
    """
    rows = list(rows)
    write_whole(path, "".join(json.dumps({**row, "of": len(rows)}) + "\n" for row in rows).encode())


def read_table(path: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the rows, and how many are unreadable or missing; a missing file has no rows.

    Raises:
        OSError: the file is there and cannot be read.
    """
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return [], 0
    # A file that was cut between two lines has only good ones, but they say how many there
    # should be: 3 good rows "of" 5 are 2 missing.
    rows = [row for line in lines if (row := read_row(line)) is not None]
    wanted = [row["of"] for row in rows if type(row.get("of")) is int]
    return rows, max([len(lines), *wanted]) - len(rows)


def read_row(line: bytes) -> dict[str, Any] | None:
    """Read a line of JSON; None if it is not an object."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None
