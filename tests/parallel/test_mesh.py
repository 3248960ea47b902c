"""Meshes of devices, and how a batch is laid out on them."""

import sys

import jax
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType
from process_group import run_python

from jaxarc.parallel import data_mesh, host_cores, use_host_cores
from jaxarc.parallel.mesh import drop_padding, envs_per_device, pad_rows, padded_size


def run(program, **options):
    """Run a program that has jax and jaxarc.parallel; return the words that it prints."""
    return run_python(f"import jax\nfrom jaxarc.parallel import *\n{program}", **options).split()


def test_use_host_cores_makes_devices():
    program = "print(use_host_cores(3), use_host_cores(), len(jax.devices()), data_mesh().size, use_host_cores(3))"
    assert run(program) == ["3", "3", "3", "3", "3"]


def test_use_host_cores_makes_one_device_per_core_that_the_process_may_use():
    program = "print(use_host_cores(), len(jax.devices()))"
    assert run(program) == [str(host_cores())] * 2
    if sys.platform == "linux":
        pinned = "import os; os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])\n"
        assert run(pinned + program) == ["1", "1"]


def test_use_host_cores_says_when_it_is_too_late():
    devices = len(jax.devices())
    assert use_host_cores(devices) == devices
    with pytest.raises(RuntimeError, match=rf"use_host_cores\({devices + 1}\) comes too late.*{devices} CPU"):
        use_host_cores(devices + 1)


def test_data_mesh_is_over_the_devices_of_this_process():
    mesh = data_mesh()
    assert mesh.axis_names == ("data",)
    assert mesh.axis_types == (AxisType.Auto,)
    assert list(mesh.devices.flat) == jax.local_devices()
    assert data_mesh(1).size == 1


MATMUL = """
import jax.numpy as jnp
from jaxarc.profiling import count_collectives
mesh = create_mesh((4, 2))
x = jax.device_put(jnp.arange(1024 * 512.0).reshape(1024, 512) % 7, jax.NamedSharding(mesh, jax.P("data", None)))
w = jax.device_put(jnp.arange(512 * 256.0).reshape(512, 256) % 5, jax.NamedSharding(mesh, jax.P(None, "model")))
product = jax.jit(jnp.matmul)
by_contraction = jax.device_put(w, jax.NamedSharding(mesh, jax.P("data", None)))
same = bool((product(x, w) == product(jax.device_get(x), jax.device_get(w))).all())
print(mesh.axis_names == ("data", "model"), same, product(x, w).sharding.spec == jax.P("data", "model"))
count = lambda *both: sum(each.num_instructions for each in count_collectives(product.lower(*both).compile()).values())
print(count(x, w), count(x, by_contraction) > 0, create_mesh((2,), ["stage"]).size, create_mesh((8,), ["data"]).size)
"""


def test_a_product_of_rows_and_columns_on_a_mesh_needs_no_messages():
    told = run(MATMUL, devices=8)
    assert told == ["True", "True", "True", "0", "True", "2", "8"]


@pytest.mark.parametrize(("num_envs", "devices", "each"), [(8, 8, 1), (9, 8, 2), (3, 8, 1), (1000, 1, 1000)])
def test_devices_share_environments_as_evenly_as_can_be(num_envs, devices, each):
    mesh = AbstractMesh((devices, 2), ("data", "model"))
    assert envs_per_device(num_envs, mesh) == each
    assert padded_size(num_envs, mesh) == each * devices


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
