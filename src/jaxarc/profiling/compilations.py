"""Count what is compiled, with JAX's own text of why it was traced; and keep it for the next process."""

import logging
import re
import threading
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

import jax
from jax.experimental.compilation_cache import compilation_cache as jax_cache

from jaxarc.files import COMPILED_BYTES, compiled_folder

_COMPILED: Final = "/jax/core/compile/backend_compile_duration"
_FLAG: Final = "jax_explain_cache_misses"
_TRACED_BECAUSE: Final = "TRACING CACHE MISS"
_EXPLANATIONS: Final = (  # how the messages begin that the flag turns on
    _TRACED_BECAUSE,
    "PERSISTENT COMPILATION CACHE MISS",
    "Writing ",
    "Not writing persistent cache entry",
)
_LOGS_REASONS: Final = jax.__version_info__ >= (0, 10)  # before, JAX may fail while it explains
_NO_TEXT: Final = "JAX logged no reason: traced before, or an operation outside jit" + (
    "" if _LOGS_REASONS else f"; JAX {jax.__version__} is not asked for any, 0.10 is"
)
_LONGEST: Final = 1000  # characters of a reason in an error; static arguments may fill pages


class CompileCounter:
    """Count the compilations in a ``with`` block by function name, with JAX's own text of why each was traced.

    Operations outside ``jit`` are programs of their own and count under their names (``add``, ``broadcast_in_dim``). A
    program that is read from the persistent cache counts too. Compilations of other threads count without a reason. The
    block prints nothing, and JAX's logging is as before afterwards.

    A reason holds all that JAX logged since the compilation before: the function itself comes first, then those that it
    calls. JAX compares with one earlier call, which it takes for the closest; in its text ``[0]`` are the arguments by
    position and ``[1]`` those by name. JAX before 0.10 may fail while it explains, so there is no reason there.

    Attributes:
        counts: name of a function -> how often it was compiled; 0 for every other name.
        reasons: name of a function -> one reason per compilation.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.reasons: dict[str, list[str]] = {}
        self._log = _ExplanationLog()
        self._thread = 0
        self._open = ExitStack()

    @property
    def total(self) -> int:
        """All compilations together."""
        return self.counts.total()

    def assert_none(self, *names: str) -> None:
        """Check that nothing was compiled, or none of the named functions.

        Raises:
            AssertionError: lists every function that was compiled, with its count and reasons.
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
        self._log = _ExplanationLog()
        self._thread = threading.get_ident()
        with ExitStack() as stack:
            # Listener and log are taken back by the stack, also where something fails
            # halfway; ``pop_all`` hands that to __exit__.
            self._log.attach(stack)
            jax.monitoring.register_event_duration_secs_listener(self._listen)
            stack.callback(jax.monitoring.unregister_event_duration_listener, self._listen)
            self._open = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _listen(self, event: str, duration_secs: float, **kwargs: str | int) -> None:
        if event == _COMPILED:
            program = str(kwargs["fun_name"])
            found = re.fullmatch(r"\w+\((.*)\)", program)  # "jit(step)" is the program of step
            name = found[1] if found else program
            # Compilations of other threads count, but JAX's explanations on the log cannot
            # be distinguished between threads.
            is_own = threading.get_ident() == self._thread
            reason = self._log.take() if is_own else "compiled by another thread, whose log is not read"
            self.counts[name] += 1
            self.reasons.setdefault(name, []).append(reason)

    def _report(self, name: str) -> str:
        cut = [reason if len(reason) <= _LONGEST else f"{reason[:_LONGEST]} ..." for reason in self.reasons[name]]
        return "\n    ".join([f"  {name}, {self.counts[name]} x:", *cut])


class _ExplanationLog(logging.Handler):
    """Collects JAX's explanations in place of the handlers of its logger, which get all other messages."""

    def __init__(self) -> None:
        super().__init__()
        self._texts: list[str] = []
        self._is_asked_for = False
        self._handlers: list[logging.Handler] = []
        self._propagates = False

    def attach(self, stack: ExitStack) -> None:
        """Replace the handlers of the logger ``jax`` until the stack closes."""
        logger = logging.getLogger("jax")
        self._is_asked_for = getattr(jax.config, _FLAG)
        self._handlers = logger.handlers
        self._propagates = logger.propagate
        stack.callback(setattr, logger, "handlers", logger.handlers)
        stack.callback(setattr, logger, "propagate", logger.propagate)
        logger.handlers = [self]
        logger.propagate = False
        if _LOGS_REASONS:
            stack.enter_context(jax.explain_cache_misses(True))

    def take(self) -> str:
        """Return the reasons since the last call."""
        texts = self._texts
        self._texts = []
        return "\n".join(texts) or _NO_TEXT

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a reason, and pass every other message on, also an explanation that the user asked for."""
        message = record.getMessage()
        # Explanations are on only for this counter; those that the user did not ask for stay out of the user's log.
        if message.startswith(_TRACED_BECAUSE):
            self._texts.append(message)
        if message.startswith(_EXPLANATIONS) and not self._is_asked_for:
            return
        for handler in self._handlers:
            if record.levelno >= handler.level:
                handler.handle(record)
        if self._propagates:
            logging.getLogger().callHandlers(record)


def enable_compilation_cache(directory: str | Path | None = None) -> Path:
    """Switch on JAX's persistent compilation cache for every program, however small or quickly compiled.

    Commands of ``jaxarc`` do so by themselves. Works before and after JAX was used; programs that are compiled already
    are not written. JAX runs the programs in the folder, so it has to be private.

    Args:
        directory: a local folder, made when missing with mode 0700; ``jaxarc/compiled`` in the user's cache folder
            (``XDG_CACHE_HOME``, else ``~/.cache``) when left out. It is kept below 1 GiB.

    Returns:
        The folder.

    Raises:
        CacheFolderError: the folder belongs to another user, or others may write into it.
        OSError: it cannot be made or written, or is no folder.
    """
    folder = compiled_folder(directory)
    jax.config.update("jax_enable_compilation_cache", True)
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_compilation_cache_max_size", COMPILED_BYTES)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)  # -1: a backend may not raise it either
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)  # 1 s by default
    jax_cache.reset_cache()  # otherwise a process that has compiled keeps its first folder, or none
    return folder
