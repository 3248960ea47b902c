"""Sessions of people in the O2ARC web editor, read from their files and turned into traces of mask actions.

A Mini-ARC trace is a JSON object with ``task_id`` and ``action_sequence``, the text of another object with a list of
the same name, whose entries hold an ``action`` with its ``tool`` and the ``grid`` after it. ARCTraj is a CSV file with
``taskId`` and ``actionSequence``, the text of a list whose entries hold an ``operation`` and the ``grid`` before it.
"""

import copy
import csv
import dataclasses
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np

from jaxarc import constants as c
from jaxarc.errors import JaxarcError
from jaxarc.experts.expert import Action, ExpertError, Pair
from jaxarc.experts.host_canvas import Grid, HostCanvas, check_action
from jaxarc.files import decode_text, read_lines
from jaxarc.traces.units import ExpertSpec, PairId, Trace, WorkUnit, checked_trace

if TYPE_CHECKING:
    from jaxarc.datasets import TaskSet

HUMAN: Final = ExpertSpec("human", 1, "", "mask")
_DIRECTIONS: Final = {
    ("Move", "up"): c.MOVE_UP,
    ("Move", "down"): c.MOVE_DOWN,
    ("Move", "left"): c.MOVE_LEFT,
    ("Move", "right"): c.MOVE_RIGHT,
    ("Rotate", "clockwise"): c.ROTATE_CLOCKWISE,
    ("Rotate", "counterclockwise"): c.ROTATE_COUNTERCLOCKWISE,
    ("Flip", "horizontal"): c.FLIP_LEFT_RIGHT,
    ("Flip", "vertical"): c.FLIP_UP_DOWN,
}
_TRANSLATIONS: Final = {(-1, 0): c.MOVE_UP, (1, 0): c.MOVE_DOWN, (0, -1): c.MOVE_LEFT, (0, 1): c.MOVE_RIGHT}
_TURNING_TOOLS: Final = {"rotate": c.ROTATE_CLOCKWISE, "reflectX": c.FLIP_UP_DOWN, "reflectY": c.FLIP_LEFT_RIGHT}
_COLUMNS: Final = {"taskId", "actionSequence"}  # of a table of ARCTraj, among others


class SessionFileError(JaxarcError, ValueError):
    """A file holds no sessions."""


class HumanStep(NamedTuple):
    """One step of a person."""

    guess: Action | None  # the mask action of the same name, None if there is no such action
    after: Grid  # that it left


class HumanSession(NamedTuple):
    """The steps of a person on one task, or why they cannot be read."""

    name: str  # file, and row if it is a table
    task_id: str
    start: Grid | None  # before the first step; None if the session cannot be read
    steps: list[HumanStep]
    problem: str = ""


_Content: TypeAlias = tuple[str, Grid, list[HumanStep]]
"""Task id, first grid and steps of a session."""


class _UnreadableError(ValueError):
    """A session breaks the format of its file."""


def read_human_sessions(path: str | Path) -> Iterator[HumanSession]:
    """Read a CSV file of ARCTraj, a JSON file of a Mini-ARC trace, or a folder of either.

    A file of a folder that holds no sessions counts as a session that cannot be read.

    Raises:
        SessionFileError: the file is not UTF-8 text, or not such a table; the folder has no such file.
        OSError: a file cannot be read.
    """
    source = Path(path)
    if not source.is_dir():
        yield from _read_file(source)
        return
    files = sorted(file for file in source.iterdir() if file.suffix.lower() in (".json", ".csv"))
    if not files:
        raise SessionFileError(f"{source} has no file *.json or *.csv; name the folder that has them")
    for file in files:
        try:
            yield from _read_file(file)
        except SessionFileError as error:
            yield HumanSession(file.name, "", None, [], str(error))


def _read_file(file: Path) -> Iterator[HumanSession]:
    if file.suffix.lower() == ".csv":
        yield from _read_table(file)
    else:
        yield _session(file.name, decode_text(file.read_bytes(), file.name, SessionFileError), _mini_arc)


def _read_table(file: Path) -> Iterator[HumanSession]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a session is a field of up to some megabytes
    table = csv.DictReader(read_lines(file, SessionFileError))
    try:
        columns = table.fieldnames or ()
        if not set(columns) >= _COLUMNS:
            raise SessionFileError(
                f"{file.name} is no table of ARCTraj; its columns are {', '.join(map(repr, columns))[:200] or 'none'}, "
                "and it needs 'taskId' and 'actionSequence', separated by commas"
            )
        for number, row in enumerate(table, start=1):
            log = f", log {row['logId']}" if row.get("logId") else ""
            yield _session(f"{file.name}, row {number}{log}", row, _arctraj)
    except csv.Error as error:
        raise SessionFileError(f"{file.name}: no table, {error}; save it with commas and line feeds") from error


def _session(name: str, content: Any, read: Callable[[Any], _Content]) -> HumanSession:
    try:
        task_id, start, steps = read(content)
    except (_UnreadableError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        missing = f"no field {error}" if isinstance(error, KeyError) else str(error)
        return HumanSession(name, "", None, [], " ".join(missing.split()) or "not a session")
    return HumanSession(name, task_id, start, steps)


def _mini_arc(text: str) -> _Content:
    record = json.loads(text)
    # JSON within JSON: the outer object holds the inner one as text. Each entry has the grid after its action.
    entries = json.loads(record["action_sequence"])["action_sequence"]
    if not entries or entries[0]["action"]["tool"] != "start":
        raise _UnreadableError("it does not begin with the tool 'start'")
    steps = [HumanStep(_guessed(_guess_of_tool, entry["action"]), _grid(entry["grid"])) for entry in entries[1:]]
    return str(record["task_id"]), _grid(entries[0]["grid"]), steps


def _arctraj(row: Mapping[str, str | None]) -> _Content:
    if not row["taskId"] or not row["actionSequence"]:  # a short row, whose last fields are missing
        raise _UnreadableError("it has no task id, or no action sequence")
    entries = json.loads(row["actionSequence"])
    if not isinstance(entries, list) or not entries:
        raise _UnreadableError("its action sequence is empty")
    # Each entry has the grid before its operation, so what it left is the next entry's grid; after the last one there
    # is none, and the session's last grid stands for it.
    grids = [_grid(entry["grid"]) for entry in entries]
    steps = [
        HumanStep(_guessed(_guess_of_operation, entry, after), after)
        for entry, after in zip(entries, [*grids[1:], grids[-1]], strict=True)
    ]
    return row["taskId"], grids[0], steps


def _guessed(guess: Callable[..., Action | None], *arguments: Any) -> Action | None:
    """Return the action of the same name; None if its fields name no cells or colors, as then the grids still count."""
    try:
        return guess(*arguments)
    except (KeyError, TypeError, ValueError, OverflowError):
        return None


def _guess_of_tool(action: Mapping[str, Any]) -> Action | None:
    tool = action["tool"]
    cells = [(_whole(cell["row"]), _whole(cell["col"])) for cell in action.get("selected_cells", [])]
    if tool == "copyFromInput":
        return (c.COPY_INPUT,)
    if tool in ("edit", "floodfill") and {"symbol", "row", "col"} <= set(action):
        first = c.FILL if tool == "edit" else c.FLOOD_FILL
        return _mask(first + _whole(action["symbol"]), [(_whole(action["row"]), _whole(action["col"]))])
    if tool == "translate":
        moved = _whole(action["row_change"]), _whole(action["col_change"])
        return _mask(_TRANSLATIONS[moved], cells) if moved in _TRANSLATIONS and cells else None
    return _mask(_TURNING_TOOLS[tool], cells) if tool in _TURNING_TOOLS and cells else None


def _guess_of_operation(entry: Mapping[str, Any], after: Grid) -> Action | None:
    operation = entry["operation"]
    cells = [(_whole(cell["y"]), _whole(cell["x"])) for cell in entry.get("object") or []]
    if operation == "Paint" and cells:
        return _mask(c.FILL + _whole(entry["color"]), cells)
    if operation == "ResizeGrid":
        return (c.RESIZE, after.shape[0] - 1, after.shape[1] - 1)
    if operation == "CopyFromInput":
        return (c.COPY_INPUT,)
    code = _DIRECTIONS.get((operation, entry.get("direction", "")))
    return _mask(code, cells) if code is not None and cells else None


def _mask(operation: int, cells: list[tuple[int, int]]) -> Action:
    return (operation, *(number for cell in cells for number in cell))


def _whole(value: Any) -> int:
    """Return a whole number, which the editor writes as a number or as a text: 5, 5.0 and "5", but not 5.5 or true."""
    if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,9}", value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1 or abs(value) >= 1e9:
        raise _UnreadableError(f"cells, rows and columns are whole numbers, got {value!r:.40}")
    return int(value)


def _grid(rows: Any) -> Grid:
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == len(rows[0]) for row in rows):
        raise _UnreadableError(f"a grid is a list of rows of one length, got {rows!r:.40}")
    grid = np.array([[_whole(cell) for cell in row] for row in rows], np.int64)
    if grid.ndim != 2 or not (1 <= grid.shape[0] <= c.MAX_GRID_SIZE and 1 <= grid.shape[1] <= c.MAX_GRID_SIZE):
        raise _UnreadableError(f"a grid has sides 1..{c.MAX_GRID_SIZE}, got shape {grid.shape}")
    if grid.min() < 0 or grid.max() >= c.NUM_COLORS:
        raise _UnreadableError(f"colors are 0..{c.NUM_COLORS - 1}, got {grid.min()}..{grid.max()}")
    return grid.astype(np.int8)


class SessionVerdict(NamedTuple):
    """The result of one session: its trace, or the reason why it has none."""

    name: str
    task_id: str  # as the session names it
    num_steps: int
    pair_id: PairId | None = None  # the pair that it solves; None if it is rejected
    trace: Trace | None = None
    num_rewritten: int = 0  # steps that no single action does, written as fills of the cells that changed
    reason: str = ""  # why it is rejected
    kind: str = ""  # of the reason, the same for many sessions

    @property
    def verdict(self) -> str:
        """``exact``, ``rewritten`` or ``rejected``."""
        if self.trace is None:
            return "rejected"
        return "rewritten" if self.num_rewritten else "exact"


@dataclasses.dataclass(frozen=True)
class HumanTraces:
    """The verdicts on sessions, in their order."""

    verdicts: tuple[SessionVerdict, ...]

    @property
    def rejected(self) -> list[SessionVerdict]:
        return [one for one in self.verdicts if one.trace is None]

    @property
    def traces(self) -> dict[PairId, Trace]:
        """By pair; of several sessions that solve one, the shortest, and of equally short ones the first."""
        shortest: dict[PairId, Trace] = {}
        for one in self.verdicts:
            if one.pair_id is None or one.trace is None:
                continue
            if one.pair_id not in shortest or len(one.trace.actions) < len(shortest[one.pair_id].actions):
                shortest[one.pair_id] = one.trace
        return shortest


def convert_sessions(sessions: Iterable[HumanSession], tasks: "TaskSet") -> HumanTraces:
    """Turn sessions on the test pairs of some tasks into traces, each with a verdict.

    The editor has tools that this environment lacks (undo, layers), and some that work differently (it rotates a
    selection around its own center). A step becomes the action of the same name if that leaves exactly the grid that
    the session recorded; otherwise it becomes fills, one for each color, that leave that grid. A session is exact if
    every step became the action of the same name, rewritten if some became fills, and rejected if it cannot be read,
    its task is not among these, or it does not end in the output.
    """
    return HumanTraces(tuple(_verdict(session, tasks) for session in sessions))


def _verdict(session: HumanSession, tasks: "TaskSet") -> SessionVerdict:
    about = SessionVerdict(session.name, session.task_id, len(session.steps))
    try:
        pair_id, trace, num_rewritten = _convert(session, tasks)
    except _RejectedError as error:
        return about._replace(reason=str(error), kind=error.kind)
    except ExpertError as error:
        return about._replace(reason=str(error), kind="its actions break a rule")
    return about._replace(pair_id=pair_id, trace=trace, num_rewritten=num_rewritten)


class _RejectedError(ExpertError):
    """A session gives no trace."""

    def __init__(self, kind: str, reason: str = "") -> None:
        super().__init__(reason or kind)
        self.kind = kind


def _convert(session: HumanSession, tasks: "TaskSet") -> tuple[PairId, Trace, int]:
    if session.problem or session.start is None:
        raise _RejectedError("it cannot be read", session.problem)
    task_id = _task_named(session.task_id, tasks)
    # A session does not say which test pair it is about: the pair is the one whose output it ends in.
    end = session.steps[-1].after if session.steps else session.start
    outputs = [pair[1] for pair in tasks.raw_task(task_id).test]
    index = next((i for i, output in enumerate(outputs) if np.array_equal(output, end)), None)
    if index is None:
        raise _RejectedError("it does not end in the answer", f"its last grid answers none of the {len(outputs)} tests")
    pair = Pair(*tasks.raw_task(task_id).test[index])
    actions, num_rewritten = _actions(session.start, session, pair)
    return PairId(task_id, "test", index), checked_trace(WorkUnit(pair, HUMAN), actions), num_rewritten


def _task_named(task_id: str, tasks: "TaskSet") -> str:
    """Find a task by id or by title; Mini-ARC traces join the two with an underscore."""
    if task_id in tasks:
        return task_id
    for task in tasks:
        if task_id.endswith(f"_{task.task_id}") or (task.title and task_id.casefold() == task.title.casefold()):
            return task.task_id
    raise _RejectedError("its task is not in the dataset", f"{tasks.name!r} has no task {task_id!r}")


def _actions(start: Grid, session: HumanSession, pair: Pair) -> tuple[list[Action], int]:
    canvas = HostCanvas(pair.input)
    # The canvas begins as the pair's input; people may have begun on another grid, which is made first.
    actions = _rewritten(canvas, start)
    num_rewritten = 0
    for step in session.steps:
        if np.array_equal(canvas.grid, step.after):  # a selection, a copy, a layer, or a tool without effect
            continue
        # The action of the same name counts only if it leaves exactly the recorded grid. Otherwise the step is
        # rewritten as fills, so that after each step the canvas equals the recording.
        if step.guess is not None and (played := _played(step.guess, canvas, step.after)) is not None:
            canvas = played
            actions.append(step.guess)
        else:
            actions += _rewritten(canvas, step.after)
            num_rewritten += 1
    return [*actions, (c.SUBMIT,)], num_rewritten


def _played(guess: Action, canvas: HostCanvas, after: Grid) -> HostCanvas | None:
    """Return the canvas after an action, or None if it is invalid or leaves another grid than the recorded one."""
    tried = copy.deepcopy(canvas)
    try:
        check_action(guess, "step", "mask")
    except ExpertError:
        return None
    tried.apply(guess, "mask")
    return tried if np.array_equal(tried.grid, after) else None


def _rewritten(canvas: HostCanvas, wanted: Grid) -> list[Action]:
    """Bring the canvas to a grid by a resize and a fill for each color, and return these actions."""
    height, width = wanted.shape
    actions: list[Action] = [] if canvas.grid.shape == wanted.shape else [(c.RESIZE, height - 1, width - 1)]
    for action in actions:
        canvas.apply(action, "mask")
    # One fill for each color among the cells that change: from 0 0 0 to 0 3 5 a fill of 3 and one of 5. If all cells
    # become 0, one clear does it.
    changed = canvas.grid != wanted
    if changed.any() and not wanted.any():
        actions.append((c.CLEAR,))
    else:
        for color in np.unique(wanted[changed]).tolist():
            cells = np.argwhere(changed & (wanted == color))
            actions.append((c.FILL + color, *cells.ravel().tolist()))
    canvas.grid = wanted.copy()
    return actions
