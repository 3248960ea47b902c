"""One task file in JSON: its bytes become Python objects, and the objects become the pairs of a task."""

import errno
import gc
import json
import stat
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np

from jaxarc.tasks.raw_task import UNKNOWN, Pair, TaskFormatError, check_grid, check_pair_count, describe_value

MAX_FILE_BYTES: Final = 64 * 2**20  # ARC-AGI-2 whole takes 4 MB; a larger file is refused before it is read


def read_json_text(file: Path) -> Any:
    """Read and parse one file; see :func:`parse_json`.

    Files of more than 64 MiB are refused, and everything that is no regular file, such as a pipe or a broken link.

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
    return parse_json(file.read_bytes(), str(file))


def parse_json(content: bytes, source: str) -> Any:
    """Parse JSON more strictly than :mod:`json`: no key twice in an object, no ``NaN`` and no ``Infinity``.

    Raises:
        TaskFormatError: the text is not such JSON; the message starts with ``source``.
    """
    # Parsing makes one list for each row of each grid. The garbage collector would walk over all of them again and
    # again, which doubles the time, and parsed JSON has no cycles to collect.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        text = content.decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=_object_of, parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise TaskFormatError(f"{source}: not UTF-8 text (byte {error.start}); save the file as UTF-8") from error
    except json.JSONDecodeError as error:
        raise TaskFormatError(
            f"{source}: not JSON at line {error.lineno}, column {error.colno}: {error.msg}; is the file complete?"
        ) from error
    except _NotPlainJsonError as error:
        raise TaskFormatError(f"{source}: {error}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits; lists nested thousands deep
        raise TaskFormatError(f"{source}: cannot be an ARC task ({error}); grids are lists of rows of 0..9") from error
    finally:
        if was_enabled:
            gc.enable()


class _NotPlainJsonError(Exception):
    """Text that :mod:`json` parses and a task file may not hold."""


def _object_of(items: list[tuple[str, Any]]) -> dict[str, Any]:
    # A dictionary keeps one of two equal keys, so it is shorter than the list of items.
    made = dict(items)
    if len(made) != len(items):
        keys = [key for key, _ in items]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _NotPlainJsonError(f"an object has the key {twice[:40]!r} twice; keep one of the two")
    return made


def _refuse_constant(name: str) -> NoReturn:
    raise _NotPlainJsonError(f"{name} is not JSON; cells are whole numbers 0..9")


def check_task(
    data: Any, source: str, null_color: int | None = None, *, answers_hidden: bool = False
) -> tuple[tuple[Pair, ...], tuple[Pair, ...]]:
    """Turn one parsed JSON object ``{"train": [...], "test": [...]}`` into its pairs.

    Other keys beside ``train`` and ``test`` are allowed. Rows, columns and pairs are counted from 0 in messages.

    Args:
        data: the object.
        source: where it comes from, the start of every message.
        null_color: the color, 0..9, that a ``null`` cell stands for; by default such a cell is an error.
        answers_hidden: test pairs may lack their outputs, which are then unknown.

    Returns:
        The demonstration pairs and the test pairs.

    Raises:
        TaskFormatError: any rule of the format is broken; the message starts with ``source``.
    """
    if not isinstance(data, dict):
        raise TaskFormatError(
            f"{source}: a task is a JSON object with the keys 'train' and 'test', got {describe_value(data)}; "
            "write one task per file"
        )
    train = _check_split(data, source, "train", null_color, answer_hidden=False)
    return train, _check_split(data, source, "test", null_color, answer_hidden=answers_hidden)


def _check_split(
    data: dict[str, Any], source: str, split: str, null_color: int | None, *, answer_hidden: bool
) -> tuple[Pair, ...]:
    if split not in data:
        raise TaskFormatError(
            f"{source}: the key {split!r} is missing; a task needs 'train' and 'test', found keys: {_keys_of(data)}"
        )
    pairs = data[split]
    if not isinstance(pairs, list | tuple):
        raise TaskFormatError(
            f"{source}: {split!r} must be a list of pairs, got {describe_value(pairs)}; "
            "write [{'input': ..., 'output': ...}]"
        )
    check_pair_count(len(pairs), source, split)
    return tuple(
        _check_json_pair(pair, f"{source}: {split} pair {index}", null_color, answer_hidden)
        for index, pair in enumerate(pairs)
    )


def _check_json_pair(pair: Any, where: str, null_color: int | None, answer_hidden: bool) -> Pair:
    if not isinstance(pair, dict):
        raise TaskFormatError(
            f"{where}: a pair is an object with the keys 'input' and 'output', got {describe_value(pair)}; "
            "name both grids"
        )
    is_hidden = answer_hidden and "output" not in pair
    for side in ("input",) if is_hidden else ("input", "output"):
        if side not in pair:
            raise TaskFormatError(
                f"{where}: the key {side!r} is missing; every pair, test pairs too, needs 'input' and 'output', "
                f"found keys: {_keys_of(pair)}; add the grid, or end the file's name in challenges.json if the answers "
                "of its tests are hidden"
            )
    checked: np.ndarray = check_grid(pair["input"], f"{where} input", null_color)
    return checked, UNKNOWN if is_hidden else check_grid(pair["output"], f"{where} output", null_color)


def _keys_of(data: dict[str, Any]) -> str:
    return ", ".join(repr(key) if len(str(key)) <= 40 else f"{str(key)[:37]!r}..." for key in list(data)[:5]) or "none"
