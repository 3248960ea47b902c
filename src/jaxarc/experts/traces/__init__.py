"""Traces: what experts did, recorded once for each content, checked, kept and replayed."""

from jaxarc.experts.traces.batch_expert import BatchExpert
from jaxarc.experts.traces.cache import DamagedTraceWarning, TraceCache
from jaxarc.experts.traces.components import get_scc_graphs
from jaxarc.experts.traces.graph import Graph, GraphError, PairId, pairs_by_id
from jaxarc.experts.traces.hierarchical_trace_cache import get_trace_hierarchical
from jaxarc.experts.traces.recording import Recording, record_traces
from jaxarc.experts.traces.trace import Failure, RecordingFailedError, TimeLimitError, Trace, WorkerDiedError
from jaxarc.experts.traces.work_unit import ExpertSpec, WorkUnit

__all__ = [
    "BatchExpert",
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
