"""Log writers: TensorBoard, Weights & Biases, and those of users."""

import dataclasses
import importlib
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, Protocol, Self

from jaxarc.config import ConfigValidationError, LoggingConfig
from jaxarc.errors import JaxarcError
from jaxarc.runs.folder import RunConfig, RunFolder, RunReport

_EXTRAS: Final = {"tensorboard": "tensorboardX", "wandb": "wandb"}  # field of LoggingConfig and extra -> its library
_AXES: Final = ("update", "environment_steps", "examples", "seed")  # of a report: positions on an axis, no measurements


class LogWriterError(JaxarcError, RuntimeError):
    """Reports cannot be sent where they were to go."""


class LogWriter(Protocol):
    """Takes the reports of a run, one after the other; several seeds alternate.

    ``logging.writers=[my_module:MyWriter]`` calls ``my_module.MyWriter(experiment, folder)`` with the experiment, which
    has ``as_dict()``, and the path of the run folder. :func:`numbers_of` has the measurements of a report by name.
    Both methods raise LogWriterError or OSError where a report went nowhere, and the next one would not fare better.
    """

    def write(self, report: Any, /) -> None: ...

    def close(self) -> None: ...


class LogWriters:
    """Several writers as one, for use in a ``with`` statement.

    One that fails is closed to further reports after a warning, and the run goes on: what it learns is worth more than
    a second copy of its numbers. The first copy, metrics.jsonl, is no writer: when that cannot be written the run ends.
    """

    def __init__(self, writers: Iterable[LogWriter], warn: Callable[[str], None]):
        self._open = list(writers)
        self._warn = warn

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self._open:
            self._try(writer, writer.close)

    def write(self, report: RunReport) -> None:
        self._open = [writer for writer in self._open if self._try(writer, lambda writer=writer: writer.write(report))]

    def _try(self, writer: LogWriter, act: Callable[[], None]) -> bool:
        try:
            act()
        except (LogWriterError, OSError) as error:
            self._warn(f"{type(writer).__name__} gets no more reports: {error}; metrics.jsonl has them all")
            return False
        return True


class TensorBoardWriter:
    """Curves over environment steps, or examples, for TensorBoard, in a folder for each seed."""

    def __init__(self, folder: Path):
        # The writer under tensorboardX's SummaryWriter: that one writes in a thread, where a full disk stops the run.
        self._files_of = importlib.import_module("tensorboardX.event_file_writer")
        self._events = importlib.import_module("tensorboardX.proto.event_pb2")
        self._summary = importlib.import_module("tensorboardX.summary")
        self._folder = folder
        self._files: dict[int, Any] = {}  # by seed

    def write(self, report: RunReport) -> None:
        if report.seed not in self._files:
            folder = self._folder / f"seed_{report.seed}"
            folder.mkdir(parents=True, exist_ok=True)
            self._files[report.seed] = self._files_of.EventsWriter(str(folder / "events"))
        file = self._files[report.seed]
        for name, value in numbers_of(report).items():
            scalar = self._summary.scalar(name, value)
            file.write_event(self._events.Event(wall_time=time.time(), step=report.samples, summary=scalar))
        file.flush()

    def close(self) -> None:
        for file in self._files.values():
            file.close()


class WandbWriter:
    """Curves over environment steps, or examples, at Weights & Biases; the names of the curves hold the seed.

    Raises:
        LogWriterError: a run cannot be started there, for want of a login, say.
    """

    def __init__(self, experiment: RunConfig, folder: Path):
        wandb = importlib.import_module("wandb")
        self._error: type[Exception] = wandb.Error
        self._has_seeds = len(experiment.seeds) > 1
        project = experiment.logging.wandb_project
        try:
            self._run = wandb.init(project=project, name=folder.name, dir=str(folder), config=experiment.as_dict())
        except self._error as error:
            raise LogWriterError(f"wandb: {error}; WANDB_MODE=offline keeps the reports here") from error

    def write(self, report: RunReport) -> None:
        prefix = f"seed_{report.seed}/" if self._has_seeds else ""
        try:
            self._run.log({prefix + name: value for name, value in numbers_of(report).items()}, step=report.samples)
        except self._error as error:
            raise LogWriterError(f"wandb: {error}") from error

    def close(self) -> None:
        self._run.finish()


def check_extras(logging: LoggingConfig) -> None:
    """Refuse a config that asks for a library that is not installed, or for a writer that cannot be found."""
    for name in logging.writers:
        _find_writer(name)
    for name, library in _EXTRAS.items():
        if getattr(logging, name):
            try:
                importlib.import_module(library)
            except ImportError as error:
                raise ConfigValidationError(
                    f"logging.{name}=true needs the library {library}: pip install {library} ({error})"
                ) from error


def open_log_writers(experiment: RunConfig, folder: RunFolder) -> list[LogWriter]:
    """Open what the experiment's logging asks for.

    Raises:
        LogWriterError: one cannot be opened.
    """
    writers: list[LogWriter] = []
    if experiment.logging.tensorboard:
        writers.append(TensorBoardWriter(folder.path / "tensorboard"))
    if experiment.logging.wandb:
        writers.append(WandbWriter(experiment, folder.path))
    return writers + [_find_writer(name)(experiment, folder.path) for name in experiment.logging.writers]


def _find_writer(name: str) -> Callable[[RunConfig, Path], LogWriter]:
    """Return a class by ``module:class``; modules are looked for in the working directory too."""
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.append(here)
    module, _, attribute = name.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigValidationError(
            f"logging.writers: {name!r} cannot be loaded ({type(error).__name__}: {error}); give module:class of a "
            "module that Python finds from here"
        ) from error


def numbers_of(report: RunReport) -> dict[str, float]:
    """Return the measurements of a report by name, without the positions on the axes."""
    fields = dataclasses.asdict(report)
    return {name: value for name, value in fields.items() if name not in _AXES and value is not None}
