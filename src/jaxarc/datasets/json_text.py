"""A JSON file as Python objects, or one line that says why it is none."""

import errno
import json
import stat
from pathlib import Path
from typing import Any, Final, NoReturn

from jaxarc.tasks.validation import TaskFormatError

MAX_FILE_BYTES: Final = 64 * 2**20  # ARC-AGI-2 whole takes 4 MB; a larger file is refused before it is read


def read_json_text(file: Path) -> Any:
    """Read and parse one file, more strictly than :mod:`json`.

    Refused as well: an object that has a key twice (Python would keep the last one silently), ``NaN`` and ``Infinity``,
    files of more than 64 MiB, and whatever is no regular file, such as a pipe or a link that leads nowhere.

    Raises:
        TaskFormatError: the file is not such JSON; the message starts with its path.
        OSError: the file cannot be read.
    """
    try:
        found = file.stat()
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ELOOP):
            raise
        raise TaskFormatError(
            f"{file}: there is no such file, or a link that leads nowhere; remove the link"
        ) from error
    if not stat.S_ISREG(found.st_mode):
        raise TaskFormatError(f"{file}: not a regular file; put a JSON file there")
    if found.st_size > MAX_FILE_BYTES:
        raise TaskFormatError(
            f"{file}: {found.st_size:,} bytes, the limit is {MAX_FILE_BYTES:,}; split the file into several"
        )
    return _parse(file.read_bytes(), file)


def _parse(content: bytes, file: Path) -> Any:
    try:
        text = content.decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=_object_of, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise TaskFormatError(f"{file}: not UTF-8 text (byte {error.start}); save the file as UTF-8") from error
    except json.JSONDecodeError as error:
        raise TaskFormatError(
            f"{file}: not JSON at line {error.lineno}, column {error.colno}: {error.msg}; is the file complete?"
        ) from error
    except _NotPlainJsonError as error:
        raise TaskFormatError(f"{file}: {error}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; lists nested thousands deep
        raise TaskFormatError(f"{file}: cannot be an ARC task ({error}); grids are lists of rows of 0..9") from error


class _NotPlainJsonError(Exception):
    """JSON to Python, and yet not what a task file may say."""


def _object_of(items: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(items)
    if len(made) != len(items):
        keys = [key for key, _ in items]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _NotPlainJsonError(f"an object has the key {twice[:40]!r} twice; keep one of the two")
    return made


def _refuse_constant(name: str) -> NoReturn:
    raise _NotPlainJsonError(f"{name} is not JSON; cells are whole numbers 0..9")
