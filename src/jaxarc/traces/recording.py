"""Record traces: units of a graph, what is needed first, from the cache or else by the expert, each content once.

There is one path, and the strategy is the part of it that asks for the units of a chunk:

    tasks -> Graph -> units by hash -> a chunk of them in the store -> strategy -> callback -> cache, or else expert

    store                 0: (hash, text)  1: ...  2: ...  3: ...  4: ...

    ``sequential``        record(0), record(1), ...                       in this thread, without JAX
    ``vmap``              [0, 1, 2, 3, 4] on one device, and jax.pure_callback calls record
    ``pmap``, 2 devices   device 0: [0, 2, 4]    device 1: [1, 3, -1]     -1 is padding

JAX passes arrays of numbers and no Python objects, so an index stands for a unit, and the callback finds the unit by
it. Everything that maps may call it: ``jit``, ``vmap`` and ``shard_map``. It has no gradient. A callback holds Python's
interpreter unless the expert releases it, so devices solve several units at once only for such an expert. The store
belongs to one process: where JAX runs on several hosts, each records units of its own.

``workers`` goes another way: a unit that is not in the cache is a job (:mod:`jaxarc.jobs`) of another process, here or
on a cluster. Threads of one Python would share one core, and cannot be interrupted.
"""

import contextlib
import dataclasses
import functools
import hashlib
import importlib.util
import math
import shutil
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np
from jaxtyping import Int32

from jaxarc.experts.expert import (
    ACTION_FORMATS,
    ActionFormat,
    AnyExpert,
    Caught,
    HiddenAnswerExpert,
    Pair,
    find_expert,
)
from jaxarc.jobs import TIME_LIMIT, Job, Outcome, Place, bringing, host_cores, run
from jaxarc.traces.cache import TraceCache
from jaxarc.traces.units import (
    ExpertSpec,
    Failure,
    Graph,
    PairChoice,
    RecordingFailedError,
    TimeLimitError,
    Trace,
    WorkerDiedError,
    WorkUnit,
    demonstrations_by_node,
    get_scc_graphs,
    solve_unit,
)

if TYPE_CHECKING:
    import jax

    from jaxarc.datasets import TaskSet

CHUNK_SIZE: Final = 64  # units in the store at once
PADDING_INDEX: Final = -1  # fills up the row of a device that has fewer units than another

Strategy: TypeAlias = Literal["sequential", "vmap", "pmap", "workers"]
STRATEGIES: Final = get_args(Strategy)

Progress: TypeAlias = Callable[[int, int], bool | None]
"""Called with the units that are done and all there are; may return True to stop there."""

Result: TypeAlias = Trace | Failure

RecordUnit: TypeAlias = Callable[[str, str], Result]
"""Records the unit of a hash and a text."""


@dataclasses.dataclass
class Recording:
    """The traces and failures of a recording."""

    hash_of_node: dict[str, str]  # the unit of each node that carries a pair
    traces: dict[str, Trace] = dataclasses.field(default_factory=dict)  # by hash
    failures: dict[str, Failure] = dataclasses.field(default_factory=dict)  # by hash
    num_cached: int = 0  # units that were found in the cache
    store_bytes: int = 0  # of the texts that were in the store at once, at most
    is_complete: bool = True  # False when ``progress`` stopped it before the end

    @property
    def num_recorded(self) -> int:
        """Units that the expert solved."""
        return len(self.traces) - self.num_cached

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


def get_trace_hierarchical(
    graph: Graph,
    parallel_strategy: Literal["auto", "vmap", "pmap", "sequential"] = "auto",
    *,
    expert: AnyExpert | None = None,
    action_format: ActionFormat = "bbox",
    **settings: Any,
) -> Recording:
    """Record every pair of a graph by :func:`record_traces`, and require that none fails.

    Args:
        graph: pairs and what needs them.
        parallel_strategy: ``auto`` is ``pmap`` with two devices or more, ``vmap`` with one, ``sequential`` without JAX.
        expert: solves the pairs, the painter by default.
        action_format: how its actions select cells.
        **settings: as for :func:`record_traces`.

    Raises:
        RecordingFailedError: a pair has no trace; names its hash and its nodes.
        ValueError, ImportError, RuntimeError: there is no such strategy, or it is not possible here.
    """
    solver = find_expert("painter") if expert is None else expert
    strategy = choose_strategy(parallel_strategy)
    recording = record_traces(graph, solver, action_format, strategy=strategy, **settings)
    recording.require_complete()
    return recording


def choose_strategy(parallel_strategy: str) -> Strategy:
    """Return the strategy that ``auto`` stands for, or the given one if it is possible here.

    Raises:
        ValueError: there is no such strategy.
        ImportError: it needs JAX, which is not installed.
        RuntimeError: it needs more devices.
    """
    match parallel_strategy:
        case "sequential":
            return "sequential"
        case "auto" | "vmap" | "pmap":
            pass
        case _:
            raise ValueError(
                f"Invalid parallelization strategy: {parallel_strategy!r}\n"
                "  Valid options: 'auto', 'vmap', 'pmap', 'sequential'"
            )
    if not _has_jax():
        if parallel_strategy == "auto":
            return "sequential"
        raise ImportError(
            f"Cannot use strategy={parallel_strategy!r}: JAX not installed\n"
            "  Install JAX: pip install jax jaxlib\n"
            "  Or use: strategy='sequential' or strategy='auto'"
        )
    import jax

    num_devices = jax.local_device_count()
    if parallel_strategy == "pmap" and num_devices < 2:
        raise RuntimeError(
            f"Cannot use strategy='pmap': only {num_devices} device available\n"
            "  pmap requires 2+ devices (multi-GPU or distributed cluster)\n"
            "  Use: strategy='vmap' or strategy='auto'"
        )
    if parallel_strategy == "vmap" or num_devices < 2:
        return "vmap"
    return "pmap"


def record_traces(
    tasks: "TaskSet | Graph",
    expert: AnyExpert,
    action_format: ActionFormat = "bbox",
    *,
    strategy: Strategy = "sequential",
    pairs: PairChoice = "all",
    chunk_size: int = CHUNK_SIZE,
    cache: TraceCache | None = None,
    time_limit_s: float | None = None,
    processes: int | None = None,
    place: Place | None = None,
    progress: Progress | None = None,
) -> Recording:
    """Let an expert solve every pair, each content once, and keep the solutions that replay proves.

    An expert that raises, takes too long, or returns actions that are invalid or do not solve the pair makes a failure;
    the other pairs go on. Each trace is in the cache as soon as it is recorded: after a stop, the same call continues.
    All strategies give the same traces.

    Args:
        tasks: a task set, or a graph, whose pairs are all recorded.
        expert: solves the pairs; a :class:`HiddenAnswerExpert` needs a task set, whose train pairs it is shown.
        action_format: how its actions select cells: ``point``, ``bbox`` or ``mask``.
        strategy: how units are handed out; see the top of this file.
        pairs: which pairs of each task of a task set.
        chunk_size: units between two calls of ``progress``, which go through JAX at once.
        cache: where traces are looked up and kept; without one, only the result holds them.
        time_limit_s: of ``workers``: seconds for one unit, after which it fails.
        processes: of ``workers``, in which the expert must be importable; by default one per core.
        place: of ``workers``, instead of processes of this machine; a cluster needs a cache, in whose folder it works.
        progress: see :data:`Progress`.

    Raises:
        ValueError: an argument is wrong.
        RuntimeError: ``pmap`` has one device.
        JobsError: the expert does not start in a worker process, or the place is not there.
        OSError, DamagedCacheError: the cache cannot be read or written.
    """
    _check_arguments(action_format, strategy, chunk_size, time_limit_s, processes, place)
    graph = tasks if isinstance(tasks, Graph) else Graph.of_tasks(tasks, pairs)
    demonstrations: dict[str, tuple[Pair, ...]] = {}
    if isinstance(expert, HiddenAnswerExpert):
        expert.prepare()
        demonstrations = _demonstrations(tasks, expert)
    # Equal pairs have equal texts and one hash, so the expert solves each content once, for all nodes that carry it.
    spec = ExpertSpec.of(expert, action_format)
    hash_of_node, work_units = units_of(graph, spec, demonstrations)
    recording = Recording(hash_of_node)
    if strategy == "workers":
        at = place or Place(shards=processes or host_cores())
        recorded = _by_jobs(work_units, expert, spec, cache, at, time_limit_s, recording)
    else:
        recorded = _by_calls(work_units, expert, spec, cache, strategy, chunk_size, recording)
    # With 150 units and chunks of 64, `progress` is called at 64, 128 and 150; a wish to stop at the last changes
    # nothing.
    for done, (unit_hash, result) in enumerate(recorded, start=1):
        if isinstance(result, Trace):
            recording.traces[unit_hash] = result
        else:
            recording.failures[unit_hash] = result
        is_last = done == len(work_units)
        if (is_last or done % chunk_size == 0) and progress is not None and progress(done, len(work_units)):
            recording.is_complete = is_last
            break
    recorded.close()
    return recording


def _check_arguments(
    action_format: str,
    strategy: str,
    chunk_size: int,
    time_limit_s: float | None,
    processes: int | None,
    place: Place | None,
) -> None:
    for name, value, words in (("action_format", action_format, ACTION_FORMATS), ("strategy", strategy, STRATEGIES)):
        if value not in words:
            raise ValueError(f"{name} is one of {', '.join(map(repr, words))}, got {value!r}; choose one")
    if chunk_size < 1:
        raise ValueError(f"chunk_size must be at least 1, got {chunk_size}; give the units that are recorded at once")
    if strategy in ("vmap", "pmap"):
        choose_strategy(strategy)
    if processes is not None and processes < 1:
        raise ValueError(f"processes must be at least 1, got {processes}; give the number of processes")
    if time_limit_s is not None and not time_limit_s > 0:
        raise ValueError(f"time_limit_s must be above 0, got {time_limit_s}; give seconds for one pair")
    for name, value in (("time_limit_s", time_limit_s), ("processes", processes), ("place", place)):
        if value is not None and strategy != "workers":
            raise ValueError(f"{name}={value} is of strategy='workers', got {strategy!r}; leave one of the two out")


def _demonstrations(tasks: "TaskSet | Graph", expert: HiddenAnswerExpert) -> dict[str, tuple[Pair, ...]]:
    if isinstance(tasks, Graph):
        raise ValueError(
            f"the expert {expert.name!r} solves a pair from the other pairs of its task, which a Graph of "
            f"{len(tasks.pairs)} pairs does not tell; pass the task set"
        )
    return demonstrations_by_node(tasks)


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
            unit = WorkUnit(pair, spec, demonstrations.get(node, ()))
            hash_of_node[node] = unit.content_hash
            # A dict keeps the order of its first entries: a unit is recorded when the first node that carries it has
            # its turn.
            work_units.setdefault(hash_of_node[node], unit.to_json())
    return hash_of_node, work_units


def _by_calls(
    work_units: Mapping[str, str],
    expert: AnyExpert,
    spec: ExpertSpec,
    cache: TraceCache | None,
    strategy: Strategy,
    chunk_size: int,
    recording: Recording,
) -> Generator[tuple[str, Result], None, None]:
    def record(unit_hash: str, text: str) -> Result:  # several threads may do so at once
        if cache is not None and (trace := cache.get(unit_hash)) is not None:
            with _lock:
                recording.num_cached += 1
            return trace
        return _result_of(solve_text(expert, text), unit_hash, spec, cache)

    hashes = list(work_units)
    for start in range(0, len(hashes), chunk_size):
        chunk = {one: work_units[one] for one in hashes[start : start + chunk_size]}
        recording.store_bytes = max(recording.store_bytes, sum(map(len, chunk.values())))
        yield from record_units(chunk, record, strategy, chunk_size).items()


def _by_jobs(
    work_units: Mapping[str, str],
    expert: AnyExpert,
    spec: ExpertSpec,
    cache: TraceCache | None,
    place: Place,
    time_limit_s: float | None,
    recording: Recording,
) -> Generator[tuple[str, Result], None, None]:
    begin = None
    with Caught() as caught:
        begin = bringing(expert)
    if caught.error is not None:
        raise ValueError(
            f"the expert {expert.name!r} cannot be sent to another process ({caught.error}); define its class in a "
            "module, or record with strategy='sequential'"
        ) from caught.error
    cached = {one: trace for one in work_units if cache is not None and (trace := cache.get(one)) is not None}
    recording.num_cached = len(cached)
    yield from cached.items()
    hashes = list(work_units)
    jobs = [Job(solve_text, (text,), time_limit_s) for text in work_units.values()]
    recording.store_bytes = sum(map(len, work_units.values()))
    folder = None
    if cache is not None and place.engine == "slurm":
        # The folder of this recording; whatever is in the cache, the same command finds it.
        folder = cache.path.parent / "jobs" / hashlib.sha256("".join(hashes).encode()).hexdigest()[:16]
    known = {index for index, one in enumerate(hashes) if one in cached}
    for done in run(jobs, place, begin, folder, known=known):
        yield hashes[done.job], _kept(done, hashes[done.job], spec, cache, time_limit_s)
    if folder is not None:
        shutil.rmtree(folder)


def _kept(
    done: Outcome, unit_hash: str, spec: ExpertSpec, cache: TraceCache | None, time_limit_s: float | None
) -> Result:
    answer = done.value
    if done.fault is not None and done.fault.startswith(TIME_LIMIT):
        limit = f"no answer within {time_limit_s:g} s; give more time, or fix the expert's loop"
        answer = _error_answer(TimeLimitError(limit))
    elif done.fault is not None:
        answer = _error_answer(WorkerDiedError(f"{done.fault}; look at what the expert printed"))
    return _result_of(answer, unit_hash, spec, cache)


def solve_text(expert: AnyExpert, text: str) -> dict[str, Any]:
    """Let an expert solve the unit of a text: its checked ``actions``, or the class and the message of an ``error``."""
    with Caught() as caught:
        return {"actions": solve_unit(expert, WorkUnit.from_json(text))}
    return _error_answer(caught.error)


def _error_answer(error: BaseException | None) -> dict[str, Any]:
    return {"error": (type(error).__name__, " ".join(str(error).split()))}


def _result_of(answer: Mapping[str, Any], unit_hash: str, spec: ExpertSpec, cache: TraceCache | None) -> Result:
    # A failure is not kept: it may have been the time limit or the machine, and the next call tries again.
    if "error" in answer:
        return Failure(unit_hash, *answer["error"])
    trace = Trace(unit_hash, spec, tuple(map(tuple, answer["actions"])))
    if cache is not None:
        cache.put(trace)
    return trace


@dataclasses.dataclass
class _Call:
    """What the units of a call in the store share."""

    record: RecordUnit
    error: BaseException | None = None  # after one nothing more is recorded


_work_unit_store: dict[int, tuple[str, str]] = {}  # index -> (hash, text), of the calls that are running
_calls: dict[int, _Call] = {}  # index -> the call that it belongs to
_results: dict[int, Result] = {}  # apart from the store, as JAX may call back again
_lock = threading.Lock()  # of the three


def record_units(
    work_units: Mapping[str, str], record: RecordUnit, strategy: Strategy, num_together: int = 1
) -> dict[str, Result]:
    """Put units into the store, and let a strategy ask for each.

    Args:
        work_units: text by hash.
        record: called for each unit, from one thread or several.
        strategy: one of :data:`STRATEGIES` but ``workers``.
        num_together: pad to this many units, so that JAX runs one compiled program for smaller chunks too.

    Returns:
        The results by hash, in the order of the units.

    Raises:
        BaseException: what ``record`` raises.
    """
    with _stored(work_units, record) as (indices, call):
        if strategy == "sequential":
            for index in indices:
                _keep_result(index)
        else:
            _run_on_devices(_padded(indices, num_together), strategy)
        if call.error is not None:
            raise call.error
        with _lock:
            return {unit_hash: _results[index] for unit_hash, index in zip(work_units, indices, strict=True)}


@contextlib.contextmanager
def _stored(work_units: Mapping[str, str], record: RecordUnit) -> Iterator[tuple[list[int], _Call]]:
    """Keep units in the store during a call: at indices 0, 1, ..., or behind those of calls that are running."""
    call = _Call(record)
    with _lock:
        # Calls of several threads share the store: while one holds 0 .. 63, the next one gets 64 and up.
        first = max(_work_unit_store, default=-1) + 1
        indices = list(range(first, first + len(work_units)))
        _work_unit_store.update(zip(indices, work_units.items(), strict=True))
        _calls.update(dict.fromkeys(indices, call))
    try:
        yield indices, call
    finally:
        with _lock:
            for index in indices:
                del _work_unit_store[index], _calls[index]
                _results.pop(index, None)


def _record_trace_callback(idx: int) -> tuple[str, Result | None]:
    """Record the unit of an index, and return it with its hash; ``("", None)`` for a padding index."""
    if idx < 0:
        return ("", None)
    unit, call = _find(idx)
    return unit[0], call.record(*unit)


def _find(idx: int) -> tuple[tuple[str, str], _Call]:
    with _lock:
        if idx not in _work_unit_store:
            raise KeyError(f"there is no work unit with index {idx}; a unit is recorded while its call runs")
        return _work_unit_store[idx], _calls[idx]


def _keep_result(idx: int) -> None:
    """Record the unit of an index, and keep its result or, for the whole call, the error.

    An error raised through JAX would arrive as one of JAX, without its class. After it, and after a Ctrl-C, the calls
    that are still to come do nothing.
    """
    call = _find(idx)[1]
    if call.error is not None:
        return
    outcome: Result | BaseException | None = None
    try:
        with Caught() as caught:
            outcome = _record_trace_callback(idx)[1]
        outcome = caught.error or outcome
    except KeyboardInterrupt as interruption:
        outcome = interruption
    with _lock:
        if isinstance(outcome, BaseException):
            call.error = outcome
        elif outcome is not None and _calls.get(idx) is call:  # the call may have ended meanwhile
            _results[idx] = outcome


def _run_on_devices(indices: Sequence[int], strategy: str) -> None:
    """Let the devices call back for every index, and wait until they have.

    The program is run for its callbacks. Its result is fetched and compared all the same: the compiler may drop a pure
    callback whose result is not used.
    """
    import jax

    asked = np.array(indices, np.int32) if strategy == "vmap" else device_layout(indices, jax.local_device_count())
    completed = jax.block_until_ready(_program(strategy)(asked))
    if not np.array_equal(np.asarray(completed), asked):
        raise RuntimeError(f"the devices returned other indices than they were given: {np.asarray(completed)}")


@functools.cache  # the same function object each time, so that JAX finds its compiled programs
def _program(strategy: str) -> "Callable[[np.ndarray], jax.Array]":
    import jax

    over_units = jax.vmap(_compute_trace_jax)
    if strategy == "vmap":
        return jax.jit(over_units)
    from jaxarc.parallel.mesh import SPLIT, data_mesh

    # Under shard_map each device sees its own row of the layout, [1, units], and maps over its units.
    on_a_device = lambda row: over_units(row[0])[None]
    return jax.jit(jax.shard_map(on_a_device, mesh=data_mesh(), in_specs=SPLIT, out_specs=SPLIT))


def _compute_trace_jax(idx: "jax.Array") -> "jax.Array":
    """Record the unit of an index, int32[], as an operation of JAX; returns the index."""
    import jax
    import jax.numpy as jnp

    def _callback_impl(idx_val: Any) -> np.ndarray:
        index = np.asarray(idx_val, np.int32)
        if index != PADDING_INDEX:
            _keep_result(int(index))
        return index

    # "sequential" calls back once for each unit. pure_callback has no side effect that JAX knows of, so a result that
    # is not used may be dropped; see _run_on_devices.
    return jax.pure_callback(_callback_impl, jax.ShapeDtypeStruct((), jnp.int32), idx, vmap_method="sequential")


def device_layout(indices: Sequence[int], num_devices: int) -> Int32[np.ndarray, "D units"]:
    """Deal indices out to devices in turn, padded with -1: ``[0, 1, 2, 3, 4]`` on 2 is ``[[0, 2, 4], [1, 3, -1]]``."""
    # Row by row 0 1 / 2 3 / 4 -1, one row for a unit of each device; transposed, one row for each device.
    per_device = math.ceil(len(indices) / num_devices)
    return np.array(_padded(indices, num_devices * per_device), np.int32).reshape(per_device, num_devices).T


def _padded(indices: Sequence[int], count: int) -> list[int]:
    return [*indices, *[PADDING_INDEX] * max(0, count - len(indices))]


def _has_jax() -> bool:
    try:
        return importlib.util.find_spec("jax") is not None
    except ImportError:  # import hooks may refuse it so
        return False
