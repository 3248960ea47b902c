"""Processes in which an expert works, because threads of one Python share one core and cannot be interrupted."""

import base64
import contextlib
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from typing import Any

from jaxarc.experts.expert import Expert
from jaxarc.experts.traces.trace import (
    Caught,
    Failure,
    RecordingFailedError,
    TimeLimitError,
    Trace,
    WorkerDiedError,
    failure_of,
)
from jaxarc.experts.traces.work_unit import WorkUnit


class Workers:
    """Some processes for one expert, each started when there is work for it; use as a context, which ends them.

    They are started as programs of their own and not by :mod:`multiprocessing`: its ways either copy a process in which
    JAX's threads run, or import the caller's main module, and with it JAX, anew in each.

    Raises:
        ValueError: ``count`` is below 1, the time limit is not above 0, or the expert cannot be pickled.
    """

    def __init__(self, expert: Expert, count: int, time_limit_s: float | None = None):
        if count < 1:
            raise ValueError(f"processes must be at least 1, got {count}; give how many there shall be")
        if time_limit_s is not None and not time_limit_s > 0:
            raise ValueError(f"time_limit_s must be above 0, got {time_limit_s}; give seconds for one pair")
        self.count = count
        self._time_limit_s = time_limit_s
        self._first_line = _first_line(expert)
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        self._all: list[_Worker] = []

    def __enter__(self) -> "Workers":
        self._all = [_Worker(self._first_line) for _ in range(self.count)]
        for worker in self._all:
            self._idle.put(worker)
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._all:
            worker.stop()

    def solve(self, unit_hash: str, text: str) -> Trace | Failure:
        """Let the next idle process solve a unit, and wait; may be called from several threads at once."""
        worker = self._idle.get()
        try:
            return self._ask(worker, unit_hash, text)
        finally:
            self._idle.put(worker)

    def _ask(self, worker: "_Worker", unit_hash: str, text: str) -> Trace | Failure:
        try:
            answer = worker.ask(text, self._time_limit_s)
        except (TimeLimitError, WorkerDiedError) as error:
            return failure_of(unit_hash, error)
        if "error" in answer:
            return Failure(unit_hash, *answer["error"])
        actions = tuple(tuple(action) for action in answer["actions"])  # checked by the worker
        return Trace(unit_hash, WorkUnit.from_json(text).spec, actions)


class _Worker:
    """One process, started when it is asked and there is none."""

    def __init__(self, first_line: str):
        self._first_line = first_line
        self._process: subprocess.Popen[str] | None = None

    def ask(self, text: str, time_limit_s: float | None) -> dict[str, Any]:
        """Send a unit and wait for the answer.

        Raises:
            TimeLimitError: there was none in time; the process is ended and another started.
            WorkerDiedError: the process ended.
        """
        process = self._process or self._start()
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            _kill(process)

        timer = threading.Timer(time_limit_s, end) if time_limit_s is not None else None
        if timer is not None:
            timer.start()
        try:
            line = _exchange(process, text)
        finally:
            if timer is not None:
                timer.cancel()
                timer.join()
        if line and not is_late.is_set():
            return json.loads(line)
        self.stop()
        if is_late.is_set():
            raise TimeLimitError(f"no answer within {time_limit_s:g} s; give more time, or mend the expert's loop")
        raise WorkerDiedError("the process of the expert ended; look at what it printed")

    def stop(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            _kill(self._process)
            self._process.communicate()
            self._process = None

    def _start(self) -> "subprocess.Popen[str]":
        """Start a process and wait until the expert is loaded, which is no part of its time.

        Raises:
            RecordingFailedError: it cannot be loaded there.
        """
        command = [sys.executable, "-P", "-m", "jaxarc.experts.traces.worker"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", process_group=0
        )
        answer = _exchange(self._process, self._first_line)
        if not answer:
            raise RecordingFailedError("a worker process did not start; look at what it printed")
        if "error" in (loaded := json.loads(answer)):
            kind, message = loaded["error"]
            raise RecordingFailedError(
                f"the expert cannot be loaded in another process ({kind}: {message}); define it in a module that can "
                "be imported, or give neither processes nor a time limit"
            )
        return self._process


def _exchange(process: "subprocess.Popen[str]", text: str) -> str:
    """Send a line and return the next line of the process, "" when it has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(text + "\n")
        process.stdin.flush()
        return process.stdout.readline()
    except BrokenPipeError:
        return ""


def _kill(process: "subprocess.Popen[str]") -> None:
    """End a worker and what its expert started: a fork of it would keep the pipe open, and who reads it waiting."""
    if os.name == "posix":
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended
            os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()


def _first_line(expert: Expert) -> str:
    with Caught() as caught:
        return base64.b64encode(pickle.dumps((sys.path, pickle.dumps(expert)))).decode()
    raise ValueError(
        f"the expert {expert.name!r} cannot be sent to another process ({caught.error}); define its class in a module, "
        "or give neither processes nor a time limit"
    ) from caught.error
