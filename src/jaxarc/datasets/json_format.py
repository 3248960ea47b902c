"""One task file in JSON: its bytes become Python objects, and the objects become the pairs of a task."""

import errno
import gc
import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
import orjson

from jaxarc.tasks.raw_task import UNKNOWN, Pair, TaskFormatError, check_grid, check_pair_count, describe_value

MAX_FILE_BYTES: Final = 64 * 2**20  # ARC-AGI-2 whole takes 4 MB; a larger file is refused before it is read
_KEY_DEPTH: Final = 6  # objects within objects and lists down to {"input": ...} of a file of many tasks


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

    orjson is several times as fast as :mod:`json`, but of a key that comes twice it keeps the last value silently.
    Every key has one colon behind it, so as many keys as colons means that no key was lost: ``{"a": 1, "a": 2}`` has
    two colons and comes back with one key. Where the numbers differ, which a colon inside a string causes too, and
    where orjson refuses the text, :mod:`json` parses it again and names what is wrong.

    Raises:
        TaskFormatError: the text is not such JSON; the message starts with ``source``.
    """
    # Parsing makes one list for each row of each grid. The garbage collector would walk over all of them again and
    # again, which takes four times as long as parsing, and parsed JSON has no cycles to collect.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        parsed = orjson.loads(content)
    except orjson.JSONDecodeError:
        return _parse_strictly(content, source)
    finally:
        if was_enabled:
            gc.enable()
    return parsed if _count_keys(parsed, _KEY_DEPTH) == content.count(b":") else _parse_strictly(content, source)


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
    return _check_parts(data, source, null_color, answers_hidden, lambda check, *arguments: check(*arguments))


def find_problems_of_task(
    data: Any, source: str, null_color: int | None = None, *, answers_hidden: bool = False
) -> list[str]:
    """List what :func:`check_task` would refuse, part by part; of one grid the first problem only."""
    found: list[str] = []

    # The same checks serve both callers: this one notes an error and returns None, so that the rest is checked too.
    def attempt(check: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return check(*arguments)
        except TaskFormatError as error:
            found.append(str(error))

    _check_parts(data, source, null_color, answers_hidden, attempt)
    return found


def _count_keys(value: Any, depth: int) -> int:
    """Count the keys of objects, down to a depth; a list counts where it starts with an object, as a grid does not.

    Keys that are left out make the count smaller than the number of colons, never equal to it by mistake.
    """
    if depth == 0:
        return 0
    if isinstance(value, dict):
        return len(value) + sum(_count_keys(child, depth - 1) for child in value.values())
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return sum(_count_keys(child, depth - 1) for child in value)
    return 0


def _parse_strictly(content: bytes, source: str) -> Any:
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


def _check_parts(
    data: Any, source: str, null_color: int | None, answers_hidden: bool, attempt: Callable[..., Any]
) -> Any:
    """Check each part of a task through ``attempt``, which either raises or notes the error and returns ``None``."""
    if attempt(_check_object, data, source) is None:
        return None
    hidden = {"train": False, "test": answers_hidden}
    return tuple(_check_split(data, source, split, null_color, hidden[split], attempt) for split in hidden)


def _check_object(data: Any, source: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise TaskFormatError(
            f"{source}: a task is a JSON object with the keys 'train' and 'test', got {describe_value(data)}; "
            "write one task per file"
        )
    return data


def _check_split(
    data: dict[str, Any],
    source: str,
    split: str,
    null_color: int | None,
    answers_hidden: bool,
    attempt: Callable[..., Any],
) -> tuple[Any, ...]:
    # A part that fails is None or empty here, so its own parts are not looked at, and the next one still is.
    pairs = []
    for index, pair in enumerate(attempt(_pairs_of, data, source, split) or ()):
        where = f"{source}: {split} pair {index}"
        sides = attempt(_sides_of, pair, where, answers_hidden) or {}
        grids = [attempt(_check_json_grid, grid, f"{where} {side}", null_color) for side, grid in sides.items()]
        pairs.append((*grids, UNKNOWN) if len(grids) == 1 else tuple(grids))
    return tuple(pairs)


def _pairs_of(data: dict[str, Any], source: str, split: str) -> list[Any]:
    if split not in data:
        found = ", ".join(_spell_key(key) for key in list(data)[:5]) or "none"
        raise TaskFormatError(
            f"{source}: the key {split!r} is missing; a task needs 'train' and 'test', found keys: {found}"
        )
    pairs = data[split]
    if not isinstance(pairs, list):
        raise TaskFormatError(
            f"{source}: {split!r} must be a list of pairs, got {describe_value(pairs)}; "
            "write [{'input': ..., 'output': ...}]"
        )
    check_pair_count(len(pairs), source, split)
    return pairs


def _sides_of(pair: Any, where: str, answer_hidden: bool) -> dict[str, Any]:
    if not isinstance(pair, dict):
        raise TaskFormatError(
            f"{where}: a pair is an object with the keys 'input' and 'output', got {describe_value(pair)}; "
            "name both grids"
        )
    sides = ("input",) if answer_hidden and "output" not in pair else ("input", "output")
    for side in sides:
        if side not in pair:
            raise TaskFormatError(
                f"{where}: the key {side!r} is missing; every pair, test pairs too, needs 'input' and 'output', "
                f"found keys: {', '.join(map(_spell_key, list(pair)[:5])) or 'none'}; add the grid, or end the file's "
                "name in challenges.json if the answers of its tests are hidden"
            )
    return {side: pair[side] for side in sides}


def _check_json_grid(grid: Any, where: str, null_color: int | None) -> np.ndarray:
    if not isinstance(grid, list):
        raise TaskFormatError(f"{where}: a grid is a list of rows, got {describe_value(grid)}; write [[0, 1], [2, 3]]")
    return check_grid(grid, where, null_color)


def _spell_key(key: str) -> str:
    return repr(key) if len(key) <= 40 else f"{key[:37]!r}..."
