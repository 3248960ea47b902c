"""Write files whole, and put checksums on objects of JSON.

``write_whole`` writes to a temporary name in the same folder, flushes it to the disk and renames it.
``add_checksum`` and ``verify_checksum`` find a change that leaves the text valid JSON.
"""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from jaxarc.errors import JaxarcError

CHECKSUM: Final = "sha256"  # the field that add_checksum adds
_DIGITS: Final = 16  # hexadecimal digits of the SHA-256 that are kept


class ChecksumError(JaxarcError, ValueError):
    """An object of JSON does not match its checksum."""


def write_whole(path: str | Path, content: bytes, *, flush: bool = True) -> Path:
    """Write ``content`` so that a reader finds either the old file or the whole new one, even after a crash.

    Args:
        path: where to; missing folders are made.
        content: the bytes.
        flush: wait until the disk has the file. Without it the file survives a crash of the process, but not always one
            of the machine: for files that carry a checksum and can be made again.

    Returns:
        The path.

    Raises:
        OSError: the folder cannot be written, or the disk is full; the old file is then untouched.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Files of tempfile are their owner's alone, and to ask for the umask is to change it, in all threads at once.
    name = target.parent / f".{target.name}.{secrets.token_hex(8)}.part"
    with names_file(target):
        try:
            with name.open("xb") as file:
                file.write(content)
                if flush:
                    file.flush()
                    os.fsync(file.fileno())
            os.replace(name, target)
        finally:
            with suppress(OSError):  # there is none, or the disk says what is wrong above
                name.unlink()
        if flush:
            _sync_folder(target.parent)
    return target


@contextmanager
def names_file(path: Path) -> Iterator[None]:
    """Let an error of the system name this file: it names none, or a temporary one, when writing fails.

    Raises:
        OSError: the same error, with the file.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:  # an error of ours, which says all
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def add_checksum(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields and their checksum: ``{"a": 1}`` becomes ``{"a": 1, "sha256": "015abd7f5cc57a2d"}``."""
    return {**fields, CHECKSUM: _checksum(fields)}


def verify_checksum(content: Any) -> dict[str, Any]:
    """Return the fields of an object without its checksum; an object that has no checksum passes.

    Raises:
        ChecksumError: the content is not an object, or its checksum belongs to other fields.
    """
    if not isinstance(content, Mapping):
        raise ChecksumError("it is no JSON object")
    fields = without_checksum(content)
    if CHECKSUM in content and content[CHECKSUM] != _checksum(fields):
        raise ChecksumError(
            f"its {CHECKSUM!r} does not match its other fields; bring the file back, or take {CHECKSUM!r} out if you "
            "changed it on purpose"
        )
    return fields


def without_checksum(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields without the checksum, which is not compared: for files that people edit."""
    return {name: value for name, value in content.items() if name != CHECKSUM}


def _checksum(fields: Mapping[str, Any]) -> str:
    # Sorted names: the order of the fields does not matter.
    text = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
