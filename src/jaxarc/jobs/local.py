"""Jobs in processes of this machine, each of which may die or take too long without harm to the others.

A worker is a process of :mod:`multiprocessing` with a pipe of its own. So it is known whose job a death ends, a job may
be sent to the worker in which an earlier one left something, and there is no semaphore, which needs /dev/shm.
"""

import atexit
import contextlib
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from types import ModuleType
from typing import Any, Final

from jaxarc.errors import Caught
from jaxarc.jobs.job import DIED, TIME_LIMIT, Job, JobsError, Outcome

_DEATHS: Final = 2  # of processes with one job, after which it is not done again
_STARTS: Final = 3  # of processes in succession that end by themselves before they are ready
_KILLED_STARTS: Final = 12  # or are killed before
_GLANCE_S: Final = 1.0  # between two returns to Python, which handles Ctrl-C only then on Windows


class Processes:
    """Some processes, each started by its first job; leaving the context ends them, whatever they do.

    They end with this process too, even if that is killed, and leave Ctrl-C to it. What they print goes to stderr.

    Args:
        count: processes side by side.
        begin: done in each before its first job; its time counts for none, and jobs get its result as first argument.

    Raises:
        ValueError: ``count`` is below 1.
    """

    def __init__(self, count: int, begin: Job | None = None) -> None:
        if count < 1:
            raise ValueError(f"processes must be at least 1, got {count}")
        self._begin = begin
        self._workers: list[_Worker | None] = [None] * count
        self._failed_starts = 0.0  # 1 is too many

    def __enter__(self) -> "Processes":
        atexit.register(self._end)  # of a run that nobody reads to its end
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        atexit.unregister(self._end)

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        """Do jobs, and yield the outcome of each as soon as it is known.

        A job whose process dies is done once more. One that exceeds its limit is not, and no other job is lost.

        Raises:
            JobsError: a job cannot be pickled, no process comes up, or ``begin`` raises there.
        """
        waiting = list(range(len(jobs)))
        deaths = [0] * len(jobs)
        while waiting or self._busy():
            for place in range(len(self._workers)):
                self._hand_out(place, jobs, waiting)
            pipes = [worker.pipe for _, worker in self._busy()]
            ends = [worker.deadline - time.monotonic() for _, worker in self._busy()]
            wait(pipes, max(min(_GLANCE_S, *ends), 0.0))
            for place, worker in self._busy():
                index = worker.job
                assert index is not None
                answer = worker.answer()
                if answer:
                    worker.job = None
                    yield Outcome(index, answer[0], None, place)
                elif worker.is_closed:
                    how = self._dismiss(place)
                    deaths[index] += worker.is_at_work
                    weight = 1 / (_KILLED_STARTS if how.startswith("SIG") else _STARTS)
                    self._failed_starts = 0.0 if worker.is_ready else self._failed_starts + weight
                    if self._failed_starts > 0.999:
                        raise JobsError(f"a worker process does not start ({how}); look at what it printed")
                    if deaths[index] == _DEATHS:
                        yield Outcome(index, None, f"{DIED} ({how})", place)
                    else:
                        waiting.insert(0, index)
                elif time.monotonic() > worker.deadline:
                    self._dismiss(place)
                    yield Outcome(index, None, f"{TIME_LIMIT} of {jobs[index].limit_s:g} s", place)

    def _busy(self) -> "list[tuple[int, _Worker]]":
        return [(place, one) for place, one in enumerate(self._workers) if one is not None and one.job is not None]

    def _hand_out(self, place: int, jobs: Sequence[Job], waiting: list[int]) -> None:
        """Give an idle worker a job of its own, else one of no other, else the one that another would do last."""
        worker = self._workers[place]
        if not waiting or (worker is not None and worker.job is not None):
            return
        if worker is None or worker.is_dead():
            self._dismiss(place)
            worker = self._workers[place] = _Worker(self._begin)
        own = (index for index in waiting if jobs[index].home == place)
        free = (index for index in waiting if jobs[index].home is None)
        index = next(own, next(free, waiting[-1]))
        waiting.remove(index)
        worker.take(index, jobs[index])

    def _dismiss(self, place: int) -> str:
        worker, self._workers[place] = self._workers[place], None
        return worker.end() if worker is not None else ""

    def _end(self) -> None:
        for place in range(len(self._workers)):
            self._dismiss(place)


def do_in_processes(jobs: Mapping[str, Job], count: int, begin: Job | None) -> Iterator[tuple[str, Outcome]]:
    """Yield the outcome of each job by its key; see :class:`Processes`."""
    keys = list(jobs)
    with Processes(count, begin) as workers:
        yield from ((keys[done.job], done) for done in workers.run(list(jobs.values())))


class _Worker:
    """A process, seen from the one that started it."""

    def __init__(self, begin: Job | None) -> None:
        # Spawned, as a fork of a process with the threads of JAX may hang; no daemon, which could have no children.
        context = get_context("spawn")
        self.pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other,), daemon=False)
        # A process imports the main module of its parent: JAX, or a script that starts processes again. Ours need none.
        main, sys.modules["__main__"] = sys.modules["__main__"], ModuleType("__main__")
        try:
            self._process.start()
        finally:
            sys.modules["__main__"] = main
        other.close()  # so that the pipe ends with the process
        self.job: int | None = None
        self.deadline = float("inf")
        self.is_ready = False
        self.is_at_work = False
        self.is_closed = False
        self._given: Job | None = None
        self._send(begin)

    def take(self, index: int, job: Job) -> None:
        """Send a job, or keep it until the process is ready."""
        self.job, self._given, self.is_at_work = index, job, False
        if self.is_ready:
            self._start_job(job)

    def answer(self) -> tuple[Any, ...]:
        """Return the answer in a tuple, or an empty one where there is none yet."""
        try:
            while self.pipe.poll():
                said = self.pipe.recv()
                if self.is_ready:
                    return (said,)
                if said is not None:
                    raise JobsError(f"no other process can begin: {said}")
                self.is_ready = True
                if self._given is not None:
                    self._start_job(self._given)
        except (EOFError, OSError):
            self.is_closed = True
        return ()

    def is_dead(self) -> bool:
        return self._process.exitcode is not None

    def end(self) -> str:
        """End the process with all that it started; return how it ended by itself, if it did."""
        if self.is_closed:
            self._process.join(_GLANCE_S)
        code = self._process.exitcode
        how = f"exit code {code}" if code is None or code >= 0 else signal.Signals(-code).name
        assert self._process.pid is not None
        _kill_group(self._process.pid)
        self._process.kill()
        self._process.join()
        self.pipe.close()
        return how

    def _start_job(self, job: Job) -> None:
        self.deadline = float("inf") if job.limit_s is None else time.monotonic() + job.limit_s
        self.is_at_work = True
        self._send(job)

    def _send(self, job: Job | None) -> None:
        try:
            self.pipe.send(job)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise JobsError(
                f"{job and job.function.__qualname__} with its arguments cannot be sent to another process ({error}); "
                "define what it uses in a module"
            ) from error
        except OSError:  # the process is dead, which the next look at its pipe says
            pass


def bringing(value: Any) -> Job:
    """Return a job for ``begin`` that brings a value, whose module another process finds as this one does.

    Raises:
        Exception: the value cannot be pickled.
    """
    return Job(_load, (sys.path, pickle.dumps(value)))


def _load(path: list[str], pickled: bytes) -> Any:
    sys.path[:] = path
    return pickle.loads(pickled)


def _kill_group(leader: int) -> bool:
    """Kill a worker and what it started, whose process group it leads; return whether there is such a group."""
    try:
        os.killpg(leader, signal.SIGKILL)
    except (AttributeError, ProcessLookupError, PermissionError):  # Windows; it does not lead yet, or all have ended
        return False
    return True


def _serve(pipe: Connection) -> None:
    """Begin, and do jobs, as the pipe says, until it ends: the program of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ["OMP_NUM_THREADS"] = "1"  # other processes use the other cores
    os.dup2(2, 1)  # stdout is for the result of the command
    if sys.platform != "win32":
        os.setpgid(0, 0)
        os.set_inheritable(pipe.fileno(), False)  # it ends with this process, whatever that started
        os.register_at_fork(after_in_child=pipe.close)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    given: tuple[Any, ...] = ()
    with Caught() as caught:
        begin = pipe.recv()
        given = () if begin is None else (begin.function(*begin.arguments),)
    with contextlib.suppress(BrokenPipeError):
        pipe.send(None if caught.error is None else f"{type(caught.error).__name__}: {caught.error}")
        while True:
            try:
                job = pipe.recv()
            except (EOFError, OSError):
                return
            pipe.send(job.function(*given, *job.arguments))


def _end_with_parent() -> None:
    """Wait for the end of the process that gave the work, and end this one at once, also amid a job."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    if not _kill_group(os.getpid()):
        os._exit(1)
