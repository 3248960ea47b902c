"""Units recorded through JAX: whole numbers go through ``jax.pure_callback``, everything else stays on the host.

JAX passes arrays of numbers, not Python objects, so each unit gets an index, and a callback finds the unit by it, looks
it up in the cache, or else lets the expert solve it. What may call it is everything that maps: ``jit``, ``vmap`` and
``shard_map`` over devices. It has no gradient.

A call back to Python holds the interpreter: units solved in this process follow one another, whatever the strategy.
Several at once need worker processes, which the calls of several devices, or one call for a whole batch, keep busy. The
store is of one process: where JAX runs on several hosts, each records units of its own.
"""

import contextlib
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from jaxarc.experts.traces.strategy import Strategy
from jaxarc.experts.traces.trace import Caught, Failure, Trace

if TYPE_CHECKING:
    import jax

    from jaxarc.experts.expert import ActionFormat, Expert
    from jaxarc.experts.traces.cache import TraceCache
    from jaxarc.experts.traces.graph import Graph
    from jaxarc.experts.traces.recording import Recording

PADDING_INDEX: Final = -1  # stands where a device has no unit

Result: TypeAlias = Trace | Failure
RecordUnits: TypeAlias = Callable[[Sequence[tuple[str, str]]], list[Result]]
"""Records units, each given by hash and text."""

_work_unit_store: dict[int, tuple[str, str]] = {}  # index -> (hash, text), of the calls that are going on
_recorders: dict[int, RecordUnits] = {}  # index -> how the call that it belongs to records
_Outcome: TypeAlias = Result | Exception | KeyboardInterrupt
_results: dict[int, _Outcome] = {}  # index -> what came out; a callback may be called again
_lock = threading.Lock()  # of the three


def get_trace_hierarchical(
    graph: "Graph",
    parallel_strategy: Strategy = "auto",
    *,
    expert: "Expert | None" = None,
    action_format: "ActionFormat" = "bbox",
    cache: "TraceCache | None" = None,
    **settings: Any,
) -> "Recording":
    """Record every pair of a graph, each content once, what is needed first.

    Args:
        graph: pairs and what needs them.
        parallel_strategy: ``sequential`` needs no JAX; ``vmap`` maps over units on one device; ``pmap`` spreads them
            over two devices or more; ``auto`` is the last of these that is possible.
        expert: who solves the pairs, the painter by default.
        action_format: how its actions select cells.
        cache: where traces are looked up and kept; nowhere by default.
        **settings: as for :func:`jaxarc.experts.traces.record_traces`.

    Raises:
        RecordingFailedError: a pair has no trace; names its hash and its nodes.
        ValueError, ImportError, RuntimeError: there is no such strategy, or it is not possible here.
    """
    from jaxarc.experts.traces.expert_names import find_expert
    from jaxarc.experts.traces.recording import record_traces  # which stands on this module

    solver = find_expert("painter") if expert is None else expert
    recording = record_traces(graph, solver, action_format, parallel_strategy, cache=cache, **settings)
    recording.require_complete()
    return recording


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
        record: records some of them, called from one thread or several.
        strategy: ``sequential``, ``vmap`` or ``pmap``.
        vmap_method: of ``jax.pure_callback``: ``sequential`` calls once for each unit, ``broadcast_all`` and
            ``expand_dims`` once for all units of a device.
        num_together: as if there were at least so many units, so that calls with fewer compile nothing anew.

    Returns:
        What came out, by hash, in the order of the units.

    Raises:
        Exception: what ``record`` raises.
    """
    if strategy == "sequential":
        results = [record([unit])[0] for unit in work_units.items()]
        return dict(zip(work_units, results, strict=True))
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


def device_layout(indices: Sequence[int], num_devices: int) -> np.ndarray:
    """Deal indices out to devices in turn; ``int32[num_devices, ceil(n / num_devices)]``, filled up with -1."""
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


def _record_indices(indices: Any) -> np.ndarray:
    """Record the units of one index or of a batch, and return the indices. Runs on the host and uses nothing of JAX."""
    asked = np.asarray(indices, np.int32)
    units = [index for index in asked.ravel().tolist() if index != PADDING_INDEX]
    results: dict[int, _Outcome] = {}
    error: Exception | KeyboardInterrupt | None = _interruption()
    if error is None:
        try:
            with Caught() as caught:
                results.update(_record_batch(units) if asked.ndim else {index: _record_one(index) for index in units})
            error = caught.error
        except KeyboardInterrupt as interruption:
            error = interruption
    with _lock:
        if error is not None:  # raised where the call was made: JAX would put its own in place of it
            results = dict.fromkeys(filter(_work_unit_store.__contains__, units), error)
        _results.update(results)
    if error is not None and units and not results:
        raise error
    return asked


def _interruption() -> KeyboardInterrupt | None:
    """Return the Ctrl-C that ended an earlier unit: those that follow in a program that runs are not recorded."""
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
    record = found[0][1]  # a batch is of one call
    return dict(zip(indices, record([unit for unit, _ in found]), strict=True))


def _find(idx: int) -> tuple[tuple[str, str], RecordUnits]:
    if idx not in _work_unit_store:
        raise KeyError(f"there is no work unit with index {idx}; a unit is recorded while its call goes on")
    return _work_unit_store[idx], _recorders[idx]


@contextlib.contextmanager
def _stored(work_units: Mapping[str, str], record: RecordUnits) -> Iterator[list[int]]:
    """Keep units in the store for the length of a call: at 0, 1, ..., or behind those of calls that go on."""
    with _lock:
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

    The program is used for what it calls, so what it returns is fetched and compared: a result that nobody uses would
    let the compiler drop the call.
    """
    import jax

    compute = _programs(strategy, vmap_method)
    asked = np.array(indices, np.int32) if strategy == "vmap" else device_layout(indices, jax.local_device_count())
    completed = jax.block_until_ready(compute(asked))
    if not np.array_equal(np.asarray(completed), asked):
        raise RuntimeError(f"the devices returned other indices than they were given: {np.asarray(completed)}")


def _programs(strategy: str, vmap_method: str) -> "Callable[[np.ndarray], jax.Array]":
    """Return the compiled program of a strategy, the same each time, so that JAX finds what it has compiled."""
    key = (strategy, vmap_method)
    if key not in _COMPILED:
        _COMPILED[key] = _make_program(strategy, vmap_method)
    return _COMPILED[key]


_COMPILED: dict[tuple[str, str], "Callable[[np.ndarray], jax.Array]"] = {}


def _make_program(strategy: str, vmap_method: str) -> "Callable[[np.ndarray], jax.Array]":
    import jax

    over_units = jax.vmap(lambda index: _compute_trace_jax(index, vmap_method))
    if strategy == "vmap":
        return jax.jit(over_units)
    from jaxarc.parallel.mesh import SPLIT, data_mesh

    on_a_device = lambda row: over_units(row[0])[None]
    return jax.jit(jax.shard_map(on_a_device, mesh=data_mesh(), in_specs=SPLIT, out_specs=SPLIT))


def _padded(indices: Sequence[int], count: int) -> list[int]:
    return [*indices, *[PADDING_INDEX] * max(0, count - len(indices))]
