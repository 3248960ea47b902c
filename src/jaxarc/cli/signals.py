"""How a command ends at a signal, at any moment, and how together with the other processes of its run."""

import contextlib
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final, NoReturn

_LEARNED: Final = "what was learned is kept"
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)
_LEAVE_LINE: Final = b"\x1b[?25h\n"  # a live line has hidden the cursor
_FLUSH_SECONDS: Final = 1.0  # a reader of our output that does not read must not hold up the end

_heard = threading.Event()  # a signal
_stops: "list[GracefulStop]" = []  # those inside of whose context this process is
_handled: list[Callable[[int, FrameType | None], Any]] = []  # what signals call
_ensured: list[Callable[[], None]] = []  # what is done before this process ends, however it ends


@contextlib.contextmanager
def signals_end_the_command() -> Iterator[None]:
    """End the process at the first SIGINT or SIGTERM, with 130 or 143, also amid a compilation.

    While XLA compiles, Python handles no signal, and a ``KeyboardInterrupt`` that is raised inside JAX may be lost. So
    a thread waits for signals, whose numbers C writes into a pipe at once, and ends the process; a
    :class:`GracefulStop` lets it go on once.

    After a signal, and after an error while other processes wait for this one, the process does not take the usual way
    out of the interpreter: that frees what threads of XLA work with, which ended in a segmentation fault, or waits for
    the processes that wait for it.

    Without effect outside of the main thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    reader, writer = os.pipe()
    with contextlib.suppress(AttributeError):  # Windows, before Python 3.12
        os.set_blocking(writer, False)
    threading.Thread(target=_listen, args=(reader,), daemon=True).start()
    with _handling(lambda number, frame: None, writer):
        try:
            yield
        finally:
            error = sys.exception()
            if _heard.is_set() or (error is not None and _is_distributed()):
                if not isinstance(error, SystemExit | None) and not _heard.is_set():
                    traceback.print_exception(error)
                code = error.code if isinstance(error, SystemExit) else int(error is not None)
                _end(code if isinstance(code, int) else int(code is not None))
    os.close(writer)  # which ends the thread


def _listen(reader: int) -> None:
    while heard := os.read(reader, 1):
        _heard.set()
        if not (_stops and _stops[-1].goes_on()):
            _end(128 + heard[0])
    os.close(reader)


class GracefulStop:
    """Inside this context a signal sets ``is_set`` once there is something to keep; the next one ends the command.

    Args:
        promise: what is kept of the work so far, for the notice at the first signal.
        keeps: whether there is something to keep already; until then, the first signal ends the command.
    """

    def __init__(self, promise: str = _LEARNED, *, keeps: bool = True) -> None:
        self.is_set = False
        self.keeps = keeps
        self._notice = f"\nStopping: {promise}. Ctrl-C again quits at once.\n".encode()

    def __enter__(self) -> "GracefulStop":
        _stops.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _stops.remove(self)

    def goes_on(self) -> bool:
        """Note a signal, and return whether the command goes on to its own end."""
        if self.is_set or not self.keeps:
            return False
        self.is_set = True
        os.write(2, self._notice)  # not by print, which the main thread may be inside of
        return True


@contextlib.contextmanager
def signals_interrupt() -> Iterator[None]:
    """Let the first SIGINT or SIGTERM raise ``KeyboardInterrupt`` inside the block: Python of a user, or a server.

    The next one ends the process, so that code which catches everything cannot hold it.
    """

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        nonlocal count
        count += 1
        _heard.set()
        if count > 1:
            _end(128 + number)
        raise KeyboardInterrupt

    count = 0
    with _handling(interrupt, -1):  # the thread that listens hears of nothing: a server has handlers of its own
        yield


def _forget_in_fork() -> None:
    """Let a forked process, such as of a solver's pool, end at signals as any other, and without a word to this one."""
    if _handled:
        signal.set_wakeup_fd(-1)
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)


with contextlib.suppress(AttributeError):  # Windows, which has no forks
    os.register_at_fork(after_in_child=_forget_in_fork)


@contextlib.contextmanager
def _handling(handler: Callable[[int, FrameType | None], Any], wakeup: int) -> Iterator[None]:
    """Handle signals inside the block, and let C write their numbers into a pipe, or into none."""
    descriptor = signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    before = {number: signal.signal(number, handler) for number in _SIGNALS}
    _handled.append(handler)
    try:
        yield
    finally:
        _handled.remove(handler)
        for number, former in before.items():
            signal.signal(number, former)
        signal.set_wakeup_fd(descriptor)


@contextlib.contextmanager
def ensured(action: Callable[[], None]) -> Iterator[None]:
    """Do something when the block is left, also if a signal ends the process inside of it."""
    _ensured.append(action)
    try:
        yield
    finally:
        _ensured.remove(action)
        action()


def _end(code: int) -> NoReturn:
    """End this process without the usual way out of the interpreter; from any thread."""
    flushing = threading.Thread(target=_flush, daemon=True)
    flushing.start()
    flushing.join(_FLUSH_SECONDS)
    for action in reversed(_ensured):
        action()
    if sys.stderr.isatty():
        os.write(2, _LEAVE_LINE)
    os._exit(code)


def _flush() -> None:
    with contextlib.suppress(OSError, ValueError, RuntimeError):  # no reader any more, closed, or amid a write
        sys.stdout.flush()
        sys.stderr.flush()


def _is_distributed() -> bool:
    """Whether this is one of several processes; a process that did not load ``jaxarc.parallel`` is alone."""
    if "jaxarc.parallel" not in sys.modules:
        return False
    from jaxarc.parallel import is_distributed

    return is_distributed()
