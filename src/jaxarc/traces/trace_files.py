"""Traces and recorded actions as lines of JSON.

``{"task_id": "007bbfb7", "pair_index": 0, "actions": [[33, 0, 0, 8, 8], ..., [34, 0, 0, 0, 0]], "split": "test",
...}``: an action is its operation and then row and column of a point, ``r1, c1, r2, c2`` of a box, or row and column of
every cell of a mask. The first three fields are needed; the others describe the trace.
"""

import json
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jaxarc.errors import JaxarcError, JaxarcWarning
from jaxarc.experts.expert import ACTION_FORMATS, Action, Pair
from jaxarc.files import ChecksumError, add_checksum, decode_text, verify_checksum, write_whole
from jaxarc.traces.units import ExpertSpec, PairId, Trace, WorkUnit

if TYPE_CHECKING:  # tasks import JAX, which files of traces do without
    from jaxarc.datasets import TaskSet

_DEFAULTS: Final = {  # of lines of other programs
    "split": "test",
    "expert": "recorded",
    "version": 1,
    "settings": "",
    "action_format": "bbox",
    "dataset": "",
    "of": 1,
    "unit": "",
}


class TraceFileError(JaxarcError, ValueError):
    """A file of traces or of recorded actions cannot be read."""


class ShortTraceFileWarning(JaxarcWarning):
    """A file has fewer lines than were written into it."""


class TraceLine(NamedTuple):
    """The content of a line."""

    pair_id: PairId
    spec: ExpertSpec
    actions: tuple[Action, ...]
    where: str  # file and line
    dataset: str  # where the task is loaded from; empty if the line has no such field
    num_written: int  # lines that were written into its file
    unit: str = ""  # hash of its pair and spec, see :class:`WorkUnit`; empty if the line has no such field


class PairFinder:
    """Finds the pairs of lines in a task set by their content: other sets have the same pairs by other numbers and ids.

    ARC-AGI-2 has tasks of ARC-AGI-1 with their pairs in another order, so that train pair 0 of a line may be train
    pair 2 of the set.
    """

    def __init__(self, tasks: "TaskSet") -> None:
        self._pairs = {
            PairId(task.task_id, split, index): Pair(*pair)  # an unknown answer is an empty grid, which equals none
            for task in tasks
            for split, pairs in (("train", task.train), ("test", task.test))
            for index, pair in enumerate(pairs)
        }
        self._ids: dict[ExpertSpec, dict[str, list[PairId]]] = {}

    def find(self, line: TraceLine) -> PairId:
        """Return the id that the set gives to the pair of a line; that of the line, if no pair is known to be equal."""
        named, spec = line.pair_id, line.spec
        if not line.unit or (named in self._pairs and self._unit(named, spec) == line.unit):
            return named
        # A hash of every pair takes a second, so only a line that names another pair asks for it.
        if spec not in self._ids:
            self._ids[spec] = {}
            for pair_id in self._pairs:
                self._ids[spec].setdefault(self._unit(pair_id, spec), []).append(pair_id)
        equal = self._ids[spec].get(line.unit, [named])
        return min(equal, key=lambda one: one.task_id != named.task_id)

    def _unit(self, pair_id: PairId, spec: ExpertSpec) -> str:
        return WorkUnit(self._pairs[pair_id], spec).content_hash


def write_trace_file(
    path: str | Path, traces: Mapping[PairId, Trace], about: Mapping[str, Any] = MappingProxyType({})
) -> Path:
    """Write traces, a line each.

    Args:
        path: of the file.
        traces: by the id of their pair.
        about: further fields of every line, for JSON; ``dataset`` is read back, the others are not.

    Raises:
        OSError: the file cannot be written.
    """
    further = {"of": len(traces), **about}
    return write_whole(path, "".join(_line(pair_id, trace, further) for pair_id, trace in traces.items()).encode())


def read_trace_file(path: str | Path) -> list[TraceLine]:
    """Read traces; lines without the further fields are taken as test pairs, boxes by an expert ``recorded``.

    Warns:
        ShortTraceFileWarning: lines are missing, perhaps because the file was cut short between two of them.

    Raises:
        TraceFileError: a line is not as this module says; names the line.
        OSError: the file cannot be read.
    """
    found = []
    for line in read_trace_lines(path):
        if isinstance(line, TraceFileError):
            raise line
        found.append(line)
    return found


def read_trace_lines(path: str | Path) -> Iterator[TraceLine | TraceFileError]:
    """Read like :func:`read_trace_file`, and yield the error of a wrong line in its place.

    Raises:
        TraceFileError: the file is not UTF-8 text.
        OSError: the file cannot be read.
    """
    # Not splitlines: it also splits at characters that JSON texts may hold.
    lines = decode_text(Path(path).read_bytes(), str(path), TraceFileError).split("\n")
    # Lines are counted as they are read; each says how many were written, so a file cut between two lines is noticed.
    count = 0
    written = 0
    for number, line in enumerate(lines, start=1):
        if line.strip():
            count += 1
            try:
                found = _read(line, f"{path}, line {number}")
            except TraceFileError as error:
                yield error
            else:
                written = max(written, found.num_written)
                yield found
    if count < written:
        missing = f"{path} has {count} of the {written} traces that were written into it"
        warnings.warn(f"{missing}; if you took none out, export it again", ShortTraceFileWarning, stacklevel=3)


def _line(pair_id: PairId, trace: Trace, about: Mapping[str, Any]) -> str:
    fields = {
        "task_id": pair_id.task_id,
        "pair_index": pair_id.pair_index,
        "actions": trace.actions,
        "split": pair_id.split,
        **trace.spec._asdict(),
        "unit": trace.unit_hash,
        **about,
    }
    return json.dumps(add_checksum(fields), separators=(",", ":")) + "\n"


def _read(line: str, where: str) -> TraceLine:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise TraceFileError(f"{where}: not JSON ({error}); write one object a line") from error
    if not isinstance(data, dict):
        raise TraceFileError(f"{where}: an object is expected, got {line[:40]!r}; write one object a line")
    try:
        data = _DEFAULTS | verify_checksum(data)
    except ChecksumError as error:
        raise TraceFileError(f"{where}: {error}") from error
    split = _field(data, "split", str, where)
    action_format = _field(data, "action_format", str, where)
    if split not in ("train", "test") or action_format not in ACTION_FORMATS:
        raise TraceFileError(
            f"{where}: split is 'train' or 'test' and action_format 'point', 'bbox' or 'mask', got {split!r:.80} "
            f"and {action_format!r:.80}; correct them"
        )
    pair_id = PairId(_field(data, "task_id", str, where), split, _field(data, "pair_index", int, where))
    expert = _field(data, "expert", str, where), _field(data, "version", int, where)
    spec = ExpertSpec(*expert, _field(data, "settings", str, where), action_format)
    about = _field(data, "dataset", str, where), _field(data, "of", int, where), _field(data, "unit", str, where)
    return TraceLine(pair_id, spec, _actions(data, where), where, *about)


def _field(data: dict[str, Any], name: str, kind: type, where: str) -> Any:
    if type(data.get(name)) is not kind:
        words = {str: "a text", int: "a whole number"}
        raise TraceFileError(f"{where}: {name!r} is {words[kind]}, got {data.get(name)!r:.80}; correct it")
    return data[name]


def _actions(data: dict[str, Any], where: str) -> tuple[Action, ...]:
    value = data.get("actions")
    if not isinstance(value, list) or not all(isinstance(action, list) and action for action in value):
        raise TraceFileError(f"{where}: 'actions' is a list of lists, such as [[34, 0, 0, 0, 0]]; correct it")
    if any(type(number) is not int for action in value for number in action):
        raise TraceFileError(f"{where}: actions hold whole numbers, such as [[34, 0, 0, 0, 0]]; correct them")
    return tuple(tuple(action) for action in value)
