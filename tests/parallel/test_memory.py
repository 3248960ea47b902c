"""A batch that does not fit is refused before anything starts, and the batch that is proposed does fit."""

import pickle
from types import SimpleNamespace

import jax
import pytest
from small_world import KEY, filling, make_world

from jaxarc.parallel import NotEnoughMemoryError, available_memory, compile_rollout, require_memory, rollout

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
