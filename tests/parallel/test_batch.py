"""How a batch is laid out on devices, where these are only named."""

import jax
import numpy as np
import pytest
from jax.sharding import AbstractMesh

from jaxarc.parallel import data_mesh
from jaxarc.parallel.mesh import drop_padding, envs_per_device, pad_rows, padded_size, to_host


@pytest.mark.parametrize(("num_envs", "devices", "each"), [(8, 8, 1), (9, 8, 2), (3, 8, 1), (1000, 1, 1000)])
def test_devices_share_environments_as_evenly_as_can_be(num_envs, devices, each):
    mesh = AbstractMesh((devices, 2), ("data", "model"))
    assert envs_per_device(num_envs, mesh) == each
    assert padded_size(num_envs, mesh) == each * devices


def test_a_batch_that_cannot_be_laid_out_is_refused():
    with pytest.raises(ValueError, match="1 or more, got num_envs=0"):
        envs_per_device(0, data_mesh(1))
    with pytest.raises(ValueError, match=r"'data'.*\('rows',\)"):
        envs_per_device(8, AbstractMesh((2,), ("rows",)))


@pytest.mark.parametrize("numbers", [np, jax.numpy])
def test_padding_repeats_the_last_row_and_can_be_dropped(numbers):
    mesh = AbstractMesh((4,), ("data",))
    rows = numbers.asarray(np.arange(10, dtype=np.int32).reshape(5, 2))
    padded = pad_rows({"x": rows}, 5, mesh)["x"]
    np.testing.assert_array_equal(padded, np.asarray(rows)[[0, 1, 2, 3, 4, 4, 4, 4]])
    assert pad_rows(padded, 5, mesh) is padded
    kept = drop_padding(padded, 5, data_mesh(1))
    np.testing.assert_array_equal(kept, rows)
    assert drop_padding(kept, 5, data_mesh(1)) is kept
    np.testing.assert_array_equal(drop_padding(padded.T, 5, data_mesh(1), axis=1), rows.T)


def test_to_host_leaves_what_is_no_array():
    tree = {"x": jax.numpy.zeros(3), "y": 7, "z": None}
    host = to_host(tree)
    assert isinstance(host["x"], np.ndarray)
    assert (host["y"], host["z"]) == (7, None)
