"""A batch that does not fit is refused before anything starts, and the batch that is proposed does fit."""

import pickle
from types import SimpleNamespace

import jax
import pytest
from small_world import KEY, filling, make_world

from jaxarc.parallel import NotEnoughMemoryError, available_memory, compile_rollout, require_memory, rollout
from jaxarc.parallel.memory import host_memory

HUGE = 10**12
B, S = 8, 12


def bytes_of(tree):
    return sum(leaf.nbytes for leaf in jax.tree.leaves(tree))


def test_a_huge_batch_fails_before_anything_is_compiled():
    env, params = make_world()

    def never_traced(key, observation):
        raise AssertionError

    with pytest.raises(NotEnoughMemoryError) as caught:
        rollout(env, params, never_traced, KEY, HUGE, 1)
    error = caught.value
    assert error.num_envs == HUGE
    assert error.needed_bytes == HUGE * bytes_of(env.reset(KEY, params)[0])
    assert 0 < error.fitting_envs < HUGE
    assert error.available_bytes < error.needed_bytes


def test_what_the_compiler_needs_counts_too():
    env, params = make_world()
    states = B * bytes_of(env.reset(KEY, params)[0])
    with pytest.raises(NotEnoughMemoryError) as caught:
        rollout(env, params, filling(), KEY, B, S, available_bytes=states)
    needed = caught.value.needed_bytes
    assert needed >= states  # those after take the place of those before
    compiled = compile_rollout(env, params, filling(), B, S, available_bytes=needed)
    assert abs(needed - (compiled.bytes_per_device - bytes_of(params))) < 100  # the policy's own arrays
    with pytest.raises(NotEnoughMemoryError):
        compile_rollout(env, params, filling(), B, S, available_bytes=needed - 1)


def test_states_that_exist_are_copied():
    env, params = make_world()
    states = rollout(env, params, filling(), KEY, B, S).states
    with pytest.raises(NotEnoughMemoryError) as caught:
        compile_rollout(env, params, filling(), B, S, available_bytes=bytes_of(states))
    needed = caught.value.needed_bytes
    rollout(env, params, filling(), KEY, B, S, states=states, available_bytes=needed)
    with pytest.raises(NotEnoughMemoryError):
        rollout(env, params, filling(), KEY, B, S, states=states, available_bytes=needed - 1)


@pytest.mark.parametrize("num_envs", [HUGE, 600], ids=["by the lower bound", "by the compiler"])
def test_the_proposed_batch_fits(num_envs):
    env, params = make_world(max_grid_height=30, max_grid_width=30)
    free = 1_000_000
    with pytest.raises(NotEnoughMemoryError) as caught:
        compile_rollout(env, params, filling(), num_envs, 1, available_bytes=free)
    assert (caught.value.needed_bytes > 10 * free) == (num_envs == HUGE)
    compile_rollout(env, params, filling(), caught.value.fitting_envs, 1, available_bytes=free)


def test_the_message_names_every_number():
    with pytest.raises(NotEnoughMemoryError) as caught:
        require_memory(1000, 2_500_000_000, 500_000, num_devices=8)
    error = caught.value
    assert isinstance(error, MemoryError)
    assert [word for word in ("num_envs=1000", "2,500,000,000", "500,000") if word not in str(error)] == []
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.needed_bytes) == (str(error), error.needed_bytes)
    with pytest.raises(NotEnoughMemoryError, match=r"num_envs=88 would fit$"):
        require_memory(1000, 1000, 100, num_devices=8)
    with pytest.raises(NotEnoughMemoryError, match=r"100.*num_envs=30"):
        require_memory(1000, 1000, 100, growth=3.0)


def mesh_of(*devices):
    return SimpleNamespace(local_devices=devices)


def device(platform, stats):
    return SimpleNamespace(platform=platform, memory_stats=lambda: stats)


def test_of_accelerators_the_fullest_counts():
    free = [device("gpu", {"bytes_limit": 1000, "bytes_in_use": used}) for used in (100, 400)]
    assert available_memory(mesh_of(*free)) == 2 * 600


@pytest.mark.parametrize("stats", [None, {}, {"bytes_limit": 1000}])
def test_accelerators_without_statistics_are_not_judged(stats):
    assert available_memory(mesh_of(device("gpu", stats))) is None


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
