"""Worker processes for an expert: threads of one Python share one core and cannot be interrupted.

The parent (:class:`Workers`) starts each process as a program of its own, :func:`main`, which does not import JAX. It
writes lines to the process and reads a line of JSON for each:

    parent -> worker   base64 of a pickled (sys.path, pickled expert)
    worker -> parent   {"ready": true}                  or  {"error": ["ImportError", "..."]}
    parent -> worker   the text of a unit
    worker -> parent   {"actions": [[34, 0, 0, 0, 0]]}  or  {"error": ["CannotSolveError", "..."]}
"""

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
from typing import IO, Any, TypeAlias

from jaxarc.experts.expert import AnyExpert, Caught
from jaxarc.traces.units import RecordingFailedError, TimeLimitError, WorkerDiedError, WorkUnit, solve_unit

Answer: TypeAlias = dict[str, Any]
"""The ``actions`` of a unit, or an ``error``: the name of its class, and its message in one line."""


def solve_text(expert: AnyExpert, text: str) -> Answer:
    """Let an expert solve the unit of a text, and check its actions; an error of any class becomes an answer."""
    with Caught() as caught:
        return {"actions": solve_unit(expert, WorkUnit.from_json(text))}
    return _error_answer(caught.error)


class Workers:
    """Some processes for one expert, each started by its first unit; leaving the context ends them.

    They are programs of their own and not of :mod:`multiprocessing`, which either copies a process in which JAX's
    threads run, or imports the caller's main module, and with it JAX, again in each.

    Raises:
        ValueError: ``count`` is below 1, the time limit is not above 0, or the expert cannot be pickled.
    """

    def __init__(self, expert: AnyExpert, count: int, time_limit_s: float | None = None):
        if count < 1:
            raise ValueError(f"processes must be at least 1, got {count}; give the number of processes")
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

    def solve(self, text: str) -> Answer:
        """Let the next idle process solve the unit of a text, and wait; may be called from several threads at once."""
        # Last in, first out: with fewer units than workers, the ones that run already get them, and no other is
        # started.
        worker = self._idle.get()
        try:
            return worker.ask(text, self._time_limit_s)
        except (TimeLimitError, WorkerDiedError) as error:
            return _error_answer(error)
        finally:
            self._idle.put(worker)


class _Worker:
    """One process, started by the first unit and again by the first unit after its end."""

    def __init__(self, first_line: str):
        self._first_line = first_line
        self._process: subprocess.Popen[str] | None = None

    def ask(self, text: str, time_limit_s: float | None) -> Answer:
        """Send a unit and wait for the answer.

        Raises:
            TimeLimitError: no answer came in time; the process is ended, and the next unit starts another.
            WorkerDiedError: the process ended.
        """
        # The timer kills the process, which closes its pipe and so ends the read below. Whether an empty line means
        # "too late" or "it died": the event decides; an answer that comes as the timer goes off counts as late, since
        # the process is gone. After join() no timer is left that could kill the next process.
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
            raise TimeLimitError(f"no answer within {time_limit_s:g} s; give more time, or fix the expert's loop")
        raise WorkerDiedError("the process of the expert ended; look at what it printed")

    def stop(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            _kill(self._process)
            self._process.communicate()
            self._process = None

    def _start(self) -> "subprocess.Popen[str]":
        """Start a process and wait until the expert is loaded; the time limit does not include this.

        Raises:
            RecordingFailedError: the expert cannot be loaded there.
        """
        # Not "-m": the package imports this module, which "-m" would then import a second time, with a warning.
        command = [sys.executable, "-P", "-c", "from jaxarc.traces import workers; workers.main()"]
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
                "be imported, or record with strategy='sequential'"
            )
        return self._process


def _exchange(process: "subprocess.Popen[str]", text: str) -> str:
    """Send a line and return the next line of the process, or "" if it has ended."""
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(text + "\n")
        process.stdin.flush()
        return process.stdout.readline()
    except BrokenPipeError:
        return ""


def _kill(process: "subprocess.Popen[str]") -> None:
    """End a worker and the processes that its expert started: a fork of it would keep the pipe open."""
    try:
        # The worker leads a process group of its own, so one signal reaches it and all that its expert started.
        with contextlib.suppress(ProcessLookupError, PermissionError):  # it has ended
            os.killpg(process.pid, signal.SIGKILL)
    except AttributeError:  # Windows
        process.kill()


def _first_line(expert: AnyExpert) -> str:
    with Caught() as caught:
        # Pickled twice: the worker sets sys.path before it loads the expert, whose module may be found only there.
        # Base64 has no line breaks, and so fits one line.
        return base64.b64encode(pickle.dumps((sys.path, pickle.dumps(expert)))).decode()
    raise ValueError(
        f"the expert {expert.name!r} cannot be sent to another process ({caught.error}); define its class in a module, "
        "or record with strategy='sequential'"
    ) from caught.error


def main() -> None:
    """Answer lines until the parent closes the pipe; the program of a worker process."""
    with contextlib.suppress(BrokenPipeError):  # the parent has ended
        _serve()


def _serve() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides when to end
    # Descriptors 0 and 1 are the pipes. Copies of them carry units and answers, and the numbers 0 and 1 themselves,
    # which an expert's own code uses, are pointed at nothing and at the error stream.
    units = os.dup(0)
    with open(os.devnull, "rb") as null:
        os.dup2(null.fileno(), 0)  # an expert, or a program that it starts, must not read the units
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)  # what an expert prints must not come between the answers
        # A thread reads ahead, so that the end of the pipe is noticed while the expert is at work.
        lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=_read_lines, args=(units, lines), daemon=True).start()
        expert = _load_expert(lines.get(), answers)
        while True:
            _write(answers, solve_text(expert, lines.get()))


def _read_lines(units: int, lines: "queue.SimpleQueue[str]") -> None:
    """Pass on the lines. At their end the parent has ended: end this process even while its expert is at work."""
    with os.fdopen(units, encoding="utf-8") as texts:
        for line in texts:
            lines.put(line)
    os._exit(0)


def _load_expert(line: str, answers: IO[str]) -> AnyExpert:
    with Caught() as caught:
        path, pickled = pickle.loads(base64.b64decode(line))
        sys.path[:] = path
        expert = pickle.loads(pickled)
        _write(answers, {"ready": True})
        return expert
    _write(answers, _error_answer(caught.error))
    sys.exit(1)


def _error_answer(error: BaseException | None) -> Answer:
    return {"error": (type(error).__name__, " ".join(str(error).split()))}


def _write(answers: IO[str], answer: Answer) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
