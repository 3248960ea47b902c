"""Tasks as other projects write them: lists of pairs (re-arc, BARC), lines of JSON, and tables (ARC-TGI).

re-arc has a file for each task, ``[{"input": grid, "output": grid}, ...]`` with 1,000 pairs. BARC has lines of JSON,
each a task ``{"examples": [[input, output], ...], ...}``. Such a task shows three demonstrations and a test; the other
pairs are its pool, from which :class:`jaxarc.tasks.pair_pool.PairPool` draws at every reset. ARC-TGI has CSV files with
a task in each row: ``task_id``, ``generator_name``, ``data`` with the JSON of the task, and others.
"""

import base64
import binascii
import csv
import dataclasses
import warnings
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from jaxarc.constants import MAX_GRID_SIZE, NUM_COLORS
from jaxarc.datasets.json_format import check_task, parse_json
from jaxarc.datasets.selectors import TooLargeWarning
from jaxarc.tasks.raw_task import Pair, RawTask, TaskFormatError, check_grid, describe_value

_EXAMPLES: Final = "examples"  # of BARC
_ID_KEYS: Final = ("id", "task_id", "uid")  # of a line, whichever it has
_MAX_LINE_BYTES: Final = 16 * 2**20


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
    pairs = data.get(_EXAMPLES) if isinstance(data, dict) and "train" not in data else data
    return isinstance(pairs, list) and bool(pairs) and isinstance(pairs[0], dict | list)


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
    skips_large: bool = False,
) -> RawTask | None:
    """Turn the JSON of a task, split into demonstrations and tests or not, into a task.

    Pairs of a list that are larger than 30x30 are left out and counted; None if fewer than two are left. A task with
    demonstrations and tests is refused if a grid is too large; with ``skips_large`` it is left out and counted.

    Raises:
        TaskFormatError: any rule of the format is broken; the message starts with ``source``.
    """
    if not is_pair_list(data):
        if skips_large and (num_large := _count_large(data)):
            left_out.num_pairs += num_large
            left_out.of_pairs += len(data["train"]) + len(data["test"])
            left_out.num_tasks += 1
            return None
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


class UncheckedTask(NamedTuple):
    """One task of a file that holds one in each line or row, not yet checked."""

    task_id: str
    data: Any
    source: str  # where it is, for messages
    concept: str = ""


def read_rows(file: Path) -> Iterator[UncheckedTask]:
    """Yield the tasks of a ``*.csv`` of ARC-TGI, or of any other file with a task of JSON in each line.

    Raises:
        TaskFormatError: a line is no such task.
        OSError: the file cannot be read.
    """
    return _read_table(file) if file.suffix == ".csv" else _read_lines(file)


def _read_table(file: Path) -> Iterator[UncheckedTask]:
    with file.open(encoding="utf-8", errors="replace", newline="") as lines:
        csv.field_size_limit(_MAX_LINE_BYTES)
        table = csv.DictReader(lines)
        try:
            columns = table.fieldnames or ()
            if not {"task_id", "data"} <= set(columns):
                raise TaskFormatError(
                    f"{file}: a table of tasks has the columns task_id and data, found "
                    f"{str(list(columns))[:200]}; sessions of people are for jaxarc traces import"
                )
            for number, row in enumerate(table, start=1):
                source = f"{file}: row {number}"
                data = parse_json((row["data"] or "").encode(), source)
                yield UncheckedTask(row["task_id"] or "", data, source, (row.get("generator_name") or "").strip())
        except csv.Error as error:
            raise TaskFormatError(f"{file}: row {table.line_num}: not a table ({error}); write it as CSV") from error


def _read_lines(file: Path) -> Iterator[UncheckedTask]:
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
                named = [data[key] for key in _ID_KEYS if isinstance(data, dict) and isinstance(data.get(key), str)]
                yield UncheckedTask((named or [f"{file.stem}-{number}"])[0], data, source)
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
    for grid in sides:
        if not isinstance(grid, list):
            raise TaskFormatError(f"{where}: a grid is a list of rows, got {describe_value(grid)}; write [[0, 1]]")
    try:
        return check_grid(sides[0], f"{where} input", null_color), check_grid(sides[1], f"{where} output", null_color)
    except TaskFormatError:
        if any(map(_is_too_large, sides)):
            return None
        raise


def _count_large(data: Any) -> int:
    """Count the pairs of a task with a grid that is too large; 0 for what is no task."""
    splits = [data.get("train"), data.get("test")] if isinstance(data, dict) else [None]
    lists = [pairs for pairs in splits if isinstance(pairs, list)]
    if len(lists) < 2:
        return 0
    pairs = [pair for split in lists for pair in split if isinstance(pair, dict)]
    return sum(any(isinstance(grid, list) and _is_too_large(grid) for grid in pair.values()) for pair in pairs)


def _is_too_large(grid: list[Any]) -> bool:
    widths = {len(row) for row in grid if isinstance(row, list)}
    return len(widths) == 1 and (len(grid) > MAX_GRID_SIZE or max(widths) > MAX_GRID_SIZE)


def pack_pool(pairs: Sequence[Pair]) -> str:
    """Pack the pairs of a pool into a text: base64 of compressed bytes, four sizes of each pair and all cells.

    One pair from 1x2 to 2x1, (7 8) -> (7; 8), is the bytes ``1 2 2 1  7 8  7 8``.
    """
    sizes = np.array([[*source.shape, *target.shape] for source, target in pairs], np.int8)
    cells = b"".join(grid.tobytes() for pair in pairs for grid in pair)
    return base64.b64encode(zlib.compress(sizes.tobytes() + cells, 6)).decode("ascii")


def unpack_pool(text: str, count: int, source: str) -> tuple[Pair, ...]:
    """Return the pairs that :func:`pack_pool` packed.

    Raises:
        TaskFormatError: the text is damaged.
    """
    most = count * (4 + 2 * MAX_GRID_SIZE**2)  # a damaged text must not unpack to more
    unpacker = zlib.decompressobj()
    try:
        content = np.frombuffer(unpacker.decompress(base64.b64decode(text, validate=True), most), np.int8)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise TaskFormatError(f"{source}: damaged, its pool cannot be unpacked ({error})") from error
    sizes = content[: 4 * count].astype(np.int64)
    cells = content[4 * count :]
    # The sizes say how many cells there must be. Of the pair above they are 1 2 2 1: areas of 2 and 2, four cells.
    fits = unpacker.eof and sizes.size == 4 * count and sizes.min() >= 1 and sizes.max() <= MAX_GRID_SIZE
    areas = sizes[0::2] * sizes[1::2] if fits else sizes  # of input and output, alternately
    if not fits or areas.sum() != cells.size or cells.min() < 0 or cells.max() >= NUM_COLORS:
        raise TaskFormatError(f"{source}: damaged, its pool does not hold {count} pairs of grids")
    grids = np.split(cells, np.cumsum(areas)[:-1])
    shaped = [grid.reshape(size) for grid, size in zip(grids, sizes.reshape(-1, 2).tolist(), strict=True)]
    return tuple(zip(shaped[0::2], shaped[1::2], strict=True))
