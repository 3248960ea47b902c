"""Drawing tasks on the device."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.datasets import TaskSet, task_weights
from jaxarc.tasks import RawTask, sample_task, uniform_weights
from jaxarc.tasks.buffer import cumulative_weights

DRAWS = 20_000
_draw = jax.jit(jax.vmap(sample_task, in_axes=(0, None)))


def draw(weights, count=DRAWS, seed=0):
    return np.asarray(_draw(jax.random.split(jax.random.key(seed), count), weights))


@pytest.fixture
def tasks():
    pair = ([[1]], [[2]])
    return TaskSet("four", tuple(RawTask(task_id, (pair,), (pair,)) for task_id in ("a", "b", "c", "d")))


def test_draws_follow_the_weights():
    weights = np.array([1.0, 0.0, 4.0, 2.5, 0.5], np.float32)
    expected = weights / weights.sum()
    share = np.bincount(draw(jnp.asarray(weights)), minlength=5) / DRAWS
    assert share[1] == 0
    assert np.abs(share - expected).max() < 5 * np.sqrt(0.25 / DRAWS)  # five standard deviations


def test_uniform_weights_reach_every_task_alike():
    counts = np.bincount(draw(uniform_weights(50)), minlength=50)
    assert counts.min() > 0
    chi_square = ((counts - DRAWS / 50) ** 2 / (DRAWS / 50)).sum()
    assert chi_square < 100  # 49 degrees of freedom: below 100 but once in 40,000


@pytest.mark.parametrize("only", [0, 1, 499, 998, 999])
def test_single_positive_weight_is_always_drawn(only):
    weights = jnp.zeros(1000, jnp.float32).at[only].set(0.1)
    assert set(draw(weights, 1000)) == {only}


def test_cumulative_weights_stand_still_exactly_at_weight_zero():
    plain_sum_rises = False
    for seed in range(5):
        random = np.random.default_rng(seed)
        weights = np.where(random.random(4000) < 0.5, 0, random.lognormal(0, 2, 4000)).astype(np.float32)
        weights[0] = weights[-1] = 0
        rises = np.diff(np.asarray(cumulative_weights(jnp.asarray(weights))), prepend=np.float32(0))
        assert (rises >= 0).all()
        assert (rises[weights == 0] == 0).all()
        assert (weights[draw(jnp.asarray(weights), 5000, seed)] > 0).all()
        plain = np.diff(np.asarray(jnp.cumsum(jnp.asarray(weights))), prepend=np.float32(0))
        plain_sum_rises |= bool((plain[weights == 0] != 0).any())
    assert plain_sum_rises, "the plain sum already stands still, so this test proves nothing"


@pytest.mark.parametrize("uniform", [0.0, 1.0, np.nextafter(np.float32(1), np.float32(0))])
def test_ends_of_the_unit_interval_stay_on_positive_weights(monkeypatch, uniform):
    monkeypatch.setattr(jax.random, "uniform", lambda key, shape, dtype: jnp.full(shape, uniform, dtype))
    weights = jnp.array([0.0, 0.0, 0.3, 0.0, 0.7, 0.0, 0.0], jnp.float32)
    assert int(sample_task(jax.random.key(0), weights)) == (2 if uniform == 0 else 4)


def test_other_weights_do_not_recompile():
    traces = []

    @jax.jit
    def traced(key, weights):
        traces.append(1)
        return sample_task(key, weights)

    for only in range(3):
        assert int(traced(jax.random.key(0), jax.nn.one_hot(only, 3))) == only
    assert len(traces) == 1


def test_weights_by_id(tasks):
    assert task_weights(tasks, ["d", "a"]).tolist() == [0.5, 0, 0, 0.5]
    assert task_weights(tasks, {"b": 3, "c": 1.0, "a": 0}).tolist() == [0, 0.75, 0.25, 0]
    assert task_weights(tasks, iter(tasks.task_ids)).tolist() == uniform_weights(4).tolist()


def test_every_task_of_a_large_table_is_drawn_alike():
    num_tasks = 100_000
    counts = np.bincount(draw(uniform_weights(num_tasks), 20 * num_tasks), minlength=num_tasks)
    assert counts.min() > 0
    chi_square = ((counts - 20) ** 2 / 20).sum()
    assert abs(chi_square - num_tasks) < 5 * np.sqrt(2 * num_tasks)  # five standard deviations


@pytest.mark.parametrize("scale", [2.0**-99, 1e-29, 2.0**100, 3e38])
def test_tiny_and_huge_weights_are_drawn_as_others_are(scale):
    weights = np.array([1.0, 0.0, 0.25, 0.5, 1.0], np.float32)
    powers = jnp.asarray(weights * np.float32(scale))
    expected = draw(jnp.asarray(weights), 1000)
    np.testing.assert_array_equal(draw(powers, 1000), expected)
    assert np.isfinite(np.asarray(cumulative_weights(powers))).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_weights_in_half_precision_reach_every_task(dtype):
    counts = np.bincount(draw(uniform_weights(400).astype(dtype)), minlength=400)
    assert counts.min() > 0
    np.testing.assert_array_equal(draw(jnp.ones(400, dtype), 100), draw(jnp.ones(400, jnp.float32), 100))
