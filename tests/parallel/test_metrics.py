import jax.numpy as jnp
import numpy as np

from jaxarc.parallel.rollout_metrics import (
    EpisodeMetrics,
    MetricTotals,
    TaskMetrics,
    sum_metrics,
    sum_task_metrics,
    update_metrics,
    update_task_metrics,
    zero_metrics,
    zero_task_metrics,
)


def flags(*values):
    return jnp.array(values, jnp.bool_)


def numbers(*values):
    return jnp.array(values, jnp.float32)


def test_a_step_counts_where_an_episode_ends_in_it():
    counts = flags(1, 1, 1, 1, 0)
    running, done, success = flags(1, 1, 1, 0, 1), flags(1, 1, 0, 1, 1), flags(1, 0, 1, 1, 1)
    info = {"success": success, "episode_return": numbers(1.0, 2.0, 4.0, 8.0, 16.0)}
    rewards = numbers(0.5, 0.5, 0.5, 0.0, 0.5)
    metrics = zero_metrics(jnp.arange(5, dtype=jnp.int32), has_returns=True)
    for _ in range(2):
        metrics = update_metrics(metrics, counts, running, rewards, done, info)
    np.testing.assert_array_equal(metrics.episodes, [2, 2, 0, 0, 0])
    np.testing.assert_array_equal(metrics.solved, [2, 0, 0, 0, 0])
    np.testing.assert_array_equal(metrics.reward_sum, [1.0, 1.0, 1.0, 0.0, 0.0])
    np.testing.assert_array_equal(metrics.return_sum, [2.0, 4.0, 0.0, 0.0, 0.0])
    assert sum_metrics(metrics, num_steps=2) == MetricTotals(4, 2, 3.0, 6.0, 10)


def test_episodes_of_all_devices_are_counted_by_task():
    ended, info = flags(1, 0, 1, 1), {"task_index": jnp.array([2, 1, 0, 2]), "success": flags(1, 1, 0, 0)}
    here = update_task_metrics(zero_task_metrics(jnp.arange(4, dtype=jnp.int32), num_tasks=3), ended, info)
    there = TaskMetrics(jnp.full((1, 3), 2**31 - 1, jnp.int32), jnp.zeros((1, 3), jnp.int32))
    counts = sum_task_metrics(TaskMetrics(*(np.concatenate(pair) for pair in zip(here, there, strict=True))))
    np.testing.assert_array_equal(counts.episodes, np.array([1, 0, 2]) + 2**31 - 1)
    np.testing.assert_array_equal(counts.solved, [0, 0, 1])


def test_sums_are_exact_beyond_32_bits():
    most = jnp.full(4, 2**31 - 1, jnp.int32)
    rewards = numbers(2.0**24, 1.0, 1.0, -(2.0**24))
    totals = sum_metrics(EpisodeMetrics(most, most, rewards, None), num_steps=2**30)
    assert totals == MetricTotals(4 * (2**31 - 1), 4 * (2**31 - 1), 2.0, None, 2**32)
