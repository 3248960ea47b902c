"""Record units through JAX: integers go through ``jax.pure_callback``, Python objects stay on the host.

JAX passes arrays of numbers, not Python objects, so each unit gets an index; the callback finds the unit by it, looks
it up in the cache, or else lets the expert solve it. Everything that maps may call it: ``jit``, ``vmap`` and
``shard_map`` over devices. It has no gradient. Five units on two devices:

    store                  0: (hash, text)  1: ...  2: ...  3: ...  4: ...
    device_layout          device 0: [0, 2, 4]      device 1: [1, 3, -1]      (-1 is padding)
    callback, per device   record(0), record(2), ...                          (results wait on the host)
    returned               the same indices, which the host compares with those that it asked for

A callback holds Python's interpreter: units solved in this process follow one another under every strategy. Several at
once need worker processes, which the calls of several devices, or one call for a whole batch, keep busy; without
JAX, :func:`jaxarc.experts.traces.record_traces` does the same. The store belongs to one process: where JAX runs on
several hosts, each records units of its own.
"""

import contextlib
import functools
import importlib.util
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

import numpy as np
from jaxtyping import Int32

from jaxarc.experts.expert import ActionFormat, AnyExpert, Caught, find_expert
from jaxarc.experts.traces.graph import Graph
from jaxarc.experts.traces.recording import CHUNK_SIZE, Recording, RecordUnits, Result, record_traces

if TYPE_CHECKING:
    import jax

    from jaxarc.datasets import TaskSet

Strategy: TypeAlias = Literal["auto", "vmap", "pmap", "sequential"]
STRATEGIES: Final = get_args(Strategy)
PADDING_INDEX: Final = -1  # fills up the row of a device that has fewer units than another

_Outcome: TypeAlias = Result | Exception | KeyboardInterrupt

_work_unit_store: dict[int, tuple[str, str]] = {}  # index -> (hash, text), of the calls that are running
_recorders: dict[int, RecordUnits] = {}  # index -> how the call that it belongs to records
_results: dict[int, _Outcome] = {}  # index -> the outcome; apart from the store, as a callback may be called again
_lock = threading.Lock()  # of the three


def get_trace_hierarchical(
    graph: Graph,
    parallel_strategy: Strategy = "auto",
    *,
    expert: AnyExpert | None = None,
    action_format: ActionFormat = "bbox",
    **settings: Any,
) -> Recording:
    """Record every pair of a graph, each content once, what is needed first.

    Args:
        graph: pairs and what needs them.
        parallel_strategy: ``sequential`` needs no JAX; ``vmap`` maps over units on one device; ``pmap`` spreads them
            over two devices or more; ``auto`` is the last of these that is possible.
        expert: solves the pairs, the painter by default.
        action_format: how its actions select cells.
        **settings: as for :func:`record_through_jax`.

    Raises:
        RecordingFailedError: a pair has no trace; names its hash and its nodes.
        ValueError, ImportError, RuntimeError: there is no such strategy, or it is not possible here.
    """
    solver = find_expert("painter") if expert is None else expert
    recording = record_through_jax(graph, solver, action_format, parallel_strategy, **settings)
    recording.require_complete()
    return recording


def record_through_jax(
    tasks: "TaskSet | Graph",
    expert: AnyExpert,
    action_format: ActionFormat = "bbox",
    parallel_strategy: Strategy = "auto",
    *,
    chunk_size: int = CHUNK_SIZE,
    vmap_method: str = "sequential",
    **settings: Any,
) -> Recording:
    """Record as :func:`jaxarc.experts.traces.record_traces` does, with units handed out by one of the strategies.

    Args:
        tasks: a task set, of which all pairs are recorded, or a graph.
        expert: solves the pairs.
        action_format: how its actions select cells.
        parallel_strategy: see :func:`get_trace_hierarchical`.
        chunk_size: units that go through JAX at once.
        vmap_method: of ``jax.pure_callback``: ``sequential`` calls back once for each unit; ``broadcast_all`` and
            ``expand_dims`` once for all units of a device, which keeps several processes busy on one device.
        **settings: as for :func:`jaxarc.experts.traces.record_traces`.

    Raises:
        ValueError, ImportError, RuntimeError: there is no such strategy, or it is not possible here.
    """
    strategy = choose_strategy(parallel_strategy)
    dispatch = functools.partial(
        record_units, strategy=strategy, vmap_method=vmap_method, num_together=max(chunk_size, 1)
    )
    return record_traces(tasks, expert, action_format, chunk_size=chunk_size, dispatch=dispatch, **settings)


def choose_strategy(parallel_strategy: str) -> str:
    """Return the strategy that ``auto`` stands for, or the given one if it is possible here.

    Raises:
        ValueError: there is no such strategy.
        ImportError: it needs JAX, which is not installed.
        RuntimeError: it needs more devices.
    """
    if parallel_strategy not in STRATEGIES:
        raise ValueError(
            f"Invalid parallelization strategy: {parallel_strategy!r}\n"
            "  Valid options: 'auto', 'vmap', 'pmap', 'sequential'"
        )
    if parallel_strategy == "sequential":
        return parallel_strategy
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
    if parallel_strategy == "auto":
        return "pmap" if num_devices >= 2 else "vmap"
    if parallel_strategy == "pmap" and num_devices < 2:
        raise RuntimeError(
            f"Cannot use strategy='pmap': only {num_devices} device available\n"
            "  pmap requires 2+ devices (multi-GPU or distributed cluster)\n"
            "  Use: strategy='vmap' or strategy='auto'"
        )
    return parallel_strategy


def record_units(
    work_units: Mapping[str, str],
    record: RecordUnits,
    strategy: str,
    vmap_method: str = "sequential",
    num_together: int | None = None,
) -> dict[str, Result]:
    """Record units by one of the strategies.

    Args:
        work_units: text by hash.
        record: records some of them; called from one thread or several.
        strategy: ``sequential``, ``vmap`` or ``pmap``.
        vmap_method: of ``jax.pure_callback``: ``sequential`` calls once for each unit, ``broadcast_all`` and
            ``expand_dims`` once for all units of a device.
        num_together: pad to this many units, so that a smaller last chunk runs the same compiled program.

    Returns:
        The results by hash, in the order of the units.

    Raises:
        Exception: what ``record`` raises.
    """
    if strategy == "sequential":
        results = [record([unit])[0] for unit in work_units.items()]
        return dict(zip(work_units, results, strict=True))
    # JAX carries indices there and back; units, results and errors stay in the dicts of this module, under these
    # indices.
    with _stored(work_units, record) as indices:
        _run_on_devices(_padded(indices, num_together or len(indices)), strategy, vmap_method)
        with _lock:
            found = [_results[index] for index in indices]
    results = {}
    for unit_hash, result in zip(work_units, found, strict=True):
        if isinstance(result, BaseException):
            raise result
        results[unit_hash] = result
    return results


def device_layout(indices: Sequence[int], num_devices: int) -> Int32[np.ndarray, "D units"]:
    """Deal indices out to devices in turn, padded with -1: ``[0, 1, 2, 3, 4]`` on 2 is ``[[0, 2, 4], [1, 3, -1]]``."""
    # Row by row 0 1 / 2 3 / 4 -1, one row for a unit of each device; transposed, one row for each device.
    per_device = math.ceil(len(indices) / num_devices)
    return np.array(_padded(indices, num_devices * per_device), np.int32).reshape(per_device, num_devices).T


def _record_trace_callback(idx: int) -> tuple[str, Result | None]:
    """Record the unit of an index, and return it with its hash; ``("", None)`` for a padding index."""
    if idx < 0:
        return ("", None)
    with _lock:
        unit, record = _find(idx)
    return unit[0], record([unit])[0]


def _compute_trace_jax(idx: "jax.Array", vmap_method: Any = "sequential") -> "jax.Array":
    """Record the unit of an index, int32[], as an operation of JAX; returns the index."""
    import jax
    import jax.numpy as jnp

    return jax.pure_callback(_record_indices, jax.ShapeDtypeStruct((), jnp.int32), idx, vmap_method=vmap_method)


def _record_indices(indices: Any) -> Int32[np.ndarray, "*units"]:
    """Record the units of one index or of a batch, and return the indices. Runs on the host, without calls of JAX."""
    # One index, int32[], or those of a batch, with any number of axes; -1 is padding.
    asked = np.asarray(indices, np.int32)
    units = [index for index in asked.ravel().tolist() if index != PADDING_INDEX]
    results: dict[int, _Outcome] = {}
    # What goes wrong is stored as the outcome of the units: an error raised through JAX would arrive as one of JAX,
    # without its class. After a Ctrl-C the callbacks that are still to come do nothing.
    error: Exception | KeyboardInterrupt | None = _interruption()
    if error is None:
        try:
            with Caught() as caught:
                results.update(_record_batch(units) if asked.ndim else {index: _record_one(index) for index in units})
            error = caught.error
        except KeyboardInterrupt as interruption:
            error = interruption
    with _lock:
        if error is not None:  # record_units raises it: raised from here, JAX would replace it by an error of its own
            results = dict.fromkeys(filter(_work_unit_store.__contains__, units), error)
        _results.update(results)
    # The units are no longer in the store: their call has ended, and nobody but JAX is left to hear of the error.
    if error is not None and units and not results:
        raise error
    return asked


def _interruption() -> KeyboardInterrupt | None:
    """Return the Ctrl-C that ended an earlier unit, so that the units after it in the same program are not recorded."""
    with _lock:
        return next((found for found in _results.values() if isinstance(found, KeyboardInterrupt)), None)


def _record_one(index: int) -> Result:
    result = _record_trace_callback(index)[1]
    assert result is not None
    return result


def _record_batch(indices: list[int]) -> dict[int, Result]:
    if not indices:
        return {}
    with _lock:
        found = [_find(index) for index in indices]
    record = found[0][1]  # all units of a batch belong to one call
    return dict(zip(indices, record([unit for unit, _ in found]), strict=True))


def _find(idx: int) -> tuple[tuple[str, str], RecordUnits]:
    if idx not in _work_unit_store:
        raise KeyError(f"there is no work unit with index {idx}; a unit is recorded while its call runs")
    return _work_unit_store[idx], _recorders[idx]


@contextlib.contextmanager
def _stored(work_units: Mapping[str, str], record: RecordUnits) -> Iterator[list[int]]:
    """Keep units in the store during a call: at indices 0, 1, ..., or behind those of calls that are running."""
    with _lock:
        # Calls of several threads share the store: while one holds 0 .. 63, the next one gets 64 and up.
        first = max(_work_unit_store, default=-1) + 1
        indices = list(range(first, first + len(work_units)))
        _work_unit_store.update(zip(indices, work_units.items(), strict=True))
        _recorders.update(dict.fromkeys(indices, record))
    try:
        yield indices
    finally:
        with _lock:
            for index in indices:
                del _work_unit_store[index], _recorders[index]
                _results.pop(index, None)


def _run_on_devices(indices: Sequence[int], strategy: str, vmap_method: str) -> None:
    """Let the devices call back for every index, and wait until they have.

    The program is run for its callbacks. Its result is fetched and compared all the same: the compiler may drop a pure
    callback whose result is not used.
    """
    import jax

    compute = _program(strategy, vmap_method)
    asked = np.array(indices, np.int32) if strategy == "vmap" else device_layout(indices, jax.local_device_count())
    completed = jax.block_until_ready(compute(asked))
    if not np.array_equal(np.asarray(completed), asked):
        raise RuntimeError(f"the devices returned other indices than they were given: {np.asarray(completed)}")


@functools.cache  # the same function object each time, so that JAX finds its compiled programs
def _program(strategy: str, vmap_method: str) -> "Callable[[np.ndarray], jax.Array]":
    import jax

    over_units = jax.vmap(lambda index: _compute_trace_jax(index, vmap_method))
    if strategy == "vmap":
        return jax.jit(over_units)
    from jaxarc.parallel.mesh import SPLIT, data_mesh

    # Under shard_map each device sees its own row of the layout, [1, units], and maps over its units.
    on_a_device = lambda row: over_units(row[0])[None]
    return jax.jit(jax.shard_map(on_a_device, mesh=data_mesh(), in_specs=SPLIT, out_specs=SPLIT))


def _padded(indices: Sequence[int], count: int) -> list[int]:
    return [*indices, *[PADDING_INDEX] * max(0, count - len(indices))]


def _has_jax() -> bool:
    try:
        return importlib.util.find_spec("jax") is not None
    except ImportError:  # import hooks may refuse it so
        return False
