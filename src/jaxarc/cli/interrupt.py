"""Ctrl-C and SIGTERM as a wish to stop at the next good moment."""

import os
import signal
from types import FrameType
from typing import Any, Final

_LEARNED: Final = "what was learned is kept"


class StopWish:
    """Inside this context the first signal sets ``is_set``; a second one raises ``KeyboardInterrupt``.

    Args:
        promise: what becomes of what was done so far, for the notice at the first signal.
    """

    def __init__(self, promise: str = _LEARNED) -> None:
        self.is_set = False
        self._notice = f"\nStopping: {promise}. Ctrl-C again quits at once.\n".encode()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopWish":
        self._before = {number: signal.signal(number, self._note) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.is_set:
            raise KeyboardInterrupt
        self.is_set = True
        os.write(2, self._notice)  # the one way to write that is safe in the middle of anything
