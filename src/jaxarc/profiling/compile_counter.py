"""Count what is compiled, by function, and say why."""

import threading
import time
from collections import Counter
from contextlib import ExitStack
from typing import Final, Self

import jax

from jaxarc.profiling.compile_log import CompileLog, plain_name

_TRACED: Final = "/jax/core/compile/jaxpr_trace_duration"
_COMPILED: Final = "/jax/core/compile/backend_compile_duration"
_CLOCK_STEP: Final = 1e-3  # seconds; JAX reads the clock just before and after the log does


class CompileCounter:
    """Count the compilations in a ``with`` block by function name, with JAX's own reason for each.

    Operations outside ``jit`` are programs of their own and count under their names (``add``, ``broadcast_in_dim``). A
    program that is read from the persistent cache counts too. A reason compares with one earlier call, which JAX takes
    for the closest; in it ``[0]`` are the arguments by position and ``[1]`` those by name. Nothing is printed, and
    JAX's logging is left as it was. Other threads are counted without a reason.

    Attributes:
        counts: name of a function -> how often it was compiled; 0 for every other name.
        reasons: name of a function -> one reason per compilation.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.reasons: dict[str, list[str]] = {}
        self._log = CompileLog()
        self._explained: dict[str, str] = {}  # traced and not compiled yet
        self._thread = 0
        self._open = ExitStack()

    @property
    def total(self) -> int:
        """All compilations together."""
        return self.counts.total()

    def assert_none(self, *names: str) -> None:
        """Check that nothing was compiled, or none of the functions that are named.

        Raises:
            AssertionError: with the name, count and reasons of every function that was.
        """
        found = [name for name in self.counts if not names or name in names]
        if found:
            listed = "\n".join(self._report(name) for name in found)
            raise AssertionError(
                f"compiled where nothing should be:\n{listed}\n"
                "Call each once before the block, and keep shapes, dtypes and static arguments as they are."
            )

    def __enter__(self) -> Self:
        self.counts.clear()
        self.reasons.clear()
        self._explained.clear()
        self._log = CompileLog()
        self._thread = threading.get_ident()
        with ExitStack() as stack:
            stack.enter_context(self._log.attached())
            jax.monitoring.register_event_duration_secs_listener(self._listen)
            stack.callback(jax.monitoring.unregister_event_duration_listener, self._listen)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _listen(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == _TRACED and self._is_own_thread():
            name = str(kwargs["fun_name"])
            if reason := self._log.reason_of_trace(name, time.time() - duration_secs - _CLOCK_STEP):
                self._explained[name] = reason
        elif event == _COMPILED:
            name = plain_name(str(kwargs["fun_name"]))
            self.counts[name] += 1
            self.reasons.setdefault(name, []).append(self._reason(name))

    def _report(self, name: str) -> str:
        return "\n    ".join([f"  {name}, {self.counts[name]} x:", *self.reasons[name]])

    def _reason(self, name: str) -> str:
        if not self._is_own_thread():
            return "compiled by another thread, whose log is not read"
        reason = self._explained.pop(name, "") or self._log.reason_of_inner_trace(name)
        reason = reason or "traced before, or an operation outside jit"
        return f"{reason}; compiled for {self._log.arguments.pop(name, 'unknown arguments')}"

    def _is_own_thread(self) -> bool:
        return threading.get_ident() == self._thread
