"""Ctrl-C and SIGTERM as a wish to stop at the next good moment."""

import os
import signal
from types import FrameType
from typing import Any, Final

_NOTICE: Final = b"\nStopping: what was learned is kept. Ctrl-C again quits at once.\n"


class StopWish:
    """Inside this context the first signal sets ``is_set``; a second one raises ``KeyboardInterrupt``."""

    def __init__(self) -> None:
        self.is_set = False
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
        os.write(2, _NOTICE)  # the one way to write that is safe in the middle of anything
