"""A task as its file gives it: grids of their own size, checked, nothing padded."""

import dataclasses
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from jaxtyping import Int8

from jaxarc.constants import MAX_GRID_SIZE, MAX_TRACKED_PAIRS, NUM_COLORS, PADDING
from jaxarc.errors import JaxarcError
from jaxarc.host_arrays import HiddenValuesError, is_array, to_lists, to_numpy
from jaxarc.notebooks import notebook_picture

Pair: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Input and output, each ``int8[h, w]`` with colors 0..9 and sides 1..30; an unknown answer is ``int8[0, 0]``."""

UNKNOWN: Final = np.zeros((0, 0), np.int8)  # the output of a test pair whose answer is hidden; equals no grid
UNKNOWN.setflags(write=False)
NUM_SHOWN: Final = 3  # demonstrations of a task whose file does not say which pairs these are
MAX_ID_LENGTH: Final = 200
_COLORS: Final = bytes(range(NUM_COLORS))


class TaskFormatError(JaxarcError, ValueError):
    """A task, pair or grid breaks a rule of the ARC format."""


class UnknownAnswerError(TaskFormatError):
    """The answer of a test pair is needed, and is not known."""


@dataclasses.dataclass(frozen=True, eq=False)
class RawTask:
    """Demonstration and test pairs of one task, on the host.

    Grids may be given as integer arrays or nested lists; they are kept as read-only ``int8[h, w]``. The output of a
    test pair may be None, its answer is unknown then and is kept as an empty grid, ``int8[0, 0]``.

    Raises:
        TaskFormatError: the id is not 1 .. 200 printable characters, or a pair breaks a rule of the format.
        UnknownAnswerError: the output of a demonstration is such an empty grid.
    """

    task_id: str
    train: tuple[Pair, ...]  # 1 .. 31 pairs
    test: tuple[Pair, ...]  # 1 .. 31 pairs
    title: str = ""  # a name for people, where the id says little
    concept: str = ""  # the group of tasks in its dataset
    pool: tuple[Pair, ...] = ()  # further pairs of the same rule, see TaskSet.pair_pool; any number

    def __post_init__(self) -> None:
        check_task_id(self.task_id, "a task")
        object.__setattr__(self, "train", check_pairs(self.train, f"task {self.task_id!r}", "train"))
        object.__setattr__(self, "test", check_pairs(self.test, f"task {self.task_id!r}", "test"))
        checked = (_check_pair(pair, f"task {self.task_id!r}: pool pair {i}") for i, pair in enumerate(self.pool))
        object.__setattr__(self, "pool", tuple(checked))

    @classmethod
    def of_checked_pairs(
        cls,
        task_id: str,
        train: tuple[Pair, ...],
        test: tuple[Pair, ...],
        title: str = "",
        concept: str = "",
        pool: tuple[Pair, ...] = (),
    ) -> "RawTask":
        """Build a task from pairs that :func:`check_grid` returned, without checking them again."""
        # Without ``__init__`` there is no second check of every cell, which takes most
        # of the time of reading a data set.
        task = cls.__new__(cls)
        task.__dict__.update(task_id=task_id, train=train, test=test, title=title, concept=concept, pool=pool)
        return task

    @classmethod
    def of_pool(cls, task_id: str, pairs: Sequence[Pair], title: str = "", concept: str = "") -> "RawTask":
        """Build a task from checked pairs without a split: the first 3 are demonstrations, the next one is the test.

        All others are the pool. Of 3 pairs or 2 the last one is the test.

        Raises:
            TaskFormatError: there are fewer than 2 pairs.
        """
        if len(pairs) < 2:
            raise TaskFormatError(
                f"task {task_id!r}: a task without a split needs 2 pairs or more, got {len(pairs)}; leave it out"
            )
        count = min(NUM_SHOWN, len(pairs) - 1)
        split = tuple(pairs[:count]), tuple(pairs[count : count + 1])
        return cls.of_checked_pairs(task_id, *split, title, concept, tuple(pairs[count + 1 :]))

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """Demonstrations first, then tests."""
        return self.train + self.test

    @property
    def all_pairs(self) -> tuple[Pair, ...]:
        """Demonstrations, tests, then the pool."""
        return self.train + self.test + self.pool

    def pair(self, split: str, index: int) -> Pair:
        """Return a pair of the split ``"train"`` or ``"test"``.

        Raises:
            IndexError: there is no such pair; the message says how many there are.
        """
        pairs = self.train if split == "train" else self.test
        if not 0 <= index < len(pairs):
            raise IndexError(
                f"task {self.task_id!r} has {len(self.train)} train and {len(self.test)} test pairs, counted from 0, "
                f"got {split}/{index}; correct it"
            )
        return pairs[index]

    @property
    def has_answers(self) -> bool:
        """Whether the output of every test pair is known."""
        return all(output.size for _, output in self.test)

    @property
    def grid_shape(self) -> tuple[int, int]:
        """Rows of the highest and columns of the widest grid, the smallest canvas that holds the task."""
        shapes = [grid.shape for pair in self.all_pairs for grid in pair]
        return max(height for height, _ in shapes), max(width for _, width in shapes)

    def __repr__(self) -> str:
        height, width = self.grid_shape
        pool = f" + {len(self.pool)} more" if self.pool else ""
        counts = f"{len(self.train)} train + {len(self.test)} test{pool}"
        return f"RawTask({self.task_id!r}, {counts}, largest {height}x{width})"

    def _repr_svg_(self) -> str | None:
        return notebook_picture(self)

    def named_grids(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield every grid with a name such as ``train pair 0 input``."""
        for split, pairs in (("train", self.train), ("test", self.test), ("pool", self.pool)):
            for index, pair in enumerate(pairs):
                for side, grid in zip(("input", "output"), pair, strict=True):
                    yield f"{split} pair {index} {side}", grid


def check_task_id(task_id: Any, source: str) -> None:
    """Check that an id can be shown in a line, whatever terminal shows it.

    Raises:
        TaskFormatError: it is not 1 .. 200 printable characters.
    """
    if not isinstance(task_id, str) or not task_id.isprintable() or not 1 <= len(task_id) <= MAX_ID_LENGTH:
        raise TaskFormatError(
            f"{source}: the task id {task_id!r:.60} is not 1..{MAX_ID_LENGTH} printable characters; rename the task"
        )


def check_pairs(pairs: Sequence[tuple[Any, Any]], source: str, split: str) -> tuple[Pair, ...]:
    """Check ``(input, output)`` tuples of arrays or nested lists and cast their grids to int8.

    Raises:
        TaskFormatError: no pair or too many, something other than two grids, or a grid that breaks a rule.
    """
    if not isinstance(pairs, list | tuple):
        raise TaskFormatError(
            f"{source}: {split!r} must be a list of pairs, got {describe_value(pairs)}; write [(input, output), ...]"
        )
    check_pair_count(len(pairs), source, split)
    check = _check_test_pair if split == "test" else _check_pair
    return tuple(check(pair, f"{source}: {split} pair {index}") for index, pair in enumerate(pairs))


def require_answer(pair: Pair, where: str) -> Pair:
    """Return a pair whose output is known.

    Raises:
        UnknownAnswerError: the output is unknown.
    """
    if pair[1].size == 0:
        raise UnknownAnswerError(
            f"{where}: its answer is unknown, and this needs it; put the solutions file beside the challenges, or use "
            "jaxarc evaluate DATASET --agent AGENT, which needs no answers"
        )
    return pair


def check_pair_count(count: int, source: str, split: str) -> None:
    """Refuse a split without pairs, or with more than 31.

    Raises:
        TaskFormatError: the count is out of range.
    """
    if count == 0:
        raise TaskFormatError(f"{source}: {split!r} has no pairs; a task needs at least one {split} pair, add one")
    if count > MAX_TRACKED_PAIRS:
        raise TaskFormatError(
            f"{source}: {split!r} has {count} pairs, the limit is {MAX_TRACKED_PAIRS}; split the task into several"
        )


def check_grid(grid: Any, where: str) -> np.ndarray:
    """Check one grid, an array of whole numbers or a list of rows, and return it as a read-only ``int8[h, w]``.

    Args:
        grid: an array of NumPy, JAX, PyTorch or any library that speaks ``__array__`` or DLPack, or a list of rows;
            rows and cells may be such arrays too.
        where: the start of every message.

    Raises:
        TaskFormatError: it is no grid, or empty, ragged or larger than 30x30, or a cell is not a whole number in 0..9.
    """
    if isinstance(grid, list | tuple):
        # First all cells at once, which is fast and says yes or no. Only a grid that fails is walked
        # through cell by cell, to name the fault.
        checked = _pack_rows(grid)
        if checked is None:
            checked = _check_rows(_read(to_lists, grid, where), where)
    elif is_array(grid):
        checked = _check_array(_read(to_numpy, grid, where), where)
    else:
        raise TaskFormatError(
            f"{where}: a grid is a list of rows or an array, got {describe_value(grid)}; write [[0, 1], [2, 3]]"
        )
    checked.setflags(write=False)
    return checked


def _read(convert: Callable[[Any], Any], grid: Any, where: str) -> Any:
    try:
        return convert(grid)
    except (TypeError, HiddenValuesError) as error:
        raise TaskFormatError(f"{where}: {error}") from error


def check_canvas(grid_shape: tuple[int, int]) -> tuple[int, int]:
    """Return ``grid_shape`` as two ints; a side of a canvas is a whole number in 1..30.

    Raises:
        ValueError: a side is out of range.
    """
    height, width = (int(side) for side in grid_shape)
    if not (1 <= height <= MAX_GRID_SIZE and 1 <= width <= MAX_GRID_SIZE):
        raise ValueError(f"grid_shape is (rows, columns), each 1..{MAX_GRID_SIZE}, got ({height}, {width}); change it")
    return height, width


def check_fits(task: RawTask, grid_shape: tuple[int, int]) -> None:
    """Refuse a task that does not fit the canvas.

    Raises:
        ValueError: names the task, its first grid that is too large, the canvas, and what to do.
    """
    height, width = grid_shape
    for name, grid in task.named_grids():
        rows, columns = grid.shape
        if rows > height or columns > width:
            needed = task.grid_shape
            raise ValueError(
                f"task {task.task_id!r}: {name} is {rows}x{columns} and does not fit the canvas {height}x{width}; "
                f"use a canvas of at least {needed[0]}x{needed[1]} (dataset.max_grid_height, dataset.max_grid_width), "
                f"or keep only tasks that fit with select(max_side={min(height, width)})"
            )


def pad_grids(grids: list[np.ndarray], grid_shape: tuple[int, int]) -> np.ndarray:
    """Put each grid at the top left of a canvas; ``int8[len(grids), H, W]``, -1 outside. The grids fit."""
    # One array for all grids; -1 stays where a grid does not reach.
    padded = np.full((len(grids), *grid_shape), PADDING, np.int8)
    for canvas, grid in zip(padded, grids, strict=True):
        height, width = grid.shape
        canvas[:height, :width] = grid
    return padded


def crop_padding(grid: Int8[np.ndarray, "H W"]) -> Int8[np.ndarray, "h w"]:
    """Return the active area of a padded grid, without copying it."""
    # It begins at the top left, so the first column counts its rows and the first row its columns: in
    #     7 7 -1
    #     7 7 -1    the column 7 7 -1 has two colors and the row 7 7 -1 two.
    #    -1 -1 -1
    inside = grid != PADDING
    return grid[: inside[:, 0].sum(), : inside[0].sum()]


def describe_value(value: Any) -> str:
    """Name a value and its type for a message, shortened, so that the message stays one line."""
    if value is None:
        return "null (None)"
    if isinstance(value, dict | list | tuple):
        return f"a {type(value).__name__} of {len(value)}"
    if type(value) is int and abs(value) >= 10**12:
        return "a whole number of more than 12 digits"
    text = repr(value)
    return f"{text if len(text) <= 40 else text[:37] + '...'} ({type(value).__name__})"


def _check_test_pair(pair: Any, where: str) -> Pair:
    if isinstance(pair, list | tuple) and len(pair) == 2 and (pair[1] is None or _is_unknown(pair[1])):
        return check_grid(pair[0], f"{where} input"), UNKNOWN
    return _check_pair(pair, where)


def _is_unknown(output: Any) -> bool:
    return isinstance(output, np.ndarray) and output.shape == UNKNOWN.shape


def _check_pair(pair: Any, where: str) -> Pair:
    if not isinstance(pair, list | tuple) or len(pair) != 2 or pair[0] is None or pair[1] is None:
        raise TaskFormatError(f"{where}: a pair is (input, output), both grids, got {describe_value(pair)}; give both")
    if _is_unknown(pair[1]):
        require_answer((pair[0], UNKNOWN), where)
    return check_grid(pair[0], f"{where} input"), check_grid(pair[1], f"{where} output")


def _pack_rows(rows: Sequence[Any]) -> np.ndarray | None:
    """Check a list of rows as a whole; ``None`` where a rule is broken, and :func:`_check_rows` says which.

    ``[[0, 1], [2, 3]]`` has rows of one length, {2}, and cells of one type, {int}. ``bytes`` turns the cells into
    ``00 01 02 03`` and refuses numbers outside 0..255; ``translate`` deletes the ten colors from them, and nothing is
    left over. The bytes are the array: no loop in Python runs over the cells, and the array is read-only.
    """
    # Sets of types and lengths answer for all rows at once, without a loop in Python.
    if not set(map(type, rows)) <= {list, tuple}:
        return None
    widths = set(map(len, rows))
    cells = list(itertools.chain.from_iterable(rows))
    if len(widths) != 1 or set(map(type, cells)) != {int}:  # True would pass for 1
        return None
    height = len(rows)
    width = len(rows[0])
    if height > MAX_GRID_SIZE or width > MAX_GRID_SIZE:
        return None
    try:
        # Each number becomes a byte. Deleting the bytes 0 .. 9 leaves nothing of a good grid.
        packed = bytes(cells)
    except ValueError:  # a number outside 0..255
        return None
    if packed.translate(None, _COLORS):
        return None
    return np.frombuffer(packed, np.int8).reshape(height, width)


def _check_rows(rows: Sequence[Any], where: str) -> np.ndarray:
    """Check a list of rows cell by cell, to name the first one that breaks a rule."""
    if not rows:
        raise TaskFormatError(f"{where}: the grid has no rows; a side is 1..{MAX_GRID_SIZE}, add a row")
    for index, row in enumerate(rows):
        if not isinstance(row, list | tuple):
            raise TaskFormatError(
                f"{where}, row {index}: a row is a list of colors, got {describe_value(row)}; write [0, 1]"
            )
        if not row:
            raise TaskFormatError(f"{where}, row {index}: the row is empty; a side is 1..{MAX_GRID_SIZE}, add cells")
        if len(row) != len(rows[0]):
            raise TaskFormatError(
                f"{where}, row {index}: the row has {len(row)} cells and row 0 has {len(rows[0])}; "
                "all rows of a grid have the same length, fill or cut the row"
            )
    _check_size(len(rows), len(rows[0]), where)
    for index, row in enumerate(rows):
        for column, cell in enumerate(row):
            if type(cell) is not int or not 0 <= cell < NUM_COLORS:
                _refuse_cell(cell, index, column, where)
    return np.array(rows, np.int8)


def _check_array(array: np.ndarray, where: str) -> np.ndarray:
    if not np.issubdtype(array.dtype, np.integer):
        raise TaskFormatError(
            f"{where}: cells are whole numbers 0..{NUM_COLORS - 1}, got dtype {array.dtype}; cast the array to int8"
        )
    if array.ndim != 2 or array.size == 0:
        raise TaskFormatError(
            f"{where}: a grid has two sides of 1..{MAX_GRID_SIZE}, got shape {array.shape}; pass (rows, columns)"
        )
    _check_size(array.shape[0], array.shape[1], where)
    if array.min() < 0 or array.max() >= NUM_COLORS:
        row, column = np.argwhere((array < 0) | (array >= NUM_COLORS))[0].tolist()
        _refuse_cell(int(array[row, column]), row, column, where)
    return array.astype(np.int8)


def _check_size(height: int, width: int, where: str) -> None:
    if height > MAX_GRID_SIZE or width > MAX_GRID_SIZE:
        raise TaskFormatError(
            f"{where}: the grid is {height}x{width}, sides are 1..{MAX_GRID_SIZE}; crop the grid or leave the task out"
        )


def _refuse_cell(cell: Any, row: int, column: int, where: str) -> None:
    hint = "crop the padding" if type(cell) is int and cell == -1 else "correct the cell"
    if cell is None:
        hint += "; Mini-ARC, which writes null for color 0, is read by 'jaxarc tasks import PATH --name mini-arc'"
    raise TaskFormatError(
        f"{where}, row {row}, column {column}: got {describe_value(cell)}; cells are whole numbers "
        f"0..{NUM_COLORS - 1}, {hint}"
    )
