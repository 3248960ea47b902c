"""Metrics of a rollout: counted per environment on the device, summed on the host.

Each environment has counters of its own, so devices send no messages while they play, and the sums on the host are the
same on any number of devices: counts are exact, and rewards are added in float64 in the order of the environments.
"""

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float32, Int32, Int64

from jaxarc.tasks.curriculum import count_episodes
from jaxarc.types import Info


class EpisodeMetrics(NamedTuple):
    """Counters of each environment, on its device."""

    episodes: Int32[Array, " B"]  # episodes that ended
    solved: Int32[Array, " B"]  # of these, with info["success"]
    reward_sum: Float32[Array, " B"]  # over all steps
    return_sum: Float32[Array, " B"] | None  # over the ended episodes; None without EpisodeStatistics


class TaskMetrics(NamedTuple):
    """Counters of each task, separately on each device; below 2**31."""

    episodes: Int32[Array, "D T"]  # episodes that ended
    solved: Int32[Array, "D T"]  # of these, with info["success"]


class TaskCounts(NamedTuple):
    """Counts of each task over all environments, on the host."""

    episodes: Int64[np.ndarray, " T"]  # episodes that ended
    solved: Int64[np.ndarray, " T"]  # of these, solved ones


@dataclasses.dataclass(frozen=True)
class MetricTotals:
    """Sums over all environments, as Python numbers; totals of several calls can be added."""

    episodes: int  # that ended
    solved: int  # episodes that ended with info["success"]
    reward_sum: float  # over all steps
    return_sum: float | None  # of the ended episodes, their earlier steps included; None without EpisodeStatistics
    steps: int  # environments * steps of each

    def __add__(self, other: "MetricTotals") -> "MetricTotals":
        returns = [total.return_sum for total in (self, other) if total.return_sum is not None]
        return MetricTotals(
            episodes=self.episodes + other.episodes,
            solved=self.solved + other.solved,
            reward_sum=self.reward_sum + other.reward_sum,
            return_sum=sum(returns) if len(returns) == 2 else None,
            steps=self.steps + other.steps,
        )


def zero_metrics(index: Int32[Array, " B"], has_returns: bool) -> EpisodeMetrics:
    """Return zeros for as many environments. ``index * 0`` differs between devices for JAX, as a carry has to."""
    zero_count = index * 0
    zero_sum = zero_count.astype(jnp.float32)
    return EpisodeMetrics(zero_count, zero_count, zero_sum, zero_sum if has_returns else None)


def zero_task_metrics(index: Int32[Array, " B"], num_tasks: int) -> TaskMetrics:
    """Return zeros for this device, varying over the devices as ``index`` does."""
    zeros = jnp.zeros((1, num_tasks), jnp.int32) + index[0] * 0
    return TaskMetrics(zeros, zeros)


def update_metrics(
    metrics: EpisodeMetrics,
    counts: Bool[Array, " B"],
    running: Bool[Array, " B"],
    reward: Float32[Array, " B"],
    done: Bool[Array, " B"],
    info: Info,
) -> EpisodeMetrics:
    """Add one step; an episode counts in the step that ends it, and not again in an environment that stays done.

    Args:
        metrics: of the steps before.
        counts: false for a row of padding, which adds nothing.
        running: whether the episode had not ended before the step.
        reward: of the step.
        done: whether the episode has ended after it.
        info: of the step.
    """
    # Without auto-reset an episode that ends in step 3 is done in steps 3, 4 and 5, and running before step 3 only.
    ended = counts & running & done
    zero = jnp.float32(0)
    return_sum = metrics.return_sum
    if return_sum is not None:
        return_sum = return_sum + jnp.where(ended, info["episode_return"], zero)
    return EpisodeMetrics(
        episodes=metrics.episodes + ended.astype(jnp.int32),
        solved=metrics.solved + (ended & info["success"]).astype(jnp.int32),
        reward_sum=metrics.reward_sum + jnp.where(counts, reward, zero),
        return_sum=return_sum,
    )


def update_task_metrics(metrics: TaskMetrics, ended: Bool[Array, " B"], info: Info) -> TaskMetrics:
    """Add the episodes that ended in one step of this device, each to its task."""
    # [T] of this step, added to this device's one row [1, T].
    more = count_episodes(metrics.episodes.shape[-1], info["task_index"], ended, info["success"])
    return TaskMetrics(metrics.episodes + more.attempts[None], metrics.solved + more.solves[None])


def sum_metrics(metrics: EpisodeMetrics, num_steps: int) -> MetricTotals:
    """Sum over the environments, on the host.

    Args:
        metrics: of B environments, on the host.
        num_steps: of each environment.
    """
    # In NumPy, with 64 bits and in the order of the environments: the sum does not depend on the number of devices.
    episodes, solved, reward_sum = (np.asarray(x) for x in metrics[:3])
    return_sum = None if metrics.return_sum is None else float(np.asarray(metrics.return_sum).sum(dtype=np.float64))
    return MetricTotals(
        episodes=int(episodes.sum(dtype=np.int64)),
        solved=int(solved.sum(dtype=np.int64)),
        reward_sum=float(reward_sum.sum(dtype=np.float64)),
        return_sum=return_sum,
        steps=episodes.size * num_steps,
    )


def sum_task_metrics(metrics: TaskMetrics) -> TaskCounts:
    """Sum the counts of all devices, on the host."""
    # [D, T] -> [T]: integers, so the order of devices does not matter.
    return TaskCounts(*(np.asarray(each).sum(axis=0, dtype=np.int64) for each in metrics))
