"""What a reader is, to those that feed it: a function of bytes, the errors that it documents, and right inputs."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias


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
