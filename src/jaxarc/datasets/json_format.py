"""Tasks in JSON: bytes become Python objects, and these the pairs of one task or several.

A task is ``{"train": [pair, ...], "test": [pair, ...]}`` with pairs ``{"input": grid, "output": grid}``, or a list of
such pairs without a split, as in re-arc. Such a task shows three demonstrations and a test; the other pairs are its
pool, from which :class:`jaxarc.tasks.pair_pool.PairPool` draws at every reset.
"""

import errno
import gc
import json
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from jaxarc.files import decode_text
from jaxarc.tasks.raw_task import (
    UNKNOWN,
    Pair,
    RawTask,
    TaskFormatError,
    check_grid,
    check_pair_count,
    check_task_id,
    describe_value,
)

MAX_FILE_BYTES: Final = 64 * 2**20  # ARC-AGI-2 whole takes 4 MB; a larger file is refused before it is read
_ID_KEYS: Final = ("id", "task_id", "uid")  # of a task in a list, whichever it has
_SPLIT: Final = re.compile(
    r"train(s|ing|_pairs)?|tests?|testing|test_pairs|demo(s|nstrations?)?|val|validation|eval|evaluation"
)


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
    text = decode_text(content, source, TaskFormatError)
    # Parsing makes one list for each row of each grid. The garbage collector would walk over all of them again and
    # again, which doubles the time, and parsed JSON has no cycles to collect.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return json.loads(text, object_pairs_hook=_object_of, parse_constant=_refuse_constant)
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


def is_pair_list(data: Any) -> bool:
    """Whether data is a list of pairs without a split."""
    return isinstance(data, list) and bool(data) and isinstance(data[0], Mapping) and not is_task(data[0])


def is_task(data: Any) -> bool:
    """Whether data has the form of a task: demonstrations, tests, or a list of pairs."""
    if isinstance(data, Mapping) and any(isinstance(data.get(split, {}), list | tuple) for split in ("train", "test")):
        return True
    return is_pair_list(data)


def tasks_by_id(content: Any, name: str, source: str) -> dict[str, Any]:
    """Return the tasks of parsed JSON by id, unchecked: one task, several in a list, or a mapping from id to task.

    Args:
        content: what has no task in it counts as one, whose check then says what is missing.
        name: of a task alone, whatever else it calls itself; tasks of a list without an id are ``NAME-0``, ``NAME-1``.
        source: where it comes from, the start of every message.

    Raises:
        TaskFormatError: two tasks of a list have one id, or the parts of one task have other names than ``train`` and
            ``test``.
    """
    if isinstance(content, list) and content and any(map(is_task, content)) and not is_pair_list(content):
        named = [(own_id(task) or f"{name}-{number}", task) for number, task in enumerate(content)]
        if len(dict(named)) < len(named):
            ids = [task_id for task_id, _ in named]
            twice = next(task_id for task_id in ids if ids.count(task_id) > 1)
            raise TaskFormatError(f"{source}: two tasks of the list have the id {twice!r}; rename one")
        return dict(named)
    if not isinstance(content, Mapping) or is_task(content) or not any(map(is_task, content.values())):
        return {name: content}
    if all(isinstance(key, str) and _SPLIT.fullmatch(key.casefold()) for key in content):
        raise TaskFormatError(
            f"{source}: {' and '.join(map(repr, content))} look like the parts of one task, which are called 'train' "
            "and 'test'; rename them"
        )
    return {str(task_id): task for task_id, task in content.items()}


def own_id(data: Any) -> str:
    """Return what a task in JSON calls itself, or an empty string."""
    named = [data[key] for key in _ID_KEYS if isinstance(data, Mapping) and isinstance(data.get(key), str)]
    return named[0] if named else ""


def read_task(
    task_id: str, data: Any, source: str, *, answers_hidden: bool = False, title: str = "", concept: str = ""
) -> RawTask:
    """Turn the JSON of a task, split into demonstrations and tests or not, into a task.

    Other keys beside ``train`` and ``test`` are allowed. Rows, columns and pairs are counted from 0 in messages.

    Args:
        task_id: the id.
        data: the object or the list of pairs.
        source: where it comes from, the start of every message.
        answers_hidden: test pairs may lack their outputs, which are then unknown.
        title: a name for people.
        concept: the group of tasks in its dataset.

    Raises:
        TaskFormatError: any rule of the format is broken.
    """
    check_task_id(task_id, source)
    if is_pair_list(data):
        pairs = [_check_pair(pair, f"{source}: pair {index}") for index, pair in enumerate(data)]
        return RawTask.of_pool(task_id, pairs, title, concept)
    if not isinstance(data, dict):
        raise TaskFormatError(
            f"{source}: a task is a JSON object with the keys 'train' and 'test', got {describe_value(data)}; "
            "write one task per file"
        )
    train = _check_split(data, source, "train", answer_hidden=False)
    test = _check_split(data, source, "test", answer_hidden=answers_hidden)
    return RawTask.of_checked_pairs(task_id, train, test, title, concept)


def _check_split(data: dict[str, Any], source: str, split: str, *, answer_hidden: bool) -> tuple[Pair, ...]:
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
    return tuple(_check_pair(pair, f"{source}: {split} pair {i}", answer_hidden) for i, pair in enumerate(pairs))


def _check_pair(pair: Any, where: str, answer_hidden: bool = False) -> Pair:
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
    source = check_grid(pair["input"], f"{where} input")
    return source, UNKNOWN if is_hidden else check_grid(pair["output"], f"{where} output")


def _keys_of(data: dict[str, Any]) -> str:
    return ", ".join(repr(key) if len(str(key)) <= 40 else f"{str(key)[:37]!r}..." for key in list(data)[:5]) or "none"
