"""Jobs on a SLURM cluster: shards of an array, each of which does its part on its node and writes the outcomes itself.

The driver looks for files and asks ``squeue`` which shards there are, as ``sacct`` knows nothing where accounting is
off:

    folder/KEY.json            an outcome
    folder/slurm/shards.json   {"17_0": [KEY, ...], "17_1": ...}, by which a driver that was killed finds its array
    folder/slurm/17_0.error    why a shard gave up
    folder/slurm/17_0_0_log.*  what it printed
"""

import contextlib
import functools
import importlib
import io
import json
import os
import platform
import signal
import subprocess
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from jaxarc.errors import Caught, JaxarcWarning
from jaxarc.files import write_whole
from jaxarc.jobs.cores import host_cores
from jaxarc.jobs.job import Job, JobsError, Outcome, Place
from jaxarc.jobs.local import do_in_processes
from jaxarc.jobs.results import Results

_TRIES: Final = 3  # of a job in shards that are lost
_GLANCE_S: Final = 1.0  # between two looks
_PATIENCE_S: Final = 10.0  # until the last files of a shard that has ended are seen over a network
_AT_WORK: Final = "PENDING,CONFIGURING,RUNNING,SUSPENDED,REQUEUED,RESIZING,SIGNALING,STAGE_OUT,STOPPED"


class ShardWarning(JaxarcWarning):
    """A shard on another machine was lost, or cannot start."""


def do_on_slurm(
    jobs: Mapping[str, Job], place: Place, begin: Job | None, results: Results
) -> Iterator[tuple[str, Outcome]]:
    """Yield the outcome of each job by its key; leaving cancels the array, while a kill leaves it at work.

    Raises:
        JobsError: SLURM is not there or refuses, or a shard does, or leaves nothing in the folder.
        OSError: the folder cannot be written.
    """
    array = _Array(results.folder / "slurm")
    undone = dict(jobs)
    tries: Counter[str] = Counter()
    try:
        while undone:
            array.look()
            for key in undone.keys() & results.present():
                if (outcome := results.get(key)) is not None:
                    del undone[key]
                    yield key, outcome
            array.raise_error()
            lost = sorted(undone.keys() - array.keys())
            for key in [one for one in lost if tries[one] == _TRIES]:
                lost.remove(key)
                del undone[key]
                yield key, Outcome(0, None, f"its shard was lost {_TRIES} times; {array.last_words(key)}")
            if lost:
                if tries[lost[0]]:
                    _warn(f"{len(lost)} jobs are done again: {array.last_words(lost[0])}")
                tries.update(lost)
                parts = [{key: jobs[key] for key in lost[start :: place.shards]} for start in range(place.shards)]
                array.submit([part for part in parts if part], place, begin)
            elif undone:
                time.sleep(_GLANCE_S)
    finally:
        array.cancel(ends_early=bool(undone))


class _Array:
    """The shards of a folder, of this driver and of those before it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last_seen: dict[str, float] = {}
        self._said = {"None", "Priority", "Resources", "BeginTime"}  # why a shard waits, which need not be said
        self._shards: dict[str, list[str]] = {}
        with contextlib.suppress(FileNotFoundError):
            self._shards = json.loads((folder / "shards.json").read_text())

    def look(self) -> None:
        """Ask which shards are waiting or at work; where SLURM does not answer, these are as before.

        Raises:
            JobsError: it does not answer the first question.
        """
        # Of all jobs of this user, as a question about one that SLURM has forgotten is an error.
        done = _run("squeue", "--me", "-h", "-r", "-t", _AT_WORK, "-o", "%i %r")
        if done.returncode and not self._last_seen:
            raise JobsError(f"SLURM does not answer, so the shards at work are not known: {_line(done.stderr)}")
        reasons = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
        if done.returncode:
            reasons = dict.fromkeys(self._last_seen, f"it does not answer, and is asked again: {_line(done.stderr)}")
        for shard in reasons.keys() & self._shards.keys():
            self._last_seen[shard] = time.monotonic()
            if reasons[shard] not in self._said:
                self._said.add(reasons[shard])
                _warn(f"SLURM says of shard {shard}: {reasons[shard]}")

    def keys(self) -> set[str]:
        """Return the jobs that a shard has, or had until a moment ago."""
        return {key for shard in self._at_work() for key in self._shards[shard]}

    def submit(self, parts: list[dict[str, Job]], place: Place, begin: Job | None) -> None:
        """Give each part to a shard of a new array."""
        submitit = importlib.import_module("submitit")

        executor = submitit.SlurmExecutor(self._folder)
        # Without a time of its own, submitit would ask for 5 minutes.
        executor.update_parameters(
            job_name="jaxarc", time=None, wckey=None, use_srun=False, additional_parameters=dict(place.options)
        )
        same = (str(self._folder.parent), begin, place.processes)
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # it prints what it raises
                shards = executor.map_array(functools.partial(do_shard, *same), parts)
        except submitit.core.utils.FailedJobError as error:
            raise JobsError(f"SLURM refuses: {_line(error)}") from error
        except OSError as error:
            error.filename = error.filename or str(self._folder)  # which pickle does not say
            raise
        for shard, part in zip(shards, parts, strict=True):
            self._shards[shard.job_id] = list(part)
            self._last_seen[shard.job_id] = time.monotonic()
        write_whole(self._folder / "shards.json", json.dumps(self._shards).encode())

    def raise_error(self) -> None:
        """Raise what a shard of this driver ended with."""
        for shard in self._last_seen:
            with contextlib.suppress(FileNotFoundError):
                raise JobsError((self._folder / f"{shard}.error").read_text())

    def last_words(self, key: str) -> str:
        """Return the last line that the last shard of a job has printed.

        Raises:
            JobsError: there is no such file.
        """
        shard = next(one for one in reversed(self._shards) if key in self._shards[one])
        log = self._folder / f"{shard}_0_log.err"
        if not log.exists():
            raise JobsError(
                f"shard {shard} left nothing in {self._folder}: its node cannot write there, or it was canceled before "
                "it began; name a folder on a disk that all nodes see"
            )
        lines = log.read_text(errors="replace").strip().splitlines()
        return f"shard {shard}: {lines[-1] if lines else f'it printed nothing; is there space in {self._folder}?'}"

    def cancel(self, *, ends_early: bool) -> None:
        """End the shards that there are, one of which SLURM may have started again for nothing."""
        left = self._at_work()
        if left and (done := _run("scancel", *left)).returncode and ends_early:
            _warn(f"shards {', '.join(left)} stay at work, and the same command finds them: {_line(done.stderr)}")

    def _at_work(self) -> list[str]:
        now = time.monotonic()
        return [shard for shard, seen in self._last_seen.items() if now - seen < _PATIENCE_S]


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _warn(words: str) -> None:
    warnings.warn(words, ShardWarning, 3)


def _line(said: object) -> str:
    return " ".join(str(said).split())


def do_shard(folder: str, begin: Job | None, processes: int | None, jobs: Mapping[str, Job]) -> None:
    """Do a part of the jobs on this node, as far as they are not done, and write the outcome of each."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # submitit lets these pass, or ends its job before its time
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    results = Results(Path(folder))
    with Caught() as caught:
        results.require_same_code()
        left = {key: job for key, job in jobs.items() if results.get(key) is None}
        for key, outcome in do_in_processes(left, processes or host_cores(), begin):
            results.put(key, outcome)
    if caught.error is not None:
        shard = importlib.import_module("submitit").JobEnvironment().job_id
        text = f"shard {shard} on {os.environ.get('SLURMD_NODENAME', platform.node())}: {caught.error}"
        write_whole(Path(folder) / "slurm" / f"{shard}.error", text.encode())
