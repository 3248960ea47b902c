"""How a command ends: by signals at any moment, and together with the other processes of its run."""

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

_stops: "list[GracefulStop]" = []  # those inside of whose context this process is
_ensured: list[Callable[[], None]] = []  # what is done before this process ends, however it ends
_noted: list[int] = []  # signals that Python has handled


class signals_end_the_command:  # noqa: N801  a context manager, as those of contextlib
    """Ends the process at the first SIGINT or SIGTERM, with 130 or 143, also amid a compilation.

    While XLA compiles, Python handles no signal, and a ``KeyboardInterrupt`` that is raised inside JAX may be lost. So
    a thread waits for signals, whose numbers C writes into a pipe at once, and ends the process. A
    :class:`GracefulStop`, or a server that has handlers of its own, takes the signals instead; the block then ends as
    it pleases. After a signal the process never takes the usual way out of the interpreter: that frees what threads of
    XLA work with, and ended in a segmentation fault.

    Without effect outside of the main thread.
    """

    def __enter__(self) -> None:
        self._before: dict[int, Any] = {}
        if threading.current_thread() is not threading.main_thread():
            return
        self._heard, self._written = os.pipe()
        os.set_blocking(self._written, False)
        threading.Thread(target=self._listen, daemon=True).start()
        self._fd_before = signal.set_wakeup_fd(self._written, warn_on_full_buffer=False)
        self._before = {number: signal.signal(number, _note) for number in _SIGNALS}

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if not self._before:
            return
        if _noted:
            code = error.code if isinstance(error, SystemExit) else int(error is not None)
            _end(code if isinstance(code, int) else int(code is not None))
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._fd_before)
        os.close(self._written)  # which ends the thread

    def _listen(self) -> None:
        while heard := os.read(self._heard, 1):
            handler = signal.getsignal(heard[0])
            if handler is _note or any(handler == stop.note and stop.hear() for stop in _stops):
                _end(128 + heard[0])
        os.close(self._heard)


def _note(number: int, frame: FrameType | None) -> None:
    _noted.append(number)


class GracefulStop:
    """Inside this context a signal sets ``is_set`` once there is something to keep; the next one ends the command.

    Args:
        promise: what is kept of the work so far, for the notice at the first signal.
        keeps: whether there is something to keep already; until then, the first signal ends the command.
    """

    def __init__(self, promise: str = _LEARNED, *, keeps: bool = True) -> None:
        self.is_set = False
        self.keeps = keeps
        self._num_heard = 0  # by the thread, which hears of a signal before ``note``
        self._notice = f"\nStopping: {promise}. Ctrl-C again quits at once.\n".encode()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "GracefulStop":
        self._before = {number: signal.signal(number, self.note) for number in _SIGNALS}
        _stops.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _stops.remove(self)
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def hear(self) -> bool:
        """Count a signal, and return whether it is one that ends the command."""
        self._num_heard += self.keeps
        return not self.keeps or self._num_heard > 1

    def note(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        _note(number, frame)
        if self.is_set or not self.keeps:
            _end(128 + number)
        self.is_set = True
        os.write(2, self._notice)  # a signal may arrive inside print, which must not be entered twice


@contextlib.contextmanager
def signals_interrupt() -> Iterator[None]:
    """Let the first SIGINT or SIGTERM raise ``KeyboardInterrupt`` inside the block: Python of a user, or a server.

    The next one ends the process, so that code which catches everything cannot hold it.
    """
    heard: list[int] = []

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        _note(number, frame)
        heard.append(number)
        if len(heard) > 1:
            _end(128 + number)
        raise KeyboardInterrupt

    # The thread that listens would take the handler that is set when it looks, which may be the one after the block;
    # so it hears of no signal inside of it.
    descriptor = signal.set_wakeup_fd(-1)
    before = {number: signal.signal(number, interrupt) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
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


class left_at_once:  # noqa: N801  a context manager, as those of contextlib
    """Ends a process at once if any error leaves the block while other processes wait for it.

    The usual way out of the interpreter would first wait for the other processes, which wait for this one.
    """

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error is None or not _is_distributed():
            return
        if isinstance(error, SystemExit):
            leave(error.code if isinstance(error.code, int) else int(error.code is not None))
        traceback.print_exception(error)
        leave(1)


def leave(code: int) -> NoReturn:
    """End this process with an exit code; at once if other processes might wait for it."""
    if _is_distributed():
        _end(code)
    sys.exit(code)


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
