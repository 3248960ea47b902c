"""Many environments on many devices, of one process or several: the mesh, rollouts over it, the memory they need."""

from jaxarc.parallel.agreement import any_of, digest, exchange, meet, of_first, require_same
from jaxarc.parallel.batch import to_host
from jaxarc.parallel.memory import NotEnoughMemoryError, available_memory, require_memory
from jaxarc.parallel.mesh import create_mesh, data_mesh, host_cores, replicate, use_host_cores
from jaxarc.parallel.pipeline import pipeline
from jaxarc.parallel.policy import Policy, RandomPolicy
from jaxarc.parallel.processes import ProcessError, UnlikeProcessesError, are_joined, is_first, joined, start_processes
from jaxarc.parallel.result import Rollout
from jaxarc.parallel.rollout import CompiledRollout, compile_rollout, rollout
from jaxarc.parallel.tally import Tally, TaskCounts, Totals
from jaxarc.parallel.task_shards import shard_tasks
from jaxarc.parallel.trajectory import Trajectory

__all__ = [
    "CompiledRollout",
    "NotEnoughMemoryError",
    "Policy",
    "ProcessError",
    "RandomPolicy",
    "Rollout",
    "Tally",
    "TaskCounts",
    "Totals",
    "Trajectory",
    "UnlikeProcessesError",
    "any_of",
    "are_joined",
    "available_memory",
    "compile_rollout",
    "create_mesh",
    "data_mesh",
    "digest",
    "exchange",
    "host_cores",
    "is_first",
    "joined",
    "meet",
    "of_first",
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
