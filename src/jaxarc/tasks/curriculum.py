"""Curriculum: statistics of each task, and from them the weight of each task in the next draws.

A few arrays on the device. A loop counts the episodes of an update once, and puts the new weights into its params;
nothing recompiles:

    curriculum = start_curriculum(params.weights, CurriculumConfig("learnability"))
    ...
    curriculum = record(curriculum, info["task_index"], done, info["success"])
    params = dataclasses.replace(params, weights=curriculum_weights(curriculum))
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Float32, Int32

from jaxarc.config import CurriculumConfig
from jaxarc.device_arrays import device_array
from jaxarc.tasks.buffer import scaled_weights

_MOST = 2**31 - 1


class TaskStatistics(eqx.Module):
    """Statistics of each task since the start of the curriculum."""

    attempts: Int32[Array, " T"]  # episodes that ended; at most 2**31 - 1
    solves: Int32[Array, " T"]  # of these, solved ones
    success_rate: Float32[Array, " T"]  # 0 .. 1, of recent episodes, the prior before the first; see apply_counts
    score: Float32[Array, " T"]  # of the last update that gave one; replay ranks by it; 0 before the first
    last_update: Int32[Array, " T"]  # the clock when an episode ended here last; -1 never
    clock: Int32[Array, ""]  # updates so far


class Curriculum(eqx.Module):
    """Statistics of every task and the rule that turns them into weights.

    A pytree of arrays whose shapes never change: it goes through ``jit``, ``vmap``, ``scan`` and checkpoints.
    """

    statistics: TaskStatistics
    base_weights: Float32[Array, " T"]  # of the tasks without a curriculum; 0: never drawn, with one neither
    config: CurriculumConfig = eqx.field(static=True)


class TaskEpisodes(NamedTuple):
    """Episodes of one update, by task; the sum over devices is a ``jax.lax.psum``."""

    attempts: Int32[Array, " T"]
    solves: Int32[Array, " T"]
    score_count: Int32[Array, " T"] | None  # entries with a score; None where no score is given
    score_sum: Float32[Array, " T"] | None


def start_curriculum(base_weights: Float[Array, " T"], config: CurriculumConfig) -> Curriculum:
    """Start with tasks that were never played.

    Args:
        base_weights: such as those of :func:`jaxarc.tasks.uniform_weights` or :func:`jaxarc.datasets.task_weights`.
        config: the rule.

    Raises:
        TypeError: the config is of another type.
        ValueError: the weights have not one axis.
    """
    if not isinstance(config, CurriculumConfig):
        raise TypeError(f"config must be a CurriculumConfig, got {type(config).__name__}; see jaxarc.config")
    if jnp.ndim(base_weights) != 1:
        raise ValueError(f"there is one weight for each task, got an array of shape {jnp.shape(base_weights)}; vmap")
    base = device_array(base_weights, jnp.float32)
    zeros = jnp.zeros_like(base, jnp.int32)
    statistics = TaskStatistics(
        attempts=zeros,
        solves=zeros,
        success_rate=jnp.full_like(base, config.prior_success),
        score=jnp.zeros_like(base),
        last_update=zeros - 1,
        clock=jnp.int32(0),
    )
    return Curriculum(statistics, base, config)


def record(
    curriculum: Curriculum,
    task_index: Int32[Array, "*B"],
    ended: Bool[Array, "*B"],
    solved: Bool[Array, "*B"],
    score: Float32[Array, "*B"] | None = None,
) -> Curriculum:
    """Add the episodes of an update: :func:`count_episodes`, then :func:`apply_counts`."""
    counts = count_episodes(curriculum.base_weights.shape[-1], task_index, ended, solved, score)
    return apply_counts(curriculum, counts)


def count_episodes(
    num_tasks: int,
    task_index: Int32[Array, "*B"],
    ended: Bool[Array, "*B"],
    solved: Bool[Array, "*B"],
    score: Float32[Array, "*B"] | None = None,
) -> TaskEpisodes:
    """Count episodes by task; the integers do not depend on the order of the entries.

    Under ``shard_map`` each device counts its own, and ``jax.lax.psum(counts, axis)`` are those of all.

    Args:
        num_tasks: T, static.
        task_index: which task each entry played; entries are steps or episodes, with any leading axes.
        ended: whether an episode ended in the entry; one count each.
        solved: whether the episode that ended was solved; read only where one ended.
        score: how much an agent can learn from the entry, such as the value's error; read in every entry.
    """
    # Adding at repeated indices adds each of them: tasks 2 0 2 that ended 1 1 1 give the counts 1 0 2.
    index = task_index.ravel()

    def total(of: Array) -> Array:
        return jnp.zeros((num_tasks,), of.dtype).at[index].add(of.ravel())

    return TaskEpisodes(
        attempts=total(ended.astype(jnp.int32)),
        solves=total((ended & solved).astype(jnp.int32)),
        score_count=None if score is None else total(jnp.ones_like(task_index)),
        score_sum=None if score is None else total(score),
    )


def apply_counts(curriculum: Curriculum, counts: TaskEpisodes) -> Curriculum:
    """Add the counts of an update to the statistics, and advance the clock.

    The recent success rate is an exponential moving average that starts at the prior. Each episode moves it by a share
    of ``1 - decay``, and the episodes of one update count as equally solved, since their order means nothing. So the
    prior weighs like the ``1 / (1 - decay)`` episodes that the average remembers, and fades as episodes come. With a
    decay of 0.9 and a rate of 0.5, three episodes of which two were solved keep ``0.9**3 = 0.729`` of the old rate:
    ``0.729 * 0.5 + 0.271 * 2/3 = 0.545``.

    Without scores a task's score is its learnability, success rate times failure rate.
    """
    old = curriculum.statistics
    config = curriculum.config
    count = counts.attempts.astype(jnp.float32)
    played = counts.attempts > 0
    # n episodes leave decay ** n of the old rate: with decay 0.9, a rate of 0.5 and 2 episodes, one of them solved, it
    # is 0.81 * 0.5 + 0.19 * 0.5 = 0.5; with both solved 0.81 * 0.5 + 0.19 = 0.595.
    kept = jnp.float32(config.decay) ** count
    share = counts.solves.astype(jnp.float32) / jnp.maximum(count, 1.0)
    success_rate = jnp.where(played, kept * old.success_rate + (1 - kept) * share, old.success_rate)
    if counts.score_sum is None or counts.score_count is None:
        score = jnp.where(played, _learnability(success_rate), old.score)
    else:
        mean = counts.score_sum / jnp.maximum(counts.score_count.astype(jnp.float32), 1.0)
        score = jnp.where(counts.score_count > 0, mean, old.score)
    clock = _add(old.clock, jnp.int32(1))
    statistics = TaskStatistics(
        attempts=_add(old.attempts, counts.attempts),
        solves=_add(old.solves, counts.solves),
        success_rate=success_rate,
        score=score,
        last_update=jnp.where(played, clock, old.last_update),
        clock=clock,
    )
    return Curriculum(statistics, curriculum.base_weights, config)


def curriculum_weights(curriculum: Curriculum) -> Float32[Array, " T"]:
    """Return the weight of each task in the next draws; the weights sum to one.

    - ``uniform``: the base weights as they were given.
    - ``learnability``: ``p * (1 - p)`` of the recent success rate ``p`` (Tzannetos et al. 2023,
      https://arxiv.org/abs/2304.12877; Rutherford et al. 2024, https://arxiv.org/abs/2408.15099). A task that is
      always or never solved fades. One that was never played has the prior's learnability.
    - ``replay``: prioritized level replay (Jiang et al. 2021, https://arxiv.org/abs/2010.03934). A task that was never
      played keeps its base weight; the rest goes to the played ones by the rank of their score, and in part by the
      time since they were played. A task that is left alone thus comes back.

    Base weights multiply learnability and rank. A share of the draws, ``uniform_share``, goes by the base weights
    alone, so every task with a positive base weight is drawn now and then.
    """
    config = curriculum.config
    base = curriculum.base_weights
    if config.kind == "uniform":
        return base
    # The uniform share, where it is above 0, keeps every task of positive base weight in play.
    base = scaled_weights(base)
    base = base / base.sum()
    chosen = (_by_learnability if config.kind == "learnability" else _by_replay)(curriculum.statistics, base, config)
    return config.uniform_share * base + (1 - config.uniform_share) * chosen


def count_played_tasks(curriculum: Curriculum) -> Int32[Array, ""]:
    """Count the tasks on which at least one episode ended."""
    return (curriculum.statistics.attempts > 0).sum(dtype=jnp.int32)


def effective_task_count(weights: Float32[Array, " T"]) -> Float32[Array, ""]:
    """Return how many equally likely tasks would be as hard to guess: the exponential of the weights' entropy.

    It is T for equal weights and 1 when only one task is drawn.
    """
    # Weights 1/2, 1/4, 1/4: the entropy is 1.04 nats, and exp(1.04) = 2.8 tasks. A weight of 0 adds 0 * log 1.
    weights = scaled_weights(weights)
    share = weights / weights.sum()
    surprise = -jnp.log(jnp.where(share > 0, share, 1.0))
    return jnp.exp((share * surprise).sum())


def _by_learnability(
    statistics: TaskStatistics, base: Float32[Array, " T"], config: CurriculumConfig
) -> Float32[Array, " T"]:
    # Success rates of 0.5, 0.9 and 1.0 have learnabilities of 0.25, 0.09 and 0. At temperature 1 they are the weights;
    # a lower temperature favors the first. Dividing by the highest keeps the power in the range of float32.
    learnability = _learnability(statistics.success_rate)
    highest = jnp.maximum(learnability.max(), jnp.finfo(jnp.float32).tiny)
    return _normalized(base * (learnability / highest) ** (1 / config.temperature), base)


def _by_replay(
    statistics: TaskStatistics, base: Float32[Array, " T"], config: CurriculumConfig
) -> Float32[Array, " T"]:
    """Give unseen tasks their base weight, and the seen ones the rest by rank and staleness.

    Four tasks of base weight 1/4, of which the first three were played with the scores 0.1, 0.7, 0.3: their ranks are
    3, 1, 2, and at temperature 1 their shares 1/3, 1, 1/2 of 11/6, so 2/11, 6/11, 3/11. The fourth keeps its 1/4, and
    the three divide 3/4 by these shares.
    """
    zero = jnp.float32(0)
    seen = (statistics.last_update >= 0) & (base > 0)
    seen_base = jnp.where(seen, base, zero)
    # Ranks from a sort: ``order`` names the task of each place, and scattering the places back names the place of each
    # task. Scores 0.1, 0.7, 0.3 have the order 1, 2, 0, so the tasks have the ranks 3, 1, 2.
    order = jnp.argsort(jnp.where(seen, statistics.score, -jnp.inf), descending=True)
    index = jnp.zeros_like(order).at[order].set(jnp.arange(order.size, dtype=order.dtype))
    rank = (index + 1).astype(jnp.float32)
    # Updates since the task was played last, so one that was not drawn for long comes up again, whatever its score.
    age = (statistics.clock - statistics.last_update).astype(jnp.float32)
    by_rank = _normalized(seen_base * rank ** (-1 / config.temperature), zero)
    by_age = _normalized(seen_base * age, by_rank)
    chosen = config.staleness_share * by_age + (1 - config.staleness_share) * by_rank
    return jnp.where(seen, seen_base.sum() * chosen, base)


def _learnability(success_rate: Float32[Array, " T"]) -> Float32[Array, " T"]:
    return success_rate * (1 - success_rate)


def _normalized(weights: Float32[Array, " T"], otherwise: Float32[Array, "..."]) -> Float32[Array, " T"]:
    """Divide weights by their sum; where all are 0, return ``otherwise``."""
    total = weights.sum()
    return jnp.where(total > 0, weights / jnp.where(total > 0, total, 1.0), otherwise)


def _add(count: Int32[Array, "*T"], more: Int32[Array, "*T"]) -> Int32[Array, "*T"]:
    """Add counts of 0 or more, and stop at the largest int32 instead of wrapping to negative numbers."""
    return count + jnp.minimum(more, _MOST - count)
