"""Many environments on many devices, of one process or several: the mesh, rollouts over it, the memory they need."""

from jaxarc.jobs import host_cores
from jaxarc.parallel.memory import NotEnoughMemoryError, available_memory, program_memory, require_memory, size_of
from jaxarc.parallel.mesh import create_mesh, data_mesh, replicate, to_host, use_host_cores
from jaxarc.parallel.pipeline import pipeline
from jaxarc.parallel.processes import (
    ProcessError,
    ProcessMismatchError,
    allgather_text,
    any_process,
    barrier,
    broadcast_flag,
    digest,
    distributed_session,
    is_distributed,
    is_primary,
    require_same,
    start_processes,
)
from jaxarc.parallel.program import Trajectory
from jaxarc.parallel.rollout import CompiledRollout, Rollout, compile_rollout, rollout
from jaxarc.parallel.rollout_metrics import EpisodeMetrics, MetricTotals, TaskCounts
from jaxarc.unroll import Policy, RandomPolicy

__all__ = [
    "CompiledRollout",
    "EpisodeMetrics",
    "MetricTotals",
    "NotEnoughMemoryError",
    "Policy",
    "ProcessError",
    "ProcessMismatchError",
    "RandomPolicy",
    "Rollout",
    "TaskCounts",
    "Trajectory",
    "allgather_text",
    "any_process",
    "available_memory",
    "barrier",
    "broadcast_flag",
    "compile_rollout",
    "create_mesh",
    "data_mesh",
    "digest",
    "distributed_session",
    "host_cores",
    "is_distributed",
    "is_primary",
    "pipeline",
    "program_memory",
    "replicate",
    "require_memory",
    "require_same",
    "rollout",
    "size_of",
    "start_processes",
    "to_host",
    "use_host_cores",
]
