"""What a rollout leaves behind: on the devices, without padding, summed, or on the host."""

from typing import Self

import equinox as eqx
from jax.sharding import Mesh
from jaxtyping import Array, PyTree

from jaxarc.parallel.batch import drop_padding, to_host
from jaxarc.parallel.program import Played
from jaxarc.parallel.tally import Tally, TaskCounts, Totals, sum_tally, sum_tasks
from jaxarc.parallel.trajectory import Trajectory


class Rollout(eqx.Module):
    """What a rollout leaves behind; its arrays may still be in the making when it is returned.

    The arrays of ``played`` lie on the devices, split evenly. Where the devices do not divide B, they have rows of
    padding at the end; ``states`` and ``tally`` leave them out.
    """

    played: Played
    trajectory: Trajectory | None  # of the recorded steps; None where none is recorded
    num_envs: int = eqx.field(static=True)  # B
    num_steps: int = eqx.field(static=True)  # S
    mesh: Mesh = eqx.field(static=True)

    @property
    def states(self) -> PyTree[Array]:
        """The states of B environments, to go on with; where the devices do not divide B, a copy on each device."""
        return drop_padding(self.played.states, self.num_envs, self.mesh)

    @property
    def tally(self) -> Tally:
        """What happened in each environment."""
        return drop_padding(self.played.tally, self.num_envs, self.mesh)

    @property
    def totals(self) -> Totals:
        """Sums over the environments; waits for the rollout to end."""
        return sum_tally(drop_padding(to_host(self.played.tally), self.num_envs, self.mesh), self.num_steps)

    @property
    def task_counts(self) -> TaskCounts | None:
        """How often each task was played and solved, over all environments; None where that is not counted."""
        return None if self.played.tasks is None else sum_tasks(to_host(self.played.tasks))

    def gather(self) -> Self:
        """Return the same with all arrays on the host, as NumPy, without padding; waits for the rollout to end."""
        held = to_host((self.played.states, self.played.tally))
        states, tally = drop_padding(held, self.num_envs, self.mesh)
        played = Played(states, tally, to_host(self.played.tasks))
        return type(self)(played, to_host(self.trajectory), self.num_envs, self.num_steps, self.mesh)
