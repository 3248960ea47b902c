"""How a command ends: Ctrl-C as a request to stop, and several processes that end together."""

import os
import signal
import sys
import traceback
from types import FrameType
from typing import Any, Final, NoReturn

_LEARNED: Final = "what was learned is kept"


class GracefulStop:
    """Inside this context the first signal sets ``is_set``; a second one raises ``KeyboardInterrupt``.

    Args:
        promise: what is kept of the work so far, for the notice at the first signal.
    """

    def __init__(self, promise: str = _LEARNED) -> None:
        self.is_set = False
        self._notice = f"\nStopping: {promise}. Ctrl-C again quits at once.\n".encode()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "GracefulStop":
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.is_set:
            raise KeyboardInterrupt
        self.is_set = True
        os.write(2, self._notice)  # a signal may arrive inside print, which must not be entered twice


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
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _is_distributed() -> bool:
    """Whether this is one of several processes; a process that did not load ``jaxarc.parallel`` is alone."""
    if "jaxarc.parallel" not in sys.modules:
        return False
    from jaxarc.parallel import is_distributed

    return is_distributed()
