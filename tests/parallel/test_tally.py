import jax.numpy as jnp
import numpy as np

from jaxarc.parallel.tally import Tally, Totals, count_step, empty_tally, sum_tally


def flags(*values):
    return jnp.array(values, jnp.bool_)


def numbers(*values):
    return jnp.array(values, jnp.float32)


def test_a_step_counts_where_an_episode_ends_in_it():
    running, done, success = flags(1, 1, 1, 0), flags(1, 1, 0, 1), flags(1, 0, 1, 1)
    info = {"success": success, "episode_return": numbers(1.0, 2.0, 4.0, 8.0)}
    rewards = numbers(0.5, 0.5, 0.5, 0.0)
    tally = empty_tally(jnp.arange(4, dtype=jnp.int32), has_returns=True)
    for _ in range(2):
        tally = count_step(tally, running, rewards, done, info)
    np.testing.assert_array_equal(tally.episodes, [2, 2, 0, 0])
    np.testing.assert_array_equal(tally.solved, [2, 0, 0, 0])
    np.testing.assert_array_equal(tally.reward_sum, [1.0, 1.0, 1.0, 0.0])
    np.testing.assert_array_equal(tally.return_sum, [2.0, 4.0, 0.0, 0.0])
    assert sum_tally(tally, num_steps=2) == Totals(4, 2, 3.0, 6.0, 8)


def test_sums_are_exact_beyond_32_bits():
    most = jnp.full(4, 2**31 - 1, jnp.int32)
    rewards = numbers(2.0**24, 1.0, 1.0, -(2.0**24))
    totals = sum_tally(Tally(most, most, rewards, None), num_steps=2**30)
    assert totals == Totals(4 * (2**31 - 1), 4 * (2**31 - 1), 2.0, None, 2**32)


def test_totals_add_up():
    one, two = Totals(3, 1, -0.5, 0.25, 96), Totals(4, 0, 1.5, -1.0, 100)
    assert one + two == Totals(7, 1, 1.0, -0.75, 196)
    assert one + Totals(0, 0, 0.0, None, 4) == Totals(3, 1, -0.5, None, 100)
