"""Readers of traces as targets: files of traces and of recorded actions, people's sessions, the cache."""

import contextlib
import csv
import hashlib
import io
import json
import sqlite3
from pathlib import Path
from typing import Any, Final

from campaign.inputs.input_target import Maker, Target, json_bytes, parsed_json, require
from campaign.inputs.task_inputs import small_tasks
from jaxarc.config import JaxArcConfig
from jaxarc.evaluation.agent import RecordedAgent, RecordingError, read_recordings
from jaxarc.evaluation.submission import SubmissionError, read_submission, score_submission
from jaxarc.experts import ExpertError, InvalidActionError, Pair
from jaxarc.traces import Trace, TraceCache
from jaxarc.traces.sessions import HUMAN, SessionFileError, convert_sessions, read_human_sessions
from jaxarc.traces.trace_files import TraceFileError, read_trace_file
from jaxarc.traces.units import checked_actions

_LINE: Final[dict[str, Any]] = {
    "task_id": "one",
    "pair_index": 0,
    "actions": [[33, 0, 0, 2, 2], [9, 0, 0, 1, 1], [34, 0, 0, 0, 0]],
    "split": "test",
    "expert": "painter",
    "version": 1,
    "settings": "",
    "action_format": "bbox",
    "dataset": "",
}
_FORMATS: Final = ("point", "bbox", "mask")


def trace_file(folder: Path) -> Target:
    file = folder / "traces.jsonl"

    def read(content: bytes) -> None:
        file.write_bytes(content)
        for line in read_trace_file(file):
            require(line.pair_id.split in ("train", "test") and bool(line.where), "a line of no place")
            require(all(type(number) is int for action in line.actions for number in action), "no whole number")

    short = {name: _LINE[name] for name in ("task_id", "pair_index", "actions")}
    seeds = (_lines(_LINE, short), _lines({**_LINE, "action_format": "mask", "actions": [[3, 0, 0, 1, 1], [34]]}))
    return Target(read, (TraceFileError,), seeds, (*_LINE, *_FORMATS, "train"))


def recorded_actions(folder: Path) -> Target:
    """Recorded actions, up to the agent that plays them."""
    file, tasks = folder / "recorded.jsonl", small_tasks()
    configs = [JaxArcConfig().with_fields(selection_format=kind) for kind in _FORMATS]

    def read(content: bytes) -> None:
        file.write_bytes(content)
        recordings = read_recordings(file)
        for config in configs[:2]:
            RecordedAgent.create(recordings, tasks, config)

    seeds = (_lines(_LINE), _lines({**_LINE, "actions": [[34, 0, 0]]}))
    errors = (TraceFileError, RecordingError, InvalidActionError)
    return Target(read, errors, seeds, ("task_id", "pair_index", "actions", "one", "two"))


def solution(folder: Path) -> Target:
    """Actions of an expert of one's own."""
    pair = Pair(*map(small_tasks().raw_task("one").test[0].__getitem__, (0, 1)))

    def read(content: bytes) -> None:
        data = parsed_json(content)
        kind = data.get("format") if isinstance(data, dict) else "bbox"
        actions = data.get("actions") if isinstance(data, dict) else data
        checked_actions(pair, actions, kind if kind in _FORMATS else "bbox")  # type: ignore[arg-type]

    mask = [[31], [41, 2, 0], [9, 0, 0], [8, 1, 0], [7, 2, 0], [34]]
    seeds = ({"format": "mask", "actions": mask}, {"format": "bbox", "actions": _LINE["actions"]})
    return Target(read, (ExpertError,), tuple(map(json_bytes, seeds)), ("actions", "format", *_FORMATS))


def mini_arc_session(folder: Path) -> Target:
    file, tasks = folder / "session.json", small_tasks()

    def read(content: bytes) -> None:
        file.write_bytes(content)
        _require_told(convert_sessions(read_human_sessions(file), tasks))

    entries = [
        {"action": {"tool": "start"}, "grid": [[7, 8, 9]]},
        {"action": {"tool": "edit", "symbol": 1, "row": 0, "col": 1}, "grid": [[7, 1, 9]]},
        {"action": {"tool": "translate", "row_change": 1, "col_change": 0, "selected_cells": [{"row": 0, "col": 0}]},
         "grid": [[7, 1, 9]]},
        {"action": {"tool": "rotate", "selected_cells": []}, "grid": [[9], [8], [7]]},
    ]  # fmt: skip
    record = {"task_id": "x_one", "action_sequence": json.dumps({"action_sequence": entries})}
    words = ("task_id", "action_sequence", "tool", "grid", "row", "edit", "floodfill", "copyFromInput", "reflectX")
    return Target(read, (SessionFileError,), (json_bytes(record),), words)


def arctraj_session(folder: Path) -> Target:
    """The rows of a CSV file that is whole, or the bytes of one."""
    file, tasks = folder / "table.csv", small_tasks()

    def read(content: bytes) -> None:
        data = parsed_json(content)
        rows = [list(map(_text, row if isinstance(row, list) else [row])) for row in data or ()] \
            if isinstance(data, list) else None  # fmt: skip
        file.write_bytes(content if rows is None else _table(rows))
        _require_told(convert_sessions(read_human_sessions(file), tasks))

    words = ("operation", "grid", "object", "color", "direction", "Paint", "Move", "Rotate", "Flip", "ResizeGrid", "up")
    seeds = (json_bytes([["one", _OPERATIONS]]), _table([["one", json.dumps(_OPERATIONS)]]))
    return Target(read, (SessionFileError,), seeds, words)


def checked_trace(folder: Path) -> Target:
    """A cached trace whose checksum is right, whatever it says."""
    cache = TraceCache(folder)
    cache.put(Trace("0" * 64, HUMAN, ((34,),)))

    def read(content: bytes) -> None:
        with contextlib.closing(sqlite3.connect(cache.path)) as connection, connection:
            text = content.decode(errors="surrogateescape")
            values = (text if text.isprintable() else content, hashlib.sha256(content).hexdigest())
            connection.execute("UPDATE traces SET trace = ?, sha256 = ?", values)
        trace = cache.get("0" * 64)
        require(trace is None or trace.unit_hash == "0" * 64, "the trace of another unit")
        require(len(list(cache.traces())) == (trace is not None), "the cache lists what it does not read")

    return Target(read, (), (_TRACE,), ("unit", "spec", "actions"))


def submission_file(folder: Path) -> Target:
    file, tasks = folder / "submission.json", small_tasks()

    def read(content: bytes) -> None:
        file.write_bytes(content)
        score = score_submission(read_submission(file), tasks)
        require(0 <= score.output_score <= 1, "no score")

    inputs = [{"attempt_1": [[9], [8], [7]], "attempt_2": [[0]]}]
    return Target(
        read, (SubmissionError,), (json_bytes({"one": inputs, "two": inputs}),), ("attempt_1", "attempt_2", "one")
    )


TARGETS: Final[tuple[Maker, ...]] = (
    *(trace_file, recorded_actions, solution),
    *(mini_arc_session, arctraj_session, checked_trace, submission_file),
)

_OPERATIONS: Final = [
    {"operation": "Paint", "color": 3, "object": [{"x": 0, "y": 0}], "grid": [[7, 8, 9]]},
    {"operation": "Move", "direction": "up", "object": [{"x": 1, "y": 0}], "grid": [[3, 8, 9]]},
    {"operation": "ResizeGrid", "grid": [[3], [8], [9]]},
    {"operation": "Submit", "grid": [[9], [8], [7]]},
]
_TRACE: Final = json.dumps(
    {"unit": "0" * 64, "spec": ["painter", 1, "", "bbox", [30, 30]], "actions": _LINE["actions"]},
    separators=(",", ":"),
    sort_keys=True,
).encode()


def _require_told(found: Any) -> None:
    for rejected in found.rejected:
        require(rejected.reason != "", "a session is rejected without a reason")
        require(
            rejected.reason.isprintable(),
            f"a reason of several lines, or with control characters: {rejected.reason!r:.200}",
        )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _table(rows: list[list[str]]) -> bytes:
    buffer = io.StringIO(newline="")
    csv.writer(buffer).writerows([["taskId", "actionSequence"], *rows])
    return buffer.getvalue().encode("utf-8", "surrogatepass")


def _lines(*values: Any) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()
