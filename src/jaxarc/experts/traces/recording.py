"""Record traces: an expert solves every pair of some tasks once, each solution is checked, and kept in a cache.

Units are independent, so they may be solved in any order and in several worker processes at once
(:mod:`jaxarc.experts.traces.workers`). Nothing here imports JAX.
"""

import dataclasses
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from jaxarc.experts.expert import (
    ACTION_FORMATS,
    ActionFormat,
    AnyExpert,
    BatchExpert,
    Caught,
    ExpertError,
    HiddenAnswerExpert,
    Pair,
    SingleExpert,
)
from jaxarc.experts.traces.cache import TraceCache
from jaxarc.experts.traces.graph import Graph, PairChoice, demonstrations_by_node, get_scc_graphs
from jaxarc.experts.traces.trace import (
    ExpertSpec,
    Failure,
    RecordingFailedError,
    Trace,
    WorkUnit,
    checked_trace,
    failure_of,
    hash_of,
    solve_unit,
)
from jaxarc.experts.traces.workers import Workers

if TYPE_CHECKING:
    from jaxarc.datasets import TaskSet

CHUNK_SIZE: Final = 64  # units between two calls of ``progress``

Progress: TypeAlias = Callable[[int, int], bool | None]
"""Called with the units that are done and all there are; may return True to stop there."""

Result: TypeAlias = Trace | Failure

RecordUnits: TypeAlias = Callable[[Sequence[tuple[str, str]]], list[Result]]
"""Records units, each given by hash and text, and returns their results in the same order."""

Dispatch: TypeAlias = Callable[[Mapping[str, str], RecordUnits], Mapping[str, Result]]
"""Hands units (text by hash) to a recorder and returns the results by hash, in the order of the units."""


@dataclasses.dataclass
class Recording:
    """The traces and failures of a recording."""

    hash_of_node: dict[str, str]  # the unit of each node that carries a pair
    traces: dict[str, Trace]  # by hash
    failures: dict[str, Failure]  # by hash
    num_cached: int  # units that were found in the cache
    num_recorded: int  # units that the expert solved
    is_complete: bool  # False when ``progress`` stopped it before the end

    @property
    def num_duplicates(self) -> int:
        """Pairs that share their unit with an earlier pair."""
        return len(self.hash_of_node) - len(set(self.hash_of_node.values()))

    def trace_of(self, node: str) -> Trace | None:
        """Return the trace of a node's pair, ``None`` if it has none."""
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
            done = len(self.traces)
            total = len(set(self.hash_of_node.values()))
            raise RecordingFailedError(f"the recording was stopped after {done} of {total} units; call it again")


def record_traces(
    tasks: "TaskSet | Graph",
    expert: AnyExpert,
    action_format: ActionFormat = "bbox",
    *,
    pairs: PairChoice = "all",
    chunk_size: int = CHUNK_SIZE,
    cache: TraceCache | None = None,
    time_limit_s: float | None = None,
    processes: int = 0,
    progress: Progress | None = None,
    dispatch: Dispatch | None = None,
) -> Recording:
    """Let an expert solve every pair, each content once, and keep the solutions that replay proves.

    An expert that raises, takes too long, or returns actions that are invalid or do not solve the pair makes a failure;
    the other pairs go on. Each trace is in the cache as soon as it is recorded: after a stop, the same call continues.

    Args:
        tasks: a task set, or a graph, whose pairs are all recorded.
        expert: solves the pairs; a :class:`BatchExpert` brings its own parallelism, so it takes no time limit, no
            processes and no dispatch. A :class:`HiddenAnswerExpert` needs a task set, whose train pairs it is shown.
        action_format: how its actions select cells: ``point``, ``bbox`` or ``mask``.
        pairs: which pairs of each task of a task set.
        chunk_size: units between two calls of ``progress``.
        cache: where traces are looked up and kept; without one, only the result holds them.
        time_limit_s: seconds for one unit, after which it fails. It takes at least one process.
        processes: worker processes for the expert, which then must be importable there; 0: it works in this process.
        progress: see :data:`Progress`.
        dispatch: another way to hand out the units of a chunk, such as through JAX; see
            :func:`jaxarc.experts.traces.hierarchical_trace_cache.record_through_jax`.

    Raises:
        ValueError: an argument is wrong.
        RecordingFailedError: the expert does not start in a worker process.
        OSError: the cache cannot be read or written.
    """
    _check_arguments(action_format, chunk_size, processes)
    graph = tasks if isinstance(tasks, Graph) else Graph.of_tasks(tasks, pairs)
    demonstrations = _demonstrations(tasks, expert) if isinstance(expert, HiddenAnswerExpert) else {}
    # Equal pairs have equal texts and one hash, so the expert solves each content once, for all nodes that carry it.
    hash_of_node, work_units = units_of(graph, ExpertSpec.of(expert, action_format), demonstrations)
    recording = Recording(hash_of_node, {}, {}, 0, 0, True)
    if isinstance(expert, BatchExpert):
        _require_defaults(expert, time_limit_s=time_limit_s, processes=processes, dispatch=dispatch)
        solve = lambda units: _solve_batch(expert, units, cache)
        _record_in_chunks(recording, work_units, solve, expert.batch_size, progress)
    else:
        if isinstance(expert, HiddenAnswerExpert):
            expert.prepare()
        # Only a process can be ended from outside, so a time limit needs one.
        count = max(processes, 1) if time_limit_s is not None else processes
        with _started(expert, count, time_limit_s) as workers:
            recorder = _Recorder(expert, cache, workers, dispatch or _dispatch_all)
            _record_in_chunks(recording, work_units, recorder.run, chunk_size, progress)
    if cache is not None:
        cache.trim()
    return recording


def units_of(
    graph: Graph, spec: ExpertSpec, demonstrations: Mapping[str, tuple[Pair, ...]] = MappingProxyType({})
) -> tuple[dict[str, str], dict[str, str]]:
    """List the work of a graph; where it shows demonstrations, equal pairs are solved by those of the first node.

    Returns:
        The hash of each node that carries a pair, and the text of each hash; what is needed comes first.
    """
    hash_of_node = {}
    work_units = {}
    for component in get_scc_graphs(graph):
        for node, pair in component.pairs.items():
            unit = WorkUnit(pair, spec)
            hash_of_node[node] = hash_of(unit.to_json())
            text = unit._replace(demonstrations=demonstrations.get(node, ())).to_json()
            # A dict keeps the order of its first entries: a unit is recorded when the first node that carries it has
            # its turn.
            work_units.setdefault(hash_of_node[node], text)
    return hash_of_node, work_units


def _demonstrations(tasks: "TaskSet | Graph", expert: HiddenAnswerExpert) -> dict[str, tuple[Pair, ...]]:
    if isinstance(tasks, Graph):
        raise ValueError(
            f"the expert {expert.name!r} solves a pair from the other pairs of its task, which a Graph of "
            f"{len(tasks.pairs)} pairs does not tell; pass the task set"
        )
    return demonstrations_by_node(tasks)


def _check_arguments(action_format: str, chunk_size: int, processes: int) -> None:
    if action_format not in ACTION_FORMATS:
        formats = ", ".join(map(repr, ACTION_FORMATS))
        raise ValueError(f"action_format is one of {formats}, got {action_format!r}; choose one")
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, got {chunk_size}; give the units that are recorded at once")
    if processes < 0:
        raise ValueError(f"processes must be at least 0, got {processes}; 0 lets the expert work in this process")


def _require_defaults(expert: BatchExpert, **given: Any) -> None:
    for name, value in given.items():
        default = 0 if name == "processes" else None
        if value != default:
            raise ValueError(
                f"the expert {expert.name!r} solves whole batches on the device by itself, so {name} must be "
                f"{default!r}, got {value!r}; leave it out"
            )


def _started(
    expert: SingleExpert, processes: int, time_limit_s: float | None
) -> AbstractContextManager[Workers | None]:
    return Workers(expert, processes, time_limit_s) if processes else nullcontext()


def _record_in_chunks(
    recording: Recording,
    work_units: Mapping[str, str],
    run: Callable[[Mapping[str, str]], tuple[Mapping[str, Result], int]],
    chunk_size: int,
    progress: Progress | None,
) -> None:
    """Run the units chunk by chunk; ``run`` returns the results by hash, and how many came from the cache."""
    # With 150 units and chunks of 64, `progress` is called at 64, 128 and 150; a wish to stop at the last changes
    # nothing.
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


def _dispatch_all(units: Mapping[str, str], record: RecordUnits) -> Mapping[str, Result]:
    return dict(zip(units, record(list(units.items())), strict=True))


class _Recorder:
    """Records units for one call: from the cache, or else by the expert, here or in worker processes."""

    def __init__(
        self,
        expert: SingleExpert,
        cache: TraceCache | None,
        workers: Workers | None,
        dispatch: Dispatch,
    ):
        self._expert = expert
        self._cache = cache
        self._workers = workers
        self._dispatch = dispatch
        self._lock = threading.Lock()
        self._num_cached = 0

    def run(self, units: Mapping[str, str]) -> tuple[Mapping[str, Result], int]:
        """Record a chunk; returns the results by hash, and how many of them came from the cache."""
        # The dispatch may call back from several threads, so the count is behind a lock; it starts anew for each chunk.
        results = self._dispatch(units, self._record)
        with self._lock:
            num_cached = self._num_cached
            self._num_cached = 0
        return results, num_cached

    def _record(self, units: Sequence[tuple[str, str]]) -> list[Result]:
        """Record some units; several at once if there are several processes."""
        # A thread does no more than wait for its worker process; without several of these, threads would only take
        # turns.
        if self._workers is None or self._workers.count == 1 or len(units) == 1:
            return [self._record_one(*unit) for unit in units]
        return _in_threads(lambda unit: self._record_one(*unit), units, self._workers.count)

    def _record_one(self, unit_hash: str, text: str) -> Result:
        if self._cache is not None and (trace := self._cache.get(unit_hash)) is not None:
            with self._lock:
                self._num_cached += 1
            return trace
        # A failure is not kept: it may have been the time limit or the machine, and the next call tries again.
        result = self._solve(unit_hash, text) if self._workers is None else self._workers.solve(unit_hash, text)
        if self._cache is not None and isinstance(result, Trace):
            self._cache.put(result)
        return result

    def _solve(self, unit_hash: str, text: str) -> Result:
        unit = WorkUnit.from_json(text)
        with Caught() as caught:
            return Trace(unit_hash, unit.spec, solve_unit(self._expert, unit))
        return failure_of(unit_hash, caught.error)


def _in_threads(
    call: Callable[[tuple[str, str]], Result], units: Sequence[tuple[str, str]], count: int
) -> list[Result]:
    """Call for all units from some threads; an error of one is raised here."""
    # Each thread takes the next index as soon as it is free, so one long unit holds up one thread. After an error no
    # thread takes another index, and the results are put in order at the end.
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for index in range(len(units)):
        waiting.put(index)
    results: dict[int, Result] = {}
    errors: list[Exception] = []

    def work() -> None:
        while not errors:
            try:
                index = waiting.get_nowait()
            except queue.Empty:
                return
            with Caught() as caught:
                results[index] = call(units[index])
            if caught.error is not None:
                errors.append(caught.error)

    threads = [threading.Thread(target=work) for _ in range(min(count, len(units)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[index] for index in range(len(units))]


def _solve_batch(
    expert: BatchExpert, work_units: Mapping[str, str], cache: TraceCache | None
) -> tuple[dict[str, Result], int]:
    """Record units by an expert that solves many at once; returns results by hash, and how many the cache had.

    Raises:
        ExpertError: the expert refuses to begin, for example because it does not know the action format. Any other
            error is the failure of the units that it gave no answer for.
        OSError: the cache cannot be read or written.
    """
    results: dict[str, Result] = {}
    # Units in the cache first; the expert gets one batch of all the others.
    for unit_hash in work_units:
        if cache is not None and (trace := cache.get(unit_hash)) is not None:
            results[unit_hash] = trace
    num_cached = len(results)
    units = {one: WorkUnit.from_json(text) for one, text in work_units.items() if one not in results}
    for unit_hash, actions, error in _answers(expert, units) if units else ():
        result = _batch_result(unit_hash, units[unit_hash], actions, error)
        if cache is not None and isinstance(result, Trace):
            cache.put(result)
        results[unit_hash] = result
    return {unit_hash: results[unit_hash] for unit_hash in work_units}, num_cached


def _answers(expert: BatchExpert, units: Mapping[str, WorkUnit]) -> Iterator[tuple[str, Any, Exception | None]]:
    """Yield the expert's actions for each unit, and at the end an error for each unit without an answer."""
    hashes = list(units)
    # The expert may raise at any of three points: in the call, at an answer, or by an answer that is no index and
    # actions. All of them end its answers; `answer` stays None, and the units still waiting share the error.
    waiting = dict.fromkeys(units)
    answers: Iterator[tuple[int, Any]] | None = None
    while True:
        answer: tuple[str, Any] | None = None
        with Caught() as caught:
            if answers is None:
                pairs = [unit.pair for unit in units.values()]
                answers = iter(expert.solve_all(pairs, units[hashes[0]].spec.action_format))
            index, actions = next(answers)
            answer = hashes[index], actions
        if answer is None:
            break
        waiting.pop(answer[0], None)
        yield *answer, None
    # No unit has an answer: the expert refuses the whole batch, which is an error of the call and not of each pair.
    if isinstance(caught.error, ExpertError) and len(waiting) == len(hashes):
        raise caught.error
    is_exhausted = isinstance(caught.error, StopIteration)
    error = ExpertError(f"{expert.name} gave no answer for this pair") if is_exhausted else caught.error
    yield from ((unit_hash, None, error) for unit_hash in waiting)


def _batch_result(unit_hash: str, unit: WorkUnit, actions: Any, error: Exception | None) -> Result:
    if error is not None:
        return failure_of(unit_hash, error)
    with Caught() as caught:
        return checked_trace(unit_hash, unit, actions)
    return failure_of(unit_hash, caught.error)
