"""Which operations of a compiled program take the time, according to a trace."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from jax.profiler import ProfileData

from jaxarc.profiling.hlo import HloModule, described, instructions_within, parse_hlo


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

    A container (while, conditional, call) lasts as long as what runs inside it, so its seconds contain those of kernels
    and of other containers and are never added to them. One in which nothing was seen to run, such as a small loop that
    was compiled into one kernel or a branch without work, is a kernel here.
    """

    kernels: tuple[OperationCost, ...]
    containers: tuple[OperationCost, ...]
    kernel_seconds: float  # of all kernels, also those that are not listed
    kernel_calls: int


class _Event(NamedTuple):
    module: str | None  # None: the backend does not say
    program: int | None
    operation: str
    seconds: float


def costliest_operations(trace_folder: str | Path, compiled_text: str, top: int = 10) -> OperationCosts:
    """Sum up the newest trace in a folder by operation of one compiled program.

    Args:
        trace_folder: what :func:`jaxarc.profiling.trace` wrote into.
        compiled_text: ``compiled.as_text()`` of the program that ran in the trace.
        top: how many kernels and how many containers to return, at least 1.

    Raises:
        FileNotFoundError: no trace lies there.
        ValueError: ``top`` is too small, the text is no compiled program, or the program did not run in the trace.
    """
    if top < 1:
        raise ValueError(f"costliest_operations: top must be at least 1, got {top}; the default is 10")
    module = parse_hlo(compiled_text)
    path = newest_trace(trace_folder)
    device_events, host_events = _events(ProfileData.from_file(str(path)).planes)
    totals = _totals(device_events, module) or _totals(host_events, module)
    if not totals:
        ran = ", ".join(sorted({event.module for event in device_events + host_events if event.module})) or "no program"
        raise ValueError(f"program {module.name} did not run in the trace {path}, but {ran} did; trace a call of it")
    costs = [_cost(module, name, *total) for name, total in totals.items()]
    costs.sort(key=lambda cost: cost.seconds, reverse=True)
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
    """What ran according to the devices, and according to the host, which for the CPU is the only record."""
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
            if is_device or "hlo_op" in stats:  # on the host, other events may bear the name of an operation
                operation = stats.get("hlo_op", event.name)
                yield _Event(stats.get("hlo_module"), stats.get("program_id"), operation, event.duration_ns * 1e-9)


def _totals(events: Iterable[_Event], module: HloModule) -> dict[str, tuple[int, float]]:
    """Calls and seconds of every operation of the program that ran."""
    totals: dict[str, tuple[int, float]] = {}
    for event in _of_program(events, module):
        calls, seconds = totals.get(event.operation, (0, 0.0))
        totals[event.operation] = (calls + 1, seconds + event.seconds)
    return totals


def _of_program(events: Iterable[_Event], module: HloModule) -> Iterator[_Event]:
    """The events of the program itself; of several with its name (other shapes), those that fit its text best."""
    programs: dict[int | None, list[_Event]] = defaultdict(list)
    for event in events:
        if event.module in (None, module.name):
            programs[event.program].append(event)
    unknown = {
        program: sum(event.operation not in module.instructions for event in members) / len(members)
        for program, members in programs.items()
    }
    best = min(unknown.values(), default=0.0)
    fitting = (event for program, members in programs.items() if unknown[program] == best for event in members)
    return (event for event in fitting if event.operation in module.instructions)


def _within(module: HloModule, name: str) -> set[str]:
    return instructions_within(module, module.instructions[name])


def _cost(module: HloModule, name: str, calls: int, seconds: float) -> OperationCost:
    one = described(module, module.instructions[name])
    return OperationCost(one.name, one.opcode, one.shape, one.op_name, one.source_line, calls, seconds)
