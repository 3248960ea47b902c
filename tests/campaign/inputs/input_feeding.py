"""Feed readers: right inputs changed by hypothesis, and what a reader must answer to each.

A reader gives a valid object, or a documented error of one printable line, within two seconds and one GiB.
"""

import json
import resource
import time
import traceback
from pathlib import Path
from typing import Any, Final, NamedTuple

from hypothesis import strategies as st

import jaxarc
from campaign.inputs import config_inputs, page_inputs, run_inputs, task_inputs, trace_inputs
from campaign.inputs.input_target import Maker, Target, json_bytes, parsed_json

_TABLES: Final = (task_inputs, trace_inputs, config_inputs, run_inputs, page_inputs)
SHARES: Final[dict[Maker, float]] = {maker: share for table in _TABLES for maker, share in table.TARGETS.items()}
MAKERS: Final[dict[str, Maker]] = {maker.__name__: maker for maker in SHARES}
"""Every reader that is fed, by name."""

MOST_SECONDS: Final = 2.0  # of processor time for one input
MOST_BYTES: Final = 2**30  # of memory for one input
MOST_LETTERS: Final = 4000  # of a message
_SOURCE: Final = str(Path(jaxarc.__file__).parent)

_DEEP: Final = "deep"  # stands for so many brackets as the parser just takes, which json does not write
_BRACKETS: Final = b"[" * 980 + b"]" * 980
_NUMBERS: Final = (-1, 0, 1, 2, 9, 10, 30, 31, 34, 35, 42, 256, 2**31, 2**63, 2**64, -(2**63) - 1, 10**30, 10**400)
_FLOATS: Final = (0.5, -0.0, 1.0, 1e308, 5e-324, float("nan"), float("inf"))
_TEXTS: Final = ("", "0", "x", "\ud800", "\x1b[31m", "a\nb", "\u2028", "</script>", "../x", "/", "${oc.env:HOME}")
_HOLDERS: Final = ([], {}, [[]], [[0, 1], [2]], [[0] * 31], {"a": 1}, {"_target_": "os.system"})
_VALUES: Final = (None, True, False, *_NUMBERS, *_FLOATS, *_TEXTS, "9" * 5000, _DEEP, *_HOLDERS)
_BYTES: Final = (b"\x00", b"\xff", b"NaN", b"[" * 1200, b'{"a":' * 1200, b'"', b"\n", b",", b"\xef\xbb\xbf", b"\r")


def wrong_inputs(target: Target) -> st.SearchStrategy[bytes]:
    """Draw right inputs with a change: of a value where they are JSON or lines of it, or of any bytes."""
    values = st.sampled_from(_VALUES + target.words) | st.text(max_size=5) | st.integers()

    def changed(seed: bytes) -> st.SearchStrategy[bytes]:
        in_structure, in_bytes = _wrong_json(seed, values), _wrong_bytes(seed, target)
        return in_structure | in_structure | in_bytes

    return st.sampled_from(target.seeds).flatmap(changed)


def _wrong_json(seed: bytes, values: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    whole = parsed_json(seed)
    if whole is not None:
        once = _changed(whole, values)
        return (once | once.flatmap(lambda value: _changed(value, values))).map(_written)
    *lines, end = seed.split(b"\n")
    rows = [parsed_json(line) for line in lines]
    if end or None in rows:
        return st.nothing()
    change = lambda at: _changed(rows[at], values).map(_written).map(lambda new: [*lines[:at], new, *lines[at + 1 :]])
    return st.integers(0, len(rows) - 1).flatmap(change).map(lambda changed: b"\n".join((*changed, end)))


def _written(value: Any) -> bytes:
    return json_bytes(value).replace(f'"{_DEEP}"'.encode(), _BRACKETS)


@st.composite
def _changed(draw: st.DrawFn, value: Any, values: st.SearchStrategy[Any]) -> Any:
    """Change a JSON value, or a value within it: ``{"a": [1, 2]}`` becomes ``{"a": [1, [[[2]]]]}``."""
    if isinstance(value, str) and value[:1] in ("{", "[") and (inner := parsed_json(value.encode(errors="replace"))):
        return json.dumps(draw(_changed(inner, values)))
    if not isinstance(value, dict | list) or not value or not draw(st.integers(0, 7)):
        return draw(_another(value, values))
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key = draw(st.sampled_from(keys))
    changed = value.copy()
    match draw(st.integers(0, 9)):
        case 0:
            del changed[key]
        case 1:  # a value of another place
            changed[key] = value[draw(st.sampled_from(keys))]
        case 2 if isinstance(changed, dict):
            changed[str(draw(values))[:99]] = changed.pop(key)
        case 2:
            changed[key:key] = [value[key]] * draw(st.sampled_from((1, 2, 30)))
        case 3 if isinstance(changed, dict):
            changed[str(draw(values))[:99]] = draw(values)
        case 3:
            changed.insert(key, draw(values))
        case _:
            changed[key] = draw(_changed(value[key], values))
    return changed


@st.composite
def _another(draw: st.DrawFn, value: Any, values: st.SearchStrategy[Any]) -> Any:
    """Draw a value of another kind, another value of the kind, or the value within brackets."""
    match draw(st.integers(0, 3)):
        case 0 if isinstance(value, int | float):
            return draw(st.sampled_from((value + 1, value - 1, -value, 10 * value)))
        case 0 if isinstance(value, str):
            return draw(_spliced(value, st.sampled_from((*"\n\x00é :,=@-9", ""))))
        case 1:
            for _ in range(draw(st.sampled_from((1, 3, 150)))):
                value = [value]
            return value
    return draw(values)


@st.composite
def _spliced(draw: st.DrawFn, text: Any, pieces: st.SearchStrategy[Any]) -> Any:
    """Put a piece, or a copy of what is there, instead of a part of a text or of bytes."""
    start, end = sorted(draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    start = draw(st.sampled_from((start, end)))
    copied: Any = text[start:end] * 2
    return text[:start] + draw(pieces | st.just(copied)) + text[end:]


def _wrong_bytes(seed: bytes, target: Target) -> st.SearchStrategy[bytes]:
    words = [word.encode("utf-8", "surrogatepass") for word in target.words]
    pieces = st.sampled_from([*_BYTES, *words]) | st.binary(max_size=4)
    return _spliced(seed, pieces) | _spliced(seed, pieces).flatmap(lambda changed: _spliced(changed, pieces))


class Finding(NamedTuple):
    """An input that a reader does not answer as it should."""

    place: str  # the same for all inputs that show one defect
    what: str
    content: bytes


def feed(target: Target, content: bytes) -> Finding | None:
    """Give one input to a reader, and judge what it does."""
    memory, began, complaint, error = _most_memory(), time.process_time(), "", None
    try:
        target.read(content)
    except target.errors as raised:
        error, complaint = raised, _complaint(raised, target.is_typed)
    except (Exception, SystemExit) as raised:
        if isinstance(raised, RecursionError) and not _frames_of_ours(raised):
            return None  # nested too deeply for the target to write it into a file
        error, complaint = raised, f"{type(raised).__name__} is not documented: {' '.join(str(raised).split())[:300]}"
    seconds, memory = time.process_time() - began, _most_memory() - memory
    if seconds > MOST_SECONDS:
        return Finding("time", f"took {seconds:.1f} s", content)
    if memory > MOST_BYTES:
        return Finding("memory", f"took {memory / 2**30:.1f} GiB", content)
    if not complaint:
        return None
    return Finding(_place(error), complaint, content)


def _complaint(error: BaseException, is_typed: bool) -> str:
    """Say what is wrong with a message; it names value, rule and fix in one line that may be shown in a terminal."""
    message = str(error)
    if is_typed:
        return "" if message.split() else f"{type(error).__name__} without a message"
    if not message.isprintable():
        return (
            f"{type(error).__name__}: its message is more than one line, or holds control characters: {message!r:.300}"
        )
    if len(message) > MOST_LETTERS:
        return f"{type(error).__name__}: its message has {len(message)} letters: {message[:300]}"
    if len(message.split()) < 3:
        return f"{type(error).__name__}: its message says too little: {message!r}"
    return ""


def _place(error: BaseException | None) -> str:
    """Name an error by its class and the last line of ours that it passed."""
    ours = [] if error is None else _frames_of_ours(error) or traceback.extract_tb(error.__traceback__)
    where = f"{Path(ours[-1].filename).name}:{ours[-1].name}" if ours else "nowhere"
    return f"{type(error).__name__} at {where}"


def _frames_of_ours(error: BaseException) -> list[traceback.FrameSummary]:
    return [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(_SOURCE)]


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
