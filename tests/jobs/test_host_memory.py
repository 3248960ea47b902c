"""How much memory a process may take: what the machine has free, or less in a control group."""

import pytest

from jaxarc.jobs import host_memory


def write(root, files):
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)


MACHINE = {"proc/meminfo": "MemTotal:  8000 kB\nMemAvailable:   4000 kB\n"}


def group(folder, limit, usage, cache, version=2):
    names = ("memory.max", "memory.current", "inactive_file")
    if version == 1:
        names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
    return {
        f"{folder}/{names[0]}": f"{limit}\n",
        f"{folder}/{names[1]}": f"{usage}\n",
        f"{folder}/memory.stat": f"anon 5\n{names[2]} {cache}\n",
    }


V1, V2 = "sys/fs/cgroup/memory", "sys/fs/cgroup"


@pytest.mark.parametrize(
    ("files", "free"),
    [
        ({}, 4_096_000),
        ({"proc/self/cgroup": "0::/\n"}, 4_096_000),
        ({"proc/self/cgroup": "0::/a/b\n", **group(f"{V2}/a/b", 9000, 3000, 500)}, 6500),
        ({"proc/self/cgroup": "0::/a/b\n", **group(f"{V2}/a/b", "max", 0, 0), **group(f"{V2}/a", 9000, 1000, 0)}, 8000),
        ({"proc/self/cgroup": "0::/x\n", **group(f"{V2}/unified/x", 9000, 1000, 0)}, 8000),
        ({"proc/self/cgroup": "4:memory:/a\n0::/\n", **group(f"{V1}/a", 9000, 3000, 1000, 1)}, 7000),
        ({"proc/self/cgroup": "4:cpu,memory:/host/a\n", **group(V1, 9000, 3000, 0, 1)}, 6000),
        ({"proc/self/cgroup": "4:memory:/a\n", **group(f"{V1}/a", 2**63 - 4096, 3000, 0, 1)}, 4_096_000),
        ({"proc/self/cgroup": "0::/a\n", **group(f"{V2}/a", 10**12, 0, 0)}, 4_096_000),
    ],
)
def test_the_lowest_limit_of_machine_and_control_groups_counts(tmp_path, files, free):
    write(tmp_path, {**MACHINE, **files})
    assert host_memory(tmp_path) == free
