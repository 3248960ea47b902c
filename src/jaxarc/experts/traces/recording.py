"""Recording: every pair of some tasks solved once by an expert, checked and kept."""

import dataclasses
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Final

from jaxarc.experts.expert import ActionFormat, Expert
from jaxarc.experts.traces.batch_expert import BatchExpert
from jaxarc.experts.traces.batch_recording import solve_units
from jaxarc.experts.traces.cache import TraceCache
from jaxarc.experts.traces.components import get_scc_graphs
from jaxarc.experts.traces.graph import Graph
from jaxarc.experts.traces.hierarchical_trace_cache import Result, record_units
from jaxarc.experts.traces.strategy import Strategy, choose_strategy
from jaxarc.experts.traces.trace import (
    Caught,
    Failure,
    RecordingFailedError,
    Trace,
    checked_trace,
    failure_of,
)
from jaxarc.experts.traces.work_unit import ExpertSpec, WorkUnit, hash_of
from jaxarc.experts.traces.workers import Workers

if TYPE_CHECKING:
    from jaxarc.datasets import TaskSet

FORMATS: Final = ("point", "bbox", "mask")
CHUNK_SIZE: Final = 64  # units between two looks at whether to stop

Progress = Callable[[int, int], bool | None]
"""Called with the units that are done and all there are; may return True to stop there."""


@dataclasses.dataclass
class Recording:
    """What was recorded."""

    hash_of_node: dict[str, str]  # the unit of each node that carries a pair
    traces: dict[str, Trace]  # by hash
    failures: dict[str, Failure]  # by hash
    num_cached: int  # units that were found in the cache
    num_recorded: int  # units that the expert solved
    is_complete: bool  # False when it was stopped before the end

    @property
    def num_duplicates(self) -> int:
        """Pairs that another pair with the same content was recorded for."""
        return len(self.hash_of_node) - len(set(self.hash_of_node.values()))

    def trace_of(self, node: str) -> Trace | None:
        """Return the trace of a node's pair, ``None`` where there is none."""
        return self.traces.get(self.hash_of_node[node])

    def nodes_of(self, unit_hash: str) -> list[str]:
        """List the nodes whose pair is this unit."""
        return [node for node, found in self.hash_of_node.items() if found == unit_hash]

    def require_complete(self) -> None:
        """Refuse a recording in which a pair has no trace.

        Raises:
            RecordingFailedError: names the first such unit by its hash and nodes, and how many more there are.
        """
        for unit_hash, failure in self.failures.items():
            more = f"; and {len(self.failures) - 1} more" if len(self.failures) > 1 else ""
            nodes = ", ".join(self.nodes_of(unit_hash))
            raise RecordingFailedError(f"unit {unit_hash} ({nodes}): {failure.kind}: {failure.message}{more}")
        if not self.is_complete:
            done, total = len(self.traces), len(set(self.hash_of_node.values()))
            raise RecordingFailedError(f"the recording was stopped after {done} of {total} units; call it again")


def record_traces(
    tasks: "TaskSet | Graph",
    expert: Expert | BatchExpert,
    action_format: ActionFormat = "bbox",
    parallel_strategy: Strategy = "auto",
    *,
    chunk_size: int = CHUNK_SIZE,
    cache: TraceCache | None = None,
    time_limit_s: float | None = None,
    processes: int = 0,
    vmap_method: str = "sequential",
    progress: Progress | None = None,
) -> Recording:
    """Let an expert solve every pair, each content once, and keep what is proven by replay.

    An expert that raises, takes too long, or returns what is invalid or does not solve, makes a failure; the others go
    on. Each trace is in the cache as soon as it is recorded, so whoever calls again goes on where the last call ended.

    Args:
        tasks: a task set, of which all pairs are recorded, or a graph.
        expert: who solves the pairs; a :class:`BatchExpert` brings its own parallelism, so it takes no strategy but
            ``auto``, no time limit and no processes.
        action_format: how its actions select cells: ``point``, ``bbox`` or ``mask``.
        parallel_strategy: see :func:`get_trace_hierarchical`.
        chunk_size: units that go through JAX at once; between chunks ``progress`` is called.
        cache: where traces are looked up and kept; nowhere by default.
        time_limit_s: seconds for one unit, after which it fails. It takes at least one process.
        processes: worker processes for the expert, which then must be importable there; 0: it works in this process.
        vmap_method: ``sequential`` calls back once for each unit; ``broadcast_all`` and ``expand_dims`` once for all
            units of a device, which keeps several processes busy on one device.
        progress: see :data:`Progress`.

    Raises:
        ValueError: an argument is wrong.
        ImportError, RuntimeError: the strategy is not possible here.
        RecordingFailedError: the expert does not start in a worker process.
        OSError: the cache cannot be read or written.
    """
    _check_arguments(action_format, chunk_size, processes)
    graph = tasks if isinstance(tasks, Graph) else Graph.of_tasks(tasks)
    spec = ExpertSpec.of(expert, action_format)
    hash_of_node, work_units = units_of(graph, spec)
    recording = Recording(hash_of_node, {}, {}, 0, 0, True)
    strategy = choose_strategy(parallel_strategy)
    if isinstance(expert, BatchExpert):
        _require_nothing_else(expert, parallel_strategy, time_limit_s, processes)
        _record_in_chunks(
            recording, work_units, lambda units: solve_units(expert, units, cache), expert.batch_size, progress
        )
    else:
        processes = max(processes, 1) if time_limit_s is not None else processes
        with _started(expert, processes, time_limit_s) as workers:
            recorder = _Recorder(expert, cache, workers)
            record = lambda units: record_units(units, recorder.record, strategy, vmap_method, chunk_size)
            run = lambda units: (record(units), recorder.take_num_cached())
            _record_in_chunks(recording, work_units, run, chunk_size, progress)
    if cache is not None:
        cache.trim()
    return recording


def units_of(graph: Graph, spec: ExpertSpec) -> tuple[dict[str, str], dict[str, str]]:
    """List the work of a graph.

    Returns:
        The hash of each node that carries a pair, and the text of each hash; what is needed comes first.
    """
    hash_of_node, work_units = {}, {}
    for component in get_scc_graphs(graph):
        for node, pair in component.pairs.items():
            text = WorkUnit(pair, spec).to_json()
            hash_of_node[node] = hash_of(text)
            work_units.setdefault(hash_of_node[node], text)
    return hash_of_node, work_units


def _started(expert: Expert, processes: int, time_limit_s: float | None) -> AbstractContextManager[Workers | None]:
    return Workers(expert, processes, time_limit_s) if processes else nullcontext()


class _Recorder:
    """Records units for one call: from the cache, or else by the expert, here or in worker processes."""

    def __init__(self, expert: Expert, cache: TraceCache | None, workers: Workers | None):
        self._expert, self._cache, self._workers = expert, cache, workers
        self._lock = threading.Lock()
        self._num_cached = 0

    def record(self, units: Sequence[tuple[str, str]]) -> list[Result]:
        """Record some units; several at once where there are several processes."""
        if self._workers is None or self._workers.count == 1 or len(units) == 1:
            return [self._record_one(*unit) for unit in units]
        return _in_threads(lambda unit: self._record_one(*unit), units, self._workers.count)

    def take_num_cached(self) -> int:
        """Return how many units came from the cache since the last call."""
        with self._lock:
            count, self._num_cached = self._num_cached, 0
        return count

    def _record_one(self, unit_hash: str, text: str) -> Result:
        if self._cache is not None and (trace := self._cache.get(unit_hash)) is not None:
            with self._lock:
                self._num_cached += 1
            return trace
        result = self._solve(unit_hash, text) if self._workers is None else self._workers.solve(unit_hash, text)
        if self._cache is not None and isinstance(result, Trace):
            self._cache.put(result)
        return result

    def _solve(self, unit_hash: str, text: str) -> Result:
        unit = WorkUnit.from_json(text)
        with Caught() as caught:
            return checked_trace(unit_hash, unit, self._expert.solve(unit.pair, unit.spec.action_format))
        return failure_of(unit_hash, caught.error)


def _record_in_chunks(
    recording: Recording,
    work_units: Mapping[str, str],
    run: Callable[[Mapping[str, str]], tuple[Mapping[str, Result], int]],
    chunk_size: int,
    progress: Progress | None,
) -> None:
    hashes = list(work_units)
    for start in range(0, len(hashes), chunk_size):
        results, num_cached = run({one: work_units[one] for one in hashes[start : start + chunk_size]})
        recording.traces.update((one, found) for one, found in results.items() if isinstance(found, Trace))
        recording.failures.update((one, found) for one, found in results.items() if isinstance(found, Failure))
        recording.num_cached += num_cached
        recording.num_recorded = len(recording.traces) - recording.num_cached
        done = min(start + chunk_size, len(hashes))
        if progress is not None and progress(done, len(hashes)) and done < len(hashes):
            recording.is_complete = False
            break


def _in_threads(
    call: Callable[[tuple[str, str]], Result], units: Sequence[tuple[str, str]], count: int
) -> list[Result]:
    """Call for all units from some threads; what one raises is raised here."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for place in range(len(units)):
        waiting.put(place)
    results: dict[int, Result] = {}
    errors: list[Exception] = []

    def work() -> None:
        while not errors:
            try:
                place = waiting.get_nowait()
            except queue.Empty:
                return
            with Caught() as caught:
                results[place] = call(units[place])
            if caught.error is not None:
                errors.append(caught.error)

    threads = [threading.Thread(target=work) for _ in range(min(count, len(units)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[place] for place in range(len(units))]


def _check_arguments(action_format: str, chunk_size: int, processes: int) -> None:
    if action_format not in FORMATS:
        raise ValueError(f"action_format is one of {', '.join(map(repr, FORMATS))}, got {action_format!r}; choose one")
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, got {chunk_size}; give the units that are recorded at once")
    if processes < 0:
        raise ValueError(f"processes must be at least 0, got {processes}; 0 lets the expert work in this process")


def _require_nothing_else(
    expert: BatchExpert, parallel_strategy: str, time_limit_s: float | None, processes: int
) -> None:
    given = {"parallel_strategy": parallel_strategy, "time_limit_s": time_limit_s, "processes": processes}
    for name, standard in (("parallel_strategy", "auto"), ("time_limit_s", None), ("processes", 0)):
        if given[name] != standard:
            raise ValueError(
                f"the expert {expert.name!r} solves whole batches on the device by itself, so {name} must be "
                f"{standard!r}, got {given[name]!r}; leave it out"
            )
