"""Many environments on many devices: the mesh, rollouts spread over it, and what they need of memory."""

from jaxarc.parallel.memory import NotEnoughMemoryError, available_memory, require_memory
from jaxarc.parallel.mesh import data_mesh, host_cores, replicate, require_even_split, use_host_cores
from jaxarc.parallel.policy import Policy, RandomPolicy
from jaxarc.parallel.rollout import CompiledRollout, Rollout, compile_rollout, rollout
from jaxarc.parallel.tally import Tally, Totals

__all__ = [
    "CompiledRollout",
    "NotEnoughMemoryError",
    "Policy",
    "RandomPolicy",
    "Rollout",
    "Tally",
    "Totals",
    "available_memory",
    "compile_rollout",
    "data_mesh",
    "host_cores",
    "replicate",
    "require_even_split",
    "require_memory",
    "rollout",
    "use_host_cores",
]
