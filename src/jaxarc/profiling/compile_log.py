"""What JAX logs while it traces and compiles: why a function is traced anew, and for which arguments."""

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import jax

_LOGGERS: Final = (
    "jax._src.interpreters.partial_eval",
    "jax._src.interpreters.pxla",
    "jax._src.dispatch",
    "jax._src.compiler",
    "jax._src.compilation_cache",
)
_MESSAGES: Final = {  # flag -> how the messages begin that it turns on
    "jax_log_compiles": ("Finished ", "Compiling ", "Persistent compilation cache hit"),
    "jax_explain_cache_misses": (
        "TRACING CACHE MISS",
        "PERSISTENT COMPILATION CACHE MISS",
        "Writing ",
        "Not writing persistent cache entry",
    ),
}
_FIRST: Final = re.compile(r"never seen function:\s+(?P<name>.+) id=\d+(?: defined at (?P<place>\S+))?")
_AGAIN: Final = re.compile(
    r"\n  for (?P<name>.+?)(?: defined at \S+)?\n.*closest previous key:\n\s*(?P<reason>.*)", re.S
)
_STATIC: Final = re.compile(r"<class '[\w.]*\.Static'> with pytree metadata Static\(val=(.*)\)$", re.S)
_DIFFERENCE: Final = re.compile(r"now (?P<now>.*) and before (?P<before>.*?)(?:, so .*)?$", re.S)
_CONTEXT: Final = 20  # characters kept on either side of what differs
_LONGEST: Final = 160  # characters of a list of arguments
_ONE_LINE_FOR_ALL: Final = f"{os.sep}equinox{os.sep}"  # filter_jit calls and defines every function in the same place


class Explanation(NamedTuple):
    """Why a function is traced."""

    name: str
    reason: str
    time: float = 0.0  # when it was logged, in seconds as time.time() counts them


class CompileLog(logging.Filter):
    """Explanations and arguments of the function that is being compiled, read from JAX's log.

    A filter of the loggers themselves: it sees the messages first and holds back those that nobody asked for.
    """

    def __init__(self) -> None:
        super().__init__()
        self._explanations: list[Explanation] = []  # of the functions that are being traced, outermost first
        self.arguments: dict[str, str] = {}  # name of a program -> what it is being compiled for
        self._unasked: tuple[str, ...] = ()

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Listen during the block; afterwards flags and loggers are as they were."""
        off = [starts for flag, starts in _MESSAGES.items() if not getattr(jax.config, flag)]
        self._unasked = tuple(start for starts in off for start in starts)
        loggers = [logging.getLogger(name) for name in _LOGGERS]
        for logger in loggers:
            logger.filters.insert(0, self)  # before that of a block around this one, which would hold messages back
        try:
            with jax.log_compiles(True), jax.explain_cache_misses(True):
                yield
        finally:
            for logger in loggers:
                logger.removeFilter(self)

    def reason_of_trace(self, name: str, start: float) -> str:
        """Return why the function was traced whose tracing began at ``start``, or ""."""
        inside = [one for one in self._explanations if one.time >= start]
        self._explanations = []  # those of the functions that it calls follow from its own
        return next((one.reason for one in inside if one.name == name), inside[0].reason if inside else "")

    def reason_of_inner_trace(self, name: str) -> str:
        """Return why a function was traced inside a transformation such as ``grad``, or ""."""
        reason = next((one.reason for one in self._explanations if one.name == name), "")
        self._explanations = [one for one in self._explanations if one.name != name]
        return reason

    def filter(self, record: logging.LogRecord) -> bool:
        """Read a message; False holds it back."""
        template = str(record.msg)
        if template.startswith("TRACING CACHE MISS"):
            if explanation := read_explanation(record.getMessage()):
                self._explanations.append(explanation._replace(time=record.created))
        elif template.startswith("Compiling ") and isinstance(record.args, tuple) and len(record.args) == 3:
            program, types, shardings = record.args
            self.arguments[plain_name(str(program))] = _describe_arguments(types, shardings)
        return not template.startswith(self._unasked)


def plain_name(program: str) -> str:
    """Return the name of the function in the name of a program: ``f`` of ``jit(f)``."""
    found = re.fullmatch(r"\w+\((.*)\)", program)
    return found[1] if found else program


def read_explanation(message: str) -> Explanation | None:
    """Return the name and the reason in a message about a tracing cache miss; None where it has another form."""
    if again := _AGAIN.search(message):
        heading, *differences = again["reason"].split("\n  * ")
        listed = "; ".join(map(_shorten_difference, differences))
        return Explanation(again["name"], f"{heading.strip().rstrip('.:')}{': ' if listed else ''}{listed}")
    if first := _FIRST.search(message):
        place = first["place"] or ""
        is_told_apart = _ONE_LINE_FOR_ALL not in message
        where = f" ({_short_place(place)})" if place and is_told_apart else ""
        if "but seen another function" in message and is_told_apart:
            return Explanation(first["name"], f"a new function from a line that made one before{where}; make it once")
        return Explanation(first["name"], f"first call{where}")
    return None


def _short_place(place: str) -> str:
    file, _, line = place.rpartition(":")
    return f"{os.path.basename(file)}:{line}"


def _shorten_difference(text: str) -> str:
    """Keep of two values what differs between them; the whole static argument of an environment fills pages."""
    found = _DIFFERENCE.search(text)
    if found is None:
        return text
    statics = [_STATIC.match(found[side]) for side in ("now", "before")]
    values = [static[1] if static else found[side] for static, side in zip(statics, ("now", "before"), strict=True)]
    now, before = _middles(*values)
    kind = "static value " if all(statics) else ""
    return f"{text[: found.start()]}now {kind}{now} and before {before}"


def _middles(now: str, before: str) -> tuple[str, str]:
    head = _shared(now, before)
    tail = _shared(now[head:][::-1], before[head:][::-1])
    start = max(0, head - _CONTEXT)
    return _cut(now, start, tail - _CONTEXT), _cut(before, start, tail - _CONTEXT)


def _shared(first: str, second: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((position for position, (a, b) in pairs if a != b), min(len(first), len(second)))


def _cut(value: str, start: int, drop: int) -> str:
    end = len(value) - max(0, drop)
    middle = value[start:end]
    if len(middle) > _LONGEST:
        middle = f"{middle[: _LONGEST // 2]} ... {middle[-_LONGEST // 2 :]}"
    return f"{'...' if start else ''}{middle}{'...' if end < len(value) else ''}"


def _describe_arguments(types: object, shardings: object) -> str:
    """Types of the arguments, and where they lie when that was chosen."""
    names = ", ".join(str(one) for one in types) if isinstance(types, list | tuple) else str(types)
    placed = [str(one) for one in shardings] if isinstance(shardings, list | tuple) else []
    places = sorted({place for place in placed if place != "UnspecifiedValue"})
    where = f" on {', '.join(places)}" if places else ""
    return f"({_cut_end(names)}){_cut_end(where)}"


def _cut_end(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
