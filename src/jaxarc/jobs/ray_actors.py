"""Jobs on Ray: actors that have one job each, with a process of their own for it; this process writes the outcomes.

So no disk is shared, and a node that is lost costs the jobs that it was doing.
"""

import contextlib
import importlib
import logging
import os
import platform
import socket
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from jaxarc.errors import Caught
from jaxarc.files import code_digest
from jaxarc.jobs.job import Job, JobsError, Outcome, Place
from jaxarc.jobs.local import Processes

_TRIES: Final = 3  # of a job in actors that are lost
_CONNECT_S: Final = 10.0


def do_on_ray(jobs: Mapping[str, Job], place: Place, begin: Job | None) -> Iterator[tuple[str, Outcome]]:
    """Yield the outcome of each job by its key, from as many actors as shards, each on as many cores as processes.

    The cluster is that of ``RAY_ADDRESS``, else the one that runs on this machine, else one that is started here.

    Raises:
        JobsError: there is no cluster at the address, or an actor cannot work.
    """
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to Ray's makers
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # it warns otherwise
    ray = importlib.import_module("ray")
    is_ours = not ray.is_initialized()
    address = os.environ.get("RAY_ADDRESS", "")
    try:
        if is_ours:
            _require_listener(address)
        ray.init(ignore_reinit_error=True, log_to_driver=False, logging_level=logging.ERROR)
    except OSError as error:
        words = " ".join(str(error).split())
        raise JobsError(f"Ray does not answer: {words}; correct RAY_ADDRESS={address}") from error
    actor_of = ray.remote(num_cpus=place.processes or 1)(_Hand)
    waiting = list(jobs)
    tries: Counter[str] = Counter()
    idle: list[Any] = []
    at_work: dict[Any, tuple[str, Any]] = {}
    try:
        while waiting or at_work:
            while waiting and len(at_work) < place.shards:
                key = waiting.pop(0)
                actor = idle.pop() if idle else actor_of.remote(begin, code_digest(), os.getcwd())
                at_work[actor.do.remote(jobs[key])] = key, actor
            while idle:  # of no use any more, and another may wait for its core
                ray.kill(idle.pop())
            ((ready, *_), _) = ray.wait(list(at_work), num_returns=1)
            key, actor = at_work.pop(ready)
            try:
                outcome = ray.get(ready)
            except ray.exceptions.RayActorError as error:
                tries[key] += 1
                if tries[key] < _TRIES:
                    waiting.insert(0, key)
                else:
                    yield key, Outcome(0, None, f"its actor was lost {_TRIES} times: {' '.join(str(error).split())}")
            else:
                idle.append(actor)
                if isinstance(outcome, str):
                    raise JobsError(outcome)
                yield key, outcome
    finally:
        for actor in (*idle, *(actor for _, actor in at_work.values())):
            ray.kill(actor)
        if is_ours:
            ray.shutdown()


def _require_listener(address: str) -> None:
    """Refuse an address at which nothing listens, for which Ray would wait for many minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_S).close()


class _Hand:
    """An actor, which works in the folder of the command where its node has that, as relative paths mean."""

    def __init__(self, begin: Job | None, code: str, folder: str) -> None:
        with contextlib.suppress(OSError):
            os.chdir(folder)
        self._processes = Processes(1, begin)
        self._code = code

    def do(self, job: Job) -> Outcome | str:
        """Return the outcome of a job, or why this node does none."""
        host = platform.node()
        if self._code != code_digest():
            return f"node {host} has another jaxarc, {code_digest()} and not {self._code}; install the same one on all"
        with Caught() as caught:
            return next(self._processes.run([job]))
        return f"node {host}: {caught.error}"
