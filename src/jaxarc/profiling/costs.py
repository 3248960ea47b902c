"""List the operations of a compiled program that take the most time, according to a trace.

A trace names the instructions that ran, the text of the compiled program says what each is and where it comes from:

    trace      dot.7, 3 calls, 1.2 ms                   while.2, 1 call, 4.0 ms
    program    %dot.7 = f32[8,8] dot(...), metadata={op_name="jit(f)/dot_general" source_file="net.py" source_line=12}
               %while.2 = ... while(...), body=%body    (so all instructions of %body run within while.2)
"""

import functools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from jax.profiler import ProfileData

_MODULE: Final = re.compile(r"HloModule ([^\s,]+)")
_COMPUTATION: Final = re.compile(r"(?:ENTRY )?%?([^\s(]+) \(.*\{$")
_INSTRUCTION: Final = re.compile(r"\s+(?:ROOT )?%?([^\s=]+) = (.+)$")
_OPCODE: Final = re.compile(r"\s*([\w\-]+)\(")
_CALLED: Final = re.compile(r"(?:calls|to_apply|body|condition|true_computation|false_computation)=%?([^\s,)}]+)")
_BRANCHES: Final = re.compile(r"(?:branch_computations|called_computations)=\{([^}]*)\}")
_OP_NAME: Final = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_FRAME: Final = re.compile(r"stack_frame_id=(\d+)")
_FILE_AND_LINE: Final = re.compile(r'source_file="([^"]*)" source_line=(\d+)')
_TABLE_ROW: Final = re.compile(r"(\d+) (.+)$")
_TABLES: Final = ("FileNames", "FileLocations", "StackFrames")


class OperationCost(NamedTuple):
    """All calls of one operation of a compiled program."""

    name: str  # of the HLO instruction
    opcode: str
    shape: str
    op_name: str  # the path of JAX operations that it comes from, or ""
    source_line: str  # "file.py:12", or ""
    calls: int
    seconds: float  # of all calls together


class OperationCosts(NamedTuple):
    """The costliest operations of a program, costliest first.

    The seconds of a container (while, conditional, call) include those of the kernels and containers inside it, so they
    are never added to them. A container without instructions in the trace, such as a small loop that was compiled into
    one kernel or a branch without work, is a kernel here.
    """

    kernels: tuple[OperationCost, ...]
    containers: tuple[OperationCost, ...]
    kernel_seconds: float  # of all kernels, also those that are not listed
    kernel_calls: int


class _Event(NamedTuple):
    module: str | None  # None: the backend does not name it
    program: int | None
    operation: str
    seconds: float


class _Instruction(NamedTuple):
    """One instruction of a compiled program."""

    name: str
    shape: str
    opcode: str
    called: tuple[str, ...]  # computations: the body of a loop, the branches of a conditional, the content of a fusion
    op_name: str  # the path of JAX operations that it comes from, or ""
    source_line: str  # "file.py:12", or ""


class _HloModule(NamedTuple):
    """A compiled program."""

    name: str
    instructions: dict[str, _Instruction]  # by name, which is unique in the program
    computations: dict[str, list[str]]  # name of a computation -> its instructions


def costliest_operations(trace_folder: str | Path, compiled_text: str, top: int = 10) -> OperationCosts:
    """Sum up the newest trace in a folder by operation of one compiled program.

    Args:
        trace_folder: what :func:`jaxarc.profiling.trace` wrote into.
        compiled_text: ``compiled.as_text()`` of the program that ran in the trace.
        top: how many kernels and how many containers to return, at least 1.

    Raises:
        FileNotFoundError: the folder holds no trace.
        ValueError: ``top`` is too small, the text is no compiled program, or the program did not run in the trace.
    """
    if top < 1:
        raise ValueError(f"costliest_operations: top must be at least 1, got {top}; the default is 10")
    module = _parse_hlo(compiled_text)
    path = newest_trace(trace_folder)
    device_events, host_events = _events(ProfileData.from_file(str(path)).planes)
    # A GPU has events of its own; a CPU records its operations on the host.
    totals = _totals(device_events, module) or _totals(host_events, module)
    if not totals:
        ran = ", ".join(sorted({event.module for event in device_events + host_events if event.module})) or "no program"
        raise ValueError(f"program {module.name} did not run in the trace {path}, but {ran} did; trace a call of it")
    costs = [_cost(module, name, *total) for name, total in totals.items()]
    costs.sort(key=lambda cost: cost.seconds, reverse=True)
    # A loop's time includes that of its body. Operations with others of the trace inside are containers, and listed
    # apart, so that the sum of the kernels counts no second twice.
    is_container = {name: not totals.keys().isdisjoint(_within(module, name)) for name in totals}
    kernels = [cost for cost in costs if not is_container[cost.name]]
    return OperationCosts(
        kernels=tuple(kernels[:top]),
        containers=tuple([cost for cost in costs if is_container[cost.name]][:top]),
        kernel_seconds=sum(cost.seconds for cost in kernels),
        kernel_calls=sum(cost.calls for cost in kernels),
    )


def newest_trace(trace_folder: str | Path) -> Path:
    """Return the ``*.xplane.pb`` file below a folder that was written last.

    Raises:
        FileNotFoundError: there is none.
    """
    paths = list(Path(trace_folder).rglob("*.xplane.pb"))
    if not paths:
        raise FileNotFoundError(f"no trace (*.xplane.pb) below {trace_folder}; record one with jaxarc.profiling.trace")
    return max(paths, key=lambda path: path.stat().st_mtime_ns)


def _events(planes: Iterable[Any]) -> tuple[list[_Event], list[_Event]]:
    """Events of the devices, and events of the host, which are all that a CPU records."""
    on_device: list[_Event] = []
    on_host: list[_Event] = []
    for plane in planes:
        is_device = plane.name.startswith("/device:")
        (on_device if is_device else on_host).extend(_events_of(plane, is_device))
    return on_device, on_host


def _events_of(plane: Any, is_device: bool) -> Iterator[_Event]:
    for line in plane.lines:
        for event in line.events:
            stats = dict(event.stats)
            if is_device or "hlo_op" in stats:  # other events of the host may have the name of an operation
                operation = stats.get("hlo_op", event.name)
                yield _Event(stats.get("hlo_module"), stats.get("program_id"), operation, event.duration_ns * 1e-9)


def _totals(events: Iterable[_Event], module: _HloModule) -> dict[str, tuple[int, float]]:
    """Calls and seconds of every operation of the program that ran."""
    totals: dict[str, tuple[int, float]] = {}
    for event in _of_program(events, module):
        calls, seconds = totals.get(event.operation, (0, 0.0))
        totals[event.operation] = (calls + 1, seconds + event.seconds)
    return totals


def _of_program(events: Iterable[_Event], module: _HloModule) -> Iterator[_Event]:
    """The events of the program; of several programs of its name (other shapes), those that fit its text best.

    A program fits the better the fewer of its events name an operation that the text does not have.
    """
    programs: dict[int | None, list[_Event]] = defaultdict(list)
    for event in events:
        if event.module in (None, module.name):
            programs[event.program].append(event)
    # Programs of one name, compiled for several shapes: the one whose events are most often instructions of this text
    # is meant. Shares 0.0 and 0.4 of unknown events choose the first.
    unknown = {
        program: sum(event.operation not in module.instructions for event in members) / len(members)
        for program, members in programs.items()
    }
    best = min(unknown.values(), default=0.0)
    fitting = (event for program, members in programs.items() if unknown[program] == best for event in members)
    return (event for event in fitting if event.operation in module.instructions)


def _within(module: _HloModule, name: str) -> set[str]:
    return _instructions_within(module, module.instructions[name])


def _cost(module: _HloModule, name: str, calls: int, seconds: float) -> OperationCost:
    one = _described(module, module.instructions[name])
    return OperationCost(one.name, one.opcode, one.shape, one.op_name, one.source_line, calls, seconds)


def _parse_hlo(text: str) -> _HloModule:
    """Read the text of ``compiled.as_text()``.

    Raises:
        ValueError: it is not the text of a compiled program.
    """
    header = _MODULE.match(text)
    if header is None:
        raise ValueError(f"not the text of a compiled program: it starts with {text[:40]!r}; pass compiled.as_text()")
    instructions: dict[str, _Instruction] = {}
    computations: dict[str, list[str]] = {}
    source_line = functools.partial(_source_line, _tables(text))
    # A computation's header begins a new list, and the instructions below it belong to it until the next header.
    members: list[str] = []
    for line in text.splitlines():
        if found := _INSTRUCTION.match(line):
            instruction = _instruction(found[1], found[2], source_line(found[2]))
            instructions[instruction.name] = instruction
            members.append(instruction.name)
        elif found := _COMPUTATION.match(line):
            members = computations[found[1]] = []
    return _HloModule(header[1], instructions, computations)


def _instructions_within(module: _HloModule, instruction: _Instruction) -> set[str]:
    """Return the names of all instructions that an instruction calls, and of those that they call."""
    # A walk over the call graph, each instruction once: a body that calls itself again would not end otherwise.
    found: set[str] = set()
    waiting = list(instruction.called)
    while waiting:
        new = [name for name in module.computations.get(waiting.pop(), []) if name not in found]
        found.update(new)
        waiting.extend(called for name in new for called in module.instructions[name].called)
    return found


def _described(module: _HloModule, instruction: _Instruction) -> _Instruction:
    """Return the instruction; one without a source, such as a fusion, gets that of the last instruction it calls."""
    if instruction.op_name:
        return instruction
    inner = [module.instructions[name] for called in instruction.called for name in module.computations.get(called, [])]
    known = [one for one in inner if one.op_name and one.opcode != "parameter"]
    return instruction._replace(op_name=known[-1].op_name, source_line=known[-1].source_line) if known else instruction


def _instruction(name: str, definition: str, source_line: str) -> _Instruction:
    end = _end_of_shape(definition)
    opcode = _OPCODE.match(definition, end)
    branches = [branch.strip().lstrip("%") for group in _BRANCHES.findall(definition) for branch in group.split(",")]
    op_name = _OP_NAME.search(definition)
    return _Instruction(
        name,
        shape=definition[:end],
        opcode=opcode[1] if opcode else "",
        called=(*_CALLED.findall(definition), *filter(None, branches)),
        op_name=op_name[1] if op_name else "",
        source_line=source_line,
    )


def _end_of_shape(definition: str) -> int:
    """The position after the shape: a word, or a tuple in parentheses with blanks in it."""
    if not definition.startswith("("):
        return definition.find(" ")
    depth = 0
    for position, character in enumerate(definition):
        # Of "(f32[4], (s32[], f32[])) while(...)" the depth is 0 again behind the second closing parenthesis.
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return position + 1
    return len(definition)


def _source_line(tables: dict[str, dict[str, str]], definition: str) -> str:
    """Return "file:line" of an instruction, which the text gives directly or as the number of a row of its tables."""
    if written := _FILE_AND_LINE.search(definition):
        return f"{written[1]}:{written[2]}"
    # A row of stack frames names a location, which names a file and a line: three tables, one after the other.
    frame = _FRAME.search(definition)
    location = _entry(tables["StackFrames"], frame[1] if frame else "", "file_location_id")
    file = tables["FileNames"].get(_entry(tables["FileLocations"], location, "file_name_id"), "").strip('"')
    line = _entry(tables["FileLocations"], location, "line")
    return f"{file}:{line}" if file and line else ""


def _entry(table: dict[str, str], row: str, key: str) -> str:
    found = re.search(rf"\b{key}=(\d+)", table.get(row, ""))
    return found[1] if found else ""


def _tables(text: str) -> dict[str, dict[str, str]]:
    """The tables of files, locations and stack frames at the top of the text: row number -> the rest of the row."""
    tables: dict[str, dict[str, str]] = {name: {} for name in _TABLES}
    table: dict[str, str] = {}
    for line in text.splitlines():
        if row := _TABLE_ROW.match(line):
            table[row[1]] = row[2]
        elif line:
            table = tables.get(line, {})
    return tables
