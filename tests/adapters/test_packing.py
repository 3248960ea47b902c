"""Arrays come to the host in one copy, with their values, shapes and dtypes."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxarc.adapters.packing import pack


def test_what_is_packed_is_unpacked_as_new_arrays():
    tree = {
        "flag": np.array(True),
        "flags": np.array([False, True, True]),
        "count": np.int32(-5),
        "bytes": np.array([[-1, 9, 127]], np.int8),
        "real": np.array([0.1, np.inf], np.float32),
        "words": np.array([2**32 - 1], np.uint32),
        "half": np.float16(0.5),
        "none": np.zeros((0, 3), np.int32),
    }
    packed = jax.jit(pack)(jax.tree.map(jnp.asarray, tree))
    once, again = packed.unpack(), packed.unpack()
    assert len(jax.tree.leaves(packed)) == 1
    for name, expected in tree.items():
        assert (once[name].dtype, once[name].shape) == (expected.dtype, expected.shape)
        np.testing.assert_array_equal(once[name], expected)
    for array in once.values():
        array[...] = 0
    for name, expected in tree.items():
        np.testing.assert_array_equal(again[name], expected)
