"""What a rollout leaves behind: on the devices, without padding, summed, or on the host."""

from typing import Self

import equinox as eqx
from jax.sharding import Mesh
from jaxtyping import Array, PyTree

from jaxarc.parallel.batch import drop_padding, to_host
from jaxarc.parallel.program import RolloutCarry
from jaxarc.parallel.tally import EpisodeMetrics, MetricTotals, TaskCounts, sum_metrics, sum_task_metrics
from jaxarc.parallel.trajectory import Trajectory


class Rollout(eqx.Module):
    """What a rollout leaves behind; its arrays may still be in the making when it is returned.

    The arrays of ``played`` lie on the devices, split evenly. Where the devices do not divide B, they have rows of
    padding at the end; ``states`` and ``tally`` leave them out.
    """

    carry: RolloutCarry
    trajectory: Trajectory | None  # of the recorded steps; None where none is recorded
    num_envs: int = eqx.field(static=True)  # B
    num_steps: int = eqx.field(static=True)  # S
    mesh: Mesh = eqx.field(static=True)

    @property
    def states(self) -> PyTree[Array]:
        """The states of B environments, to go on with; where the devices do not divide B, a copy on each device."""
        return drop_padding(self.carry.states, self.num_envs, self.mesh)

    @property
    def metrics(self) -> EpisodeMetrics:
        """What happened in each environment."""
        return drop_padding(self.carry.metrics, self.num_envs, self.mesh)

    @property
    def totals(self) -> MetricTotals:
        """Sums over the environments; waits for the rollout to end."""
        return sum_metrics(drop_padding(to_host(self.carry.metrics), self.num_envs, self.mesh), self.num_steps)

    @property
    def task_counts(self) -> TaskCounts | None:
        """How often each task was played and solved, over all environments; None where that is not counted."""
        return None if self.carry.tasks is None else sum_task_metrics(to_host(self.carry.tasks))

    def gather(self) -> Self:
        """Return the same with all arrays on the host, as NumPy, without padding; waits for the rollout to end."""
        held = to_host((self.carry.states, self.carry.metrics))
        states, metrics = drop_padding(held, self.num_envs, self.mesh)
        carry = RolloutCarry(states, metrics, to_host(self.carry.tasks))
        return type(self)(carry, to_host(self.trajectory), self.num_envs, self.num_steps, self.mesh)
