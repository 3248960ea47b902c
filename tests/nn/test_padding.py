"""Arrays of a shape that does not depend on values."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.nn import make_tpu_friendly_shape, padded_fn


def test_any_number_of_copies_is_one_program():
    traces = []

    @jax.jit
    def padded(x, n):
        traces.append(1)
        return padded_fn(x, n, max_n=3)

    x = jnp.array([[1, 2], [3, 4]])
    for n in range(4):
        array, is_real = padded(x, n)
        assert array.shape == (6, 2)
        np.testing.assert_array_equal(array[is_real], np.tile(x, (n, 1)))
        assert not array[~is_real].any()
        assert is_real.sum() == 2 * n
    assert len(traces) == 1


def test_what_cannot_be_padded_is_named():
    with pytest.raises(eqx.EquinoxRuntimeError, match="max_n=10"):
        padded_fn(jnp.ones(2), 11)
    with pytest.raises(ValueError, match="shape"):
        padded_fn(jnp.ones(()), 1)


@pytest.mark.parametrize(("size", "rounded"), [(1, 128), (128, 128), (129, 256)])
def test_sizes_are_rounded_up_to_the_lanes_of_a_tpu(size, rounded):
    assert make_tpu_friendly_shape(size) == rounded


def test_a_size_below_one_is_named():
    with pytest.raises(ValueError, match="0"):
        make_tpu_friendly_shape(0)
