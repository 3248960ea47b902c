"""Shards of a batch, where a ``vmap`` with a name for its axis stands for the devices."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.parallel.shards import UNSHARDED, DataShard

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


def test_a_tree_keeps_its_shapes_and_dtypes():
    tree = {"a": jnp.ones((COUNT, 2, 3)), "b": jnp.arange(COUNT, dtype=jnp.int32), "c": None}
    sums = on_devices(FOUR.sum, tree)
    assert jax.tree.structure(sums) == jax.tree.structure(tree)
    np.testing.assert_array_equal(sums["a"], np.full((COUNT, 2, 3), 4, np.float32))
    np.testing.assert_array_equal(sums["b"], np.full(COUNT, 6, np.int32))
    np.testing.assert_array_equal(on_devices(FOUR.mean, tree["a"]), np.ones((COUNT, 2, 3), np.float32))


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


def test_the_whole_is_left_as_it_is():
    x = jnp.arange(3.0)
    assert UNSHARDED.local_slice(x) is UNSHARDED.sum(x) is UNSHARDED.mean(x) is x
    assert tuple(map(int, UNSHARDED.bounds(7))) == (0, 7)
