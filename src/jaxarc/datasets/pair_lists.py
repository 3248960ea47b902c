"""Tasks in parsed JSON: which of its parts are tasks, and lists of pairs without a split (re-arc, BARC).

re-arc has a file for each task, ``[{"input": grid, "output": grid}, ...]`` with 1,000 pairs. BARC has lines of JSON,
each a task ``{"examples": [[input, output], ...], ...}``. Such a task shows three demonstrations and a test; the other
pairs are its pool, from which :class:`jaxarc.tasks.pair_pool.PairPool` draws at every reset.
"""

import dataclasses
import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from jaxarc.constants import MAX_GRID_SIZE
from jaxarc.datasets.json_format import check_task, parse_json
from jaxarc.datasets.selectors import TooLargeWarning
from jaxarc.tasks.raw_task import Pair, RawTask, TaskFormatError, check_grid, check_task_id, describe_value

_EXAMPLES: Final = "examples"  # of BARC
_ID_KEYS: Final = ("id", "task_id", "uid")  # of a line, whichever it has
_MAX_LINE_BYTES: Final = 16 * 2**20
_SPLIT: Final = re.compile(
    r"train(s|ing|_pairs)?|tests?|testing|test_pairs|demo(s|nstrations?)?|val|validation|eval|evaluation"
)


@dataclasses.dataclass
class LeftOut:
    """Counts what a reader leaves out because it is larger than 30x30, and warns once."""

    num_pairs: int = 0
    of_pairs: int = 0
    num_tasks: int = 0

    def warn(self, source: str | Path) -> None:
        """Say what was left out, in one line, if anything was."""
        if not self.num_pairs:
            return
        tasks = f", and {self.num_tasks:,} tasks with them" if self.num_tasks else ""
        warnings.warn(
            f"{source}: {self.num_pairs:,} of {self.of_pairs:,} pairs have a grid over {MAX_GRID_SIZE}x{MAX_GRID_SIZE} "
            f"and are left out{tasks}",
            TooLargeWarning,
            stacklevel=2,
        )


def is_pair_list(data: Any) -> bool:
    """Whether data is a list of pairs, or an object of BARC that holds one."""
    # What a list begins with tells what it is: rows are lists of numbers, a grid is no task but looks like a list of
    # pairs, so a pair [grid, grid] does not, a list of pairs does, and a list of tasks does not.
    pairs = data.get(_EXAMPLES) if isinstance(data, Mapping) and "train" not in data else data
    return isinstance(pairs, list) and bool(pairs) and isinstance(pairs[0], Mapping | list) and not is_task(pairs[0])


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
    task_id: str,
    data: Any,
    source: str,
    left_out: LeftOut,
    *,
    null_color: int | None = None,
    answers_hidden: bool = False,
    title: str = "",
    concept: str = "",
) -> RawTask | None:
    """Turn the JSON of a task, split into demonstrations and tests or not, into a task.

    Pairs of a list that are larger than 30x30 are left out and counted; None if fewer than two are left. A task with
    demonstrations and tests is refused if a grid is too large.

    Raises:
        TaskFormatError: any rule of the format is broken; the message starts with ``source``.
    """
    check_task_id(task_id, source)
    if not is_pair_list(data):
        train, test = check_task(data, source, null_color, answers_hidden=answers_hidden)
        left_out.of_pairs += len(train) + len(test)
        return RawTask.of_checked_pairs(task_id, train, test, title, concept)
    listed = data[_EXAMPLES] if isinstance(data, dict) else data
    if len(listed) < 2:
        raise TaskFormatError(f"{source}: a list of pairs needs 2 or more, got {len(listed)}; add pairs")
    found = [_pair_of(pair, f"{source}: pair {index}", null_color) for index, pair in enumerate(listed)]
    pairs = [pair for pair in found if pair is not None]
    left_out.of_pairs += len(found)
    left_out.num_pairs += len(found) - len(pairs)
    if len(pairs) < 2:
        left_out.num_tasks += 1
        return None
    return RawTask.of_pool(task_id, pairs, title, concept)


def read_lines(file: Path) -> Iterator[tuple[str, Any, str]]:
    """Yield the tasks of a file with one in each line: id, unchecked data, and where it is.

    The id is what the line calls so, or else the name of the file and the number of the line, from 0 on.

    Raises:
        TaskFormatError: a line is too long or not JSON.
        OSError: the file cannot be read.
    """
    with file.open("rb") as lines:
        number = 0
        while line := lines.readline(_MAX_LINE_BYTES + 1):
            source = f"{file}: line {number + 1}"
            if len(line) > _MAX_LINE_BYTES:
                raise TaskFormatError(f"{source}: more than {_MAX_LINE_BYTES:,} bytes, which no task has; split it")
            if line.strip():
                data = parse_json(line, source)
                yield own_id(data) or f"{file.stem}-{number}", data, source
            number += 1


def _pair_of(pair: Any, where: str, null_color: int | None) -> Pair | None:
    if isinstance(pair, dict) and {"input", "output"} <= pair.keys():
        sides = pair["input"], pair["output"]
    elif isinstance(pair, list) and len(pair) == 2:
        sides = pair
    else:
        raise TaskFormatError(
            f"{where}: a pair is {{'input': ..., 'output': ...}} or [input, output], got {describe_value(pair)}; "
            "give both grids"
        )
    try:
        return check_grid(sides[0], f"{where} input", null_color), check_grid(sides[1], f"{where} output", null_color)
    except TaskFormatError:
        if any(isinstance(grid, list) and _is_too_large(grid) for grid in sides):
            return None
        raise


def _is_too_large(grid: list[Any]) -> bool:
    widths = {len(row) for row in grid if isinstance(row, list)}
    return len(widths) == 1 and (len(grid) > MAX_GRID_SIZE or max(widths) > MAX_GRID_SIZE)
