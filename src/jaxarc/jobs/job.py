"""A job, its outcome, where it is done, and its key: a hash of what it computes."""

import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import PurePath
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from jaxarc.errors import JaxarcError

DIED: Final = "the process died"
TIME_LIMIT: Final = "time limit"


class JobsError(JaxarcError, RuntimeError):
    """Jobs cannot be done here, or not in this folder."""


class Job(NamedTuple):
    """A call of a function that another process can import; its arguments, and what it returns, can be pickled."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    limit_s: float | None = None  # after which its process is ended
    home: int | None = None  # the worker that had better do it, by Outcome.worker


class Outcome(NamedTuple):
    """The end of a job."""

    job: int  # its index
    value: Any  # what its function returned; None where there is a fault
    fault: str | None = None  # begins with DIED or TIME_LIMIT, or says how its machine was lost
    worker: int = 0  # which one had it


Engine: TypeAlias = Literal["here", "local", "slurm", "ray"]


class Place(NamedTuple):
    """Where jobs are done, and by how many side by side."""

    engine: Engine = "local"
    shards: int = 1  # processes here, tasks of a SLURM array, actors of Ray
    processes: int | None = None  # in each shard of SLURM, by default one for each core that it gets; cores of an actor
    options: tuple[tuple[str, str], ...] = ()  # of SLURM's sbatch: name and value


HERE: Final = Place("here")


def key_of(job: Job, begin: Job | None = None) -> str:
    """Return a hash of a job: of its function by name, of its arguments by content, and of what begins its process.

    Raises:
        JobsError: an argument is neither a plain value, an array, a path, a function nor a dataclass of these.
    """
    content = [job.function, job.arguments, begin and [begin.function, begin.arguments]]
    return hashlib.sha256(json.dumps(content, default=_plain, sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.tolist()]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [type(value).__qualname__, vars(value)]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, PurePath):
        return str(value)
    if callable(value):
        return f"{value.__module__}.{value.__qualname__}"
    raise JobsError(f"the argument of a job is a plain value, an array or a dataclass, got {type(value).__name__}")
