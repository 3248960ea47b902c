"""What happened in a rollout, counted per environment on the device and summed on the host."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32

from jaxarc.types import Info


class Tally(NamedTuple):
    """Counts of each environment; they stay on its device, so devices never wait for one another."""

    episodes: Int32[Array, " B"]  # episodes that ended
    solved: Int32[Array, " B"]  # of these, with info["success"]
    reward_sum: Float32[Array, " B"]  # over all steps
    return_sum: Float32[Array, " B"] | None  # over the ended episodes; None without EpisodeStatistics


@dataclasses.dataclass(frozen=True)
class Totals:
    """Sums over all environments, as Python numbers; totals of several calls can be added."""

    episodes: int  # that ended
    solved: int  # episodes that ended with info["success"]
    reward_sum: float  # over all steps
    return_sum: float | None  # of the ended episodes, their earlier steps included; None without EpisodeStatistics
    steps: int  # environments * steps of each

    def __add__(self, other: "Totals") -> "Totals":
        returns = [total.return_sum for total in (self, other) if total.return_sum is not None]
        return Totals(
            episodes=self.episodes + other.episodes,
            solved=self.solved + other.solved,
            reward_sum=self.reward_sum + other.reward_sum,
            return_sum=sum(returns) if len(returns) == 2 else None,
            steps=self.steps + other.steps,
        )


def empty_tally(index: Int32[Array, " B"], has_returns: bool) -> Tally:
    """Return zeros for as many environments, varying over the devices as ``index`` does."""
    count = index * 0
    amount = count.astype(jnp.float32)
    return Tally(count, count, amount, amount if has_returns else None)


def count_step(
    tally: Tally, running: Bool[Array, " B"], reward: Float32[Array, " B"], done: Bool[Array, " B"], info: Info
) -> Tally:
    """Add one step; an episode counts in the step that ends it, and not again in an environment that stays done."""
    ended = running & done
    return_sum = tally.return_sum
    if return_sum is not None:
        return_sum = return_sum + jnp.where(ended, info["episode_return"], jnp.float32(0))
    return Tally(
        episodes=tally.episodes + ended.astype(jnp.int32),
        solved=tally.solved + (ended & info["success"]).astype(jnp.int32),
        reward_sum=tally.reward_sum + reward,
        return_sum=return_sum,
    )


def sum_tally(tally: Tally, num_steps: int) -> Totals:
    """Sum over the environments: exact for counts, in float64 and in one order on any number of devices for rewards.

    Waits for the rollout to end.
    """
    counts: Any = jax.device_get(tally)
    return Totals(
        episodes=int(counts.episodes.sum(dtype=np.int64)),
        solved=int(counts.solved.sum(dtype=np.int64)),
        reward_sum=float(counts.reward_sum.sum(dtype=np.float64)),
        return_sum=None if counts.return_sum is None else float(counts.return_sum.sum(dtype=np.float64)),
        steps=counts.episodes.size * num_steps,
    )
