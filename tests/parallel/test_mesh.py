import os
import subprocess
import sys

import jax
import pytest
from jax.sharding import AbstractMesh, AxisType

from jaxarc.parallel import data_mesh, host_cores, require_even_split, use_host_cores


def run(program, **environment):
    process = subprocess.run(
        [sys.executable, "-c", f"import jax\nfrom jaxarc.parallel import *\n{program}"],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr[-3000:]
    return process.stdout.split()


def test_use_host_cores_makes_devices():
    program = "print(use_host_cores(3), use_host_cores(), len(jax.devices()), data_mesh().size, use_host_cores(3))"
    assert run(program) == ["3", "3", "3", "3", "3"]


def test_use_host_cores_makes_one_device_per_core_that_the_process_may_use():
    program = "print(use_host_cores(), len(jax.devices()))"
    assert run(program) == [str(host_cores())] * 2
    if sys.platform == "linux":
        pinned = "import os; os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])\n"
        assert run(pinned + program) == ["1", "1"]


def test_use_host_cores_keeps_a_number_that_is_chosen_already():
    assert run("print(use_host_cores(), len(jax.devices()))", JAX_NUM_CPU_DEVICES="5") == ["5", "5"]


def test_use_host_cores_says_when_it_is_too_late():
    devices = len(jax.devices())
    assert use_host_cores(devices) == devices
    with pytest.raises(RuntimeError, match=rf"use_host_cores\({devices + 1}\) comes too late.*{devices} CPU"):
        use_host_cores(devices + 1)


def test_use_host_cores_refuses_none_at_all():
    with pytest.raises(ValueError, match="1 or more cores, got 0"):
        use_host_cores(0)


def test_data_mesh_is_over_the_devices_of_this_process():
    mesh = data_mesh()
    assert mesh.axis_names == ("data",)
    assert mesh.axis_types == (AxisType.Auto,)
    assert list(mesh.devices.flat) == jax.local_devices()
    assert data_mesh(1).size == 1


@pytest.mark.parametrize("count", [0, 1000])
def test_data_mesh_refuses_more_devices_than_there_are(count):
    with pytest.raises(ValueError, match=rf"must be 1 \.\. \d+, .* got {count}"):
        data_mesh(count)


@pytest.mark.parametrize(
    ("num_envs", "devices", "nearest"),
    [(7, 2, 6), (3, 8, 8), (1, 2, 2), (13, 8, 16), (11, 8, 8), (0, 4, 4), (-5, 4, 4)],
)
def test_a_batch_that_cannot_be_split_names_the_nearest_that_can(num_envs, devices, nearest):
    mesh = AbstractMesh((devices,), ("data",))
    complaint = rf"num_envs={num_envs} .* {devices} device.* the nearest number that can is {nearest}$"
    with pytest.raises(ValueError, match=complaint):
        require_even_split(num_envs, mesh)
    assert require_even_split(nearest, mesh) == nearest // devices


def test_a_mesh_needs_a_data_axis():
    with pytest.raises(ValueError, match=r"must have an axis 'data', got the axes \('rows',\)"):
        require_even_split(8, AbstractMesh((2,), ("rows",)))
