"""Traces: the actions of experts, recorded once for each content, checked, cached and replayed; without JAX."""

from jaxarc.traces.cache import DamagedCacheError, DamagedTraceWarning, TraceCache
from jaxarc.traces.hierarchical_trace_cache import Recording, get_trace_hierarchical, record_traces
from jaxarc.traces.units import (
    ExpertSpec,
    Failure,
    Graph,
    GraphError,
    PairId,
    RecordingFailedError,
    TimeLimitError,
    Trace,
    WorkerDiedError,
    WorkUnit,
    get_scc_graphs,
    pairs_by_id,
)

__all__ = [
    "DamagedCacheError",
    "DamagedTraceWarning",
    "ExpertSpec",
    "Failure",
    "Graph",
    "GraphError",
    "PairId",
    "Recording",
    "RecordingFailedError",
    "TimeLimitError",
    "Trace",
    "TraceCache",
    "WorkUnit",
    "WorkerDiedError",
    "get_scc_graphs",
    "get_trace_hierarchical",
    "pairs_by_id",
    "record_traces",
]
