"""Traces: the actions of experts, recorded once for each content, checked, cached and replayed; without JAX."""

from jaxarc.traces.cache import DamagedCacheError, DamagedTraceWarning, TraceCache
from jaxarc.traces.recording import Recording, get_trace_hierarchical, record_traces
from jaxarc.traces.sessions import HumanSession, SessionFileError, convert_sessions, read_human_sessions
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
    "HumanSession",
    "PairId",
    "Recording",
    "RecordingFailedError",
    "SessionFileError",
    "TimeLimitError",
    "Trace",
    "TraceCache",
    "WorkUnit",
    "WorkerDiedError",
    "convert_sessions",
    "get_scc_graphs",
    "get_trace_hierarchical",
    "pairs_by_id",
    "read_human_sessions",
    "record_traces",
]
