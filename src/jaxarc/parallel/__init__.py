"""Many environments on many devices, of one process or several: the mesh, rollouts over it, the memory they need."""

from jaxarc.parallel.agreement import allgather_text, any_process, barrier, broadcast_flag, digest, require_same
from jaxarc.parallel.batch import to_host
from jaxarc.parallel.memory import NotEnoughMemoryError, available_memory, require_memory
from jaxarc.parallel.mesh import create_mesh, data_mesh, host_cores, replicate, use_host_cores
from jaxarc.parallel.pipeline import pipeline
from jaxarc.parallel.policy import Policy, RandomPolicy
from jaxarc.parallel.processes import (
    ProcessError,
    ProcessMismatchError,
    distributed_session,
    is_distributed,
    is_primary,
    start_processes,
)
from jaxarc.parallel.result import Rollout
from jaxarc.parallel.rollout import CompiledRollout, compile_rollout, rollout
from jaxarc.parallel.tally import EpisodeMetrics, MetricTotals, TaskCounts
from jaxarc.parallel.task_shards import shard_tasks
from jaxarc.parallel.trajectory import Trajectory

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
    "replicate",
    "require_memory",
    "require_same",
    "rollout",
    "shard_tasks",
    "start_processes",
    "to_host",
    "use_host_cores",
]
