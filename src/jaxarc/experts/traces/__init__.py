"""Traces: the actions of experts, recorded once for each content, checked, cached and replayed."""

from jaxarc.experts.traces.cache import DamagedTraceWarning, TraceCache
from jaxarc.experts.traces.graph import Graph, GraphError, PairId, get_scc_graphs, pairs_by_id
from jaxarc.experts.traces.hierarchical_trace_cache import get_trace_hierarchical
from jaxarc.experts.traces.recording import Recording, record_traces
from jaxarc.experts.traces.trace import (
    ExpertSpec,
    Failure,
    RecordingFailedError,
    TimeLimitError,
    Trace,
    WorkerDiedError,
    WorkUnit,
)

__all__ = [
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
