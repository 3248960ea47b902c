"""What is fed to a reader, and when it has failed: either a valid object, or a documented error of one line, soon."""

import dataclasses
import json
import resource
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import jaxarc

MOST_SECONDS: Final = 2.0  # of processor time for one input
MOST_BYTES: Final = 2**30  # of memory for one input
MOST_LETTERS: Final = 4000  # of a message
_SOURCE: Final = str(Path(jaxarc.__file__).parent)


@dataclasses.dataclass(frozen=True)
class Target:
    """A reader, with inputs that it reads."""

    read: Callable[[bytes], object]
    errors: tuple[type[BaseException], ...]  # that it documents
    seeds: tuple[bytes, ...]
    words: tuple[str, ...] = ()  # that it knows, such as names of fields
    is_typed: bool = False  # on a command line, which makes one line of the message and may repeat what was typed


Maker: TypeAlias = Callable[[Path], Target]
"""Prepares a target, whose files are below the given folder."""


class WrongResultError(AssertionError):
    """A reader returned what it must not."""


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


def require(holds: bool, what: str) -> None:
    """Note a result that is wrong.

    Raises:
        WrongResultError: it is.
    """
    if not holds:
        raise WrongResultError(what)


def json_bytes(value: Any) -> bytes:
    """Write JSON as a file has it."""
    return json.dumps(value).encode()


def parsed_json(content: bytes) -> Any:
    """Read JSON; None where it is none."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


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
