"""The cores that a process may use: its affinity, and the quotas of control groups of both versions."""

import pytest

from jaxarc.jobs import cores, host_cores


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A root with the files given; eight cores are allowed."""
    monkeypatch.setattr(cores, "_allowed", lambda: 8)

    def make(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return make


@pytest.mark.parametrize(
    ("files", "count"),
    [
        ({}, 8),
        ({"proc/self/cgroup": "0::/pod/box\n", "sys/fs/cgroup/pod/box/cpu.max": "250000 100000\n"}, 3),
        ({"proc/self/cgroup": "0::/pod/box\n", "sys/fs/cgroup/pod/cpu.max": "200000 100000\n"}, 2),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "10000 100000\n"}, 1),
        ({"proc/self/cgroup": "0::/pod\n", "sys/fs/cgroup/pod/cpu.max": "max 100000\n"}, 8),
        ({"proc/self/cgroup": "0::/pod\n", "sys/fs/cgroup/pod/cpu.max": "nonsense"}, 8),
        (
            {
                "proc/self/cgroup": "5:memory:/a\n4:cpu,cpuacct:/a\n",
                "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "400000\n",
                "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000\n",
            },
            4,
        ),
        (
            {  # seen from inside a container
                "proc/self/cgroup": "4:cpu,cpuacct:/docker/3f\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "150000\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            2,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/a\n",
                "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us": "100000\n",
            },
            8,
        ),
        ({"proc/self/cgroup": "0::/pod\n", "sys/fs/cgroup/pod/cpu.max": "6400000 100000"}, 8),
    ],
)
def test_a_quota_counts_and_a_share_of_a_core_is_one(machine, files, count):
    assert host_cores(machine(**files)) == count


@pytest.mark.parametrize(("given", "count"), [("2", 2), ("64", 8)])
def test_a_job_of_slurm_has_the_cores_that_it_was_given(machine, monkeypatch, given, count):
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", given)
    assert host_cores(machine()) == count


def test_this_machine_has_a_core():
    assert host_cores() >= 1
