"""Jobs on a SLURM cluster: shards of an array, each of which does its part on its node and writes the outcomes itself.

The driver looks for files and asks ``squeue`` which shards there are, as ``sacct`` knows nothing where accounting is
off:

    folder/KEY.json            an outcome
    folder/slurm/shards.json   {"17_0": [KEY, ...], "17_1": ...}, by which a driver that was killed finds its array
    folder/slurm/17_0.error    why a shard gave up
    folder/slurm/17_0_0_log.*  what it printed
"""

import contextlib
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
from typing import Any, Final

from jaxarc.errors import Caught, JaxarcWarning
from jaxarc.files import write_whole
from jaxarc.jobs.cores import host_cores
from jaxarc.jobs.job import Job, JobsError, Outcome
from jaxarc.jobs.local import Processes
from jaxarc.jobs.results import Results

_TRIES: Final = 3  # of a job in shards that are lost
_GLANCE_S: Final = 1.0  # between two looks
_PATIENCE_S: Final = 10.0  # until the last files of a shard that has ended are seen over a network
_AT_WORK: Final = "PENDING,CONFIGURING,RUNNING,SUSPENDED,REQUEUED,RESIZING,SIGNALING,STAGE_OUT,STOPPED"


class ShardWarning(JaxarcWarning):
    """A shard on another machine was lost, or cannot start."""


def do_on_slurm(
    jobs: Mapping[str, Job],
    shards: int,
    processes: int | None,
    options: Mapping[str, str],
    begin: Job | None,
    results: Results,
) -> Iterator[tuple[str, Outcome]]:
    """Yield the outcome of each job by its key; leaving cancels the array, while a kill leaves it at work.

    Raises:
        JobsError: SLURM is not there or refuses, or a shard does.
        OSError: the folder cannot be written.
    """
    array = _Array(results.folder / "slurm", options)
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
                    warnings.warn(f"{len(lost)} jobs are done again: {array.last_words(lost[0])}", ShardWarning, 2)
                tries.update(lost)
                parts = [{key: jobs[key] for key in lost[start::shards]} for start in range(min(shards, len(lost)))]
                array.submit(parts, results, begin, processes)
            elif undone:
                time.sleep(_GLANCE_S)
    finally:
        array.cancel()


class _Array:
    """The shards of a folder, of this driver and of those before it."""

    def __init__(self, folder: Path, options: Mapping[str, str]) -> None:
        self._folder = folder
        self._options = options
        self._last_seen: dict[str, float] = {}
        self._reasons = {"None", "Priority", "Resources", "BeginTime"}  # why a shard waits, which need not be said
        self._shards: dict[str, list[str]] = {}
        with contextlib.suppress(FileNotFoundError):
            self._shards = json.loads((folder / "shards.json").read_text())

    def look(self) -> None:
        """Ask which shards are waiting or at work; where SLURM does not answer, these are as before."""
        # Of all jobs of this user, as a question about one that SLURM has forgotten is an error.
        command = ["squeue", "--me", "-h", "-r", "-t", _AT_WORK, "-o", "%i %r"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        reasons = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
        for shard in reasons.keys() & self._shards.keys() if done.returncode == 0 else list(self._last_seen):
            self._last_seen[shard] = time.monotonic()
            if (why := reasons.get(shard, "None")) not in self._reasons:
                self._reasons.add(why)
                warnings.warn(f"SLURM says of shard {shard}: {why}", ShardWarning, 2)

    def keys(self) -> set[str]:
        """Return the jobs that a shard has, or had until a moment ago."""
        now = time.monotonic()
        held = [shard for shard, seen in self._last_seen.items() if now - seen < _PATIENCE_S]
        return {key for shard in held for key in self._shards[shard]}

    def submit(self, parts: list[dict[str, Job]], results: Results, begin: Job | None, processes: int | None) -> None:
        """Give each part to a shard of a new array."""
        submitit = importlib.import_module("submitit")

        executor = submitit.SlurmExecutor(self._folder)
        # Without a time of its own, submitit would ask for 5 minutes.
        executor.update_parameters(
            job_name="jaxarc", time=None, wckey=None, use_srun=False, additional_parameters=dict(self._options)
        )
        given = [[str(results.folder)] * len(parts), parts, [begin] * len(parts), [processes] * len(parts)]
        try:
            with contextlib.redirect_stderr(io.StringIO()):  # it prints what it raises
                shards = executor.map_array(do_shard, *given)
        except (submitit.core.utils.FailedJobError, OSError) as error:
            raise JobsError(f"SLURM refuses: {' '.join(str(error).split())}") from error
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
        """Return the last line that the last shard of a job has printed."""
        shard = next(one for one in reversed(self._shards) if key in self._shards[one])
        text = ""
        with contextlib.suppress(OSError):
            text = (self._folder / f"{shard}_0_log.err").read_text(errors="replace").strip()
        words = text.splitlines()[-1] if text else f"it wrote nothing: can its node read {self._folder}?"
        return f"shard {shard}: {words}"

    def cancel(self) -> None:
        """End the shards that there are."""
        now = time.monotonic()
        left = [shard for shard, seen in self._last_seen.items() if now - seen < _PATIENCE_S]
        if left:
            subprocess.run(["scancel", *left], capture_output=True, check=False)


def do_shard(folder: str, jobs: Mapping[str, Job], begin: Job | None, processes: int | None) -> None:
    """Do a part of the jobs on this node, as far as they are not done, and write the outcome of each."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # submitit lets these pass, or ends its job before its time
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
    results = Results(Path(folder))
    with Caught() as caught:
        results.require_same_code()
        left = {key: job for key, job in jobs.items() if results.get(key) is None}
        keys = list(left)
        with Processes(processes or host_cores(), begin) as workers:
            for outcome in workers.run(list(left.values())):
                results.put(keys[outcome.job], outcome)
    if caught.error is not None:
        shard = _id_of(os.environ)
        text = f"shard {shard} on {os.environ.get('SLURMD_NODENAME', platform.node())}: {caught.error}"
        write_whole(Path(folder) / "slurm" / f"{shard}.error", text.encode())


def _id_of(environment: Mapping[str, Any]) -> str:
    array = environment.get("SLURM_ARRAY_JOB_ID")
    return environment["SLURM_JOB_ID"] if array is None else f"{array}_{environment['SLURM_ARRAY_TASK_ID']}"
