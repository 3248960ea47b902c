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
MAKERS: Final[dict[str, Maker]] = {maker.__name__: maker for table in _TABLES for maker in table.TARGETS}
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


@st.composite
def wrong_inputs(draw: st.DrawFn, target: Target) -> bytes:
    """Draw a right input with a change: mostly of a value where it is JSON or lines of it, else of any bytes."""
    seed = draw(st.sampled_from(target.seeds))
    values = st.sampled_from(_VALUES + target.words) | st.text(max_size=5) | st.integers()
    whole = parsed_json(seed)
    rows = [whole] if whole is not None else [parsed_json(line) for line in seed.splitlines()]
    if draw(st.integers(0, 2)) and rows and None not in rows:
        at = draw(st.integers(0, len(rows) - 1))
        for _ in range(draw(st.integers(1, 2))):
            rows[at] = draw(_changed(rows[at], values))
        text = b"\n".join(map(json_bytes, rows)) + (b"\n" if whole is None else b"")
        return text.replace(f'"{_DEEP}"'.encode(), _BRACKETS)
    pieces = st.sampled_from([*_BYTES, *(word.encode("utf-8", "surrogatepass") for word in target.words)])
    for _ in range(draw(st.integers(1, 2))):
        start, end = sorted(draw(st.tuples(*[st.integers(0, len(seed))] * 2)))
        start = draw(st.sampled_from((start, end)))
        seed = seed[:start] + draw(pieces | st.binary(max_size=4) | st.just(seed[start:end] * 2)) + seed[end:]
    return seed


@st.composite
def _changed(draw: st.DrawFn, value: Any, values: st.SearchStrategy[Any]) -> Any:
    """Change a JSON value, or a value within it: ``{"a": [1, 2]}`` becomes ``{"a": [1, [[[2]]]]}``."""
    if isinstance(value, str) and value[:1] in ("{", "[") and (inner := parsed_json(value.encode(errors="replace"))):
        return json.dumps(draw(_changed(inner, values)))
    if not isinstance(value, dict | list) or not value or not draw(st.integers(0, 7)):
        match draw(st.integers(0, 3)):
            case 0 if isinstance(value, int | float):
                return draw(st.sampled_from((value + 1, value - 1, -value, 10 * value)))
            case 0 if isinstance(value, str):
                return draw(st.sampled_from((value[1:], value * 2, f"{value}\n", f"{value}\x00", f"-{value}")))
            case 1:
                for _ in range(draw(st.sampled_from((1, 3, 150)))):
                    value = [value]
                return value
        return draw(values)
    keys = list(value) if isinstance(value, dict) else list(range(len(value)))
    key, changed = draw(st.sampled_from(keys)), value.copy()
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
    return Finding(_place(error), complaint, content) if complaint else None


def _complaint(error: BaseException, is_typed: bool) -> str:
    """Say what is wrong with a message; it names value, rule and fix in one line that may be shown in a terminal."""
    message, kind = str(error), type(error).__name__
    if is_typed:
        return "" if message.split() else f"{kind} without a message"
    if not message.isprintable():
        return f"{kind}: its message is more than one line, or holds control characters: {message!r:.300}"
    if len(message) > MOST_LETTERS:
        return f"{kind}: its message has {len(message)} letters: {message[:300]}"
    return f"{kind}: its message says too little: {message!r}" if len(message.split()) < 3 else ""


def _place(error: BaseException | None) -> str:
    """Name an error by its class and the last line of ours that it passed."""
    ours = [] if error is None else _frames_of_ours(error) or traceback.extract_tb(error.__traceback__)
    where = f"{Path(ours[-1].filename).name}:{ours[-1].name}" if ours else "nowhere"
    return f"{type(error).__name__} at {where}"


def _frames_of_ours(error: BaseException) -> list[traceback.FrameSummary]:
    return [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(_SOURCE)]


def _most_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
