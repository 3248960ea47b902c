"""Shards of a batch, where a ``vmap`` with a name for its axis stands for the devices."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.parallel.mesh import DataShard

COUNT = 4
FOUR = DataShard("data", COUNT)


def on_devices(function, *arguments):
    return jax.jit(jax.vmap(function, axis_name="data", axis_size=COUNT))(*arguments)


def in_order(rows):
    """Add rows as the devices come, in NumPy."""
    return functools.reduce(np.add, list(rows))


@pytest.mark.parametrize("size", [1, 7, 4096, 4097, 10_001], ids=str)
def test_sums_are_in_the_order_of_the_devices_bit_for_bit(size):
    rows = np.random.default_rng(size).normal(size=(COUNT, size)).astype(np.float32) * np.float32(1e4)
    rows[:, 0] = [1e8, 1, -1e8, 1]  # in another order it is another number
    sums = on_devices(FOUR.sum, rows)
    for device in range(COUNT):
        np.testing.assert_array_equal(sums[device], in_order(rows))


def test_each_device_gets_its_part():
    whole = jnp.arange(24, dtype=jnp.int32).reshape(2, 12)
    parts = on_devices(lambda _: FOUR.local_slice(whole, axis=1), jnp.zeros(COUNT))
    np.testing.assert_array_equal(np.concatenate(list(parts), axis=1), whole)
    assert parts.shape == (COUNT, 2, 3)


@pytest.mark.parametrize("total", [1, 3, 4, 9, 12])
def test_bounds_give_everything_to_somebody_once(total):
    begins, ends = on_devices(lambda _: FOUR.bounds(total), jnp.zeros(COUNT))
    held = [place for begin, end in zip(begins, ends, strict=True) for place in range(int(begin), int(end))]
    assert held == list(range(total))
