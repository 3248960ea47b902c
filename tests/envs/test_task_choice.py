"""Which task and pair an episode plays, and that changing the choice compiles nothing anew."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxarc
from jaxarc.datasets import TaskSet
from jaxarc.envs import BboxAction, EnvParams
from jaxarc.tasks import RawTask
from jaxarc.testing import create_test_config
from jaxarc.wrappers import AutoReset, EpisodeStatistics

COUNTS = (3, 1, 2, 4, 2)  # demonstrations of each task; color c of task t marks its pair c
TASKS = TaskSet(
    "choice",
    tuple(
        RawTask(f"choice/{t}", [([[t, p]], [[p]]) for p in range(count)], [([[t, 9 - q]], [[q]]) for q in range(2)])
        for t, count in enumerate(COUNTS)
    ),
)
NOTHING = BboxAction(jnp.int32(0), *[jnp.int32(0)] * 4)
ENV = jaxarc.ArcEnvironment()


def make_params(weights=(1.0,) * 5, **fields):
    config = create_test_config(1, "bbox", (1, 2), invalid_action_policy="noop", **fields)
    return EnvParams(TASKS.buffer((1, 2)), jnp.asarray(weights, jnp.float32), config)


@functools.partial(jax.jit, static_argnames="steps")
def _played(key, params, steps):
    env = AutoReset(ENV)

    def step(state, _):
        after = env.step(state, NOTHING, params)[0]
        return after, state.counts[2:4]

    return jax.lax.scan(step, env.reset(key, params)[0], None, length=steps)[1]


def played(params, steps, seed=0):
    """Task and pair of every episode of an environment that is reset after each step."""
    return np.asarray(_played(jax.random.key(seed), params, steps))


def test_in_turn_goes_round_all_tasks_that_have_weight():
    tasks = played(make_params((0.5, 0.0, 2.0, 0.1, 0.0), task_order="in_turn"), 30)[:, 0]
    assert tasks[0] in (0, 2, 3)
    following = {0: 2, 2: 3, 3: 0}
    assert all(after == following[before] for before, after in zip(tasks.tolist(), tasks[1:].tolist(), strict=False))
    assert len({played(make_params(task_order="in_turn"), 1, seed)[0, 0] for seed in range(40)}) == 5


def test_only_one_task_is_played_after_a_thousand_auto_resets():
    params = make_params().only(3)
    tasks, pairs = played(params, 1000).T
    assert set(tasks.tolist()) == {3}
    assert set(pairs.tolist()) == {0, 1, 2, 3}


def test_only_one_pair_is_played_after_a_thousand_auto_resets():
    tasks, pairs = played(make_params().only(0, 2), 1000).T
    assert set(tasks.tolist()) == {0}
    assert set(pairs.tolist()) == {2}


def test_given_task_and_pair_are_played():
    params = make_params()
    places = [(t, p) for t, count in enumerate(COUNTS) for p in range(count)]
    tasks, pairs = (jnp.asarray(column, jnp.int32) for column in zip(*places, strict=True))
    keys = jax.random.split(jax.random.key(2), len(places))
    states, seen = jax.jit(jax.vmap(ENV.reset, (0, None, 0, 0)))(keys, params, tasks, pairs)
    np.testing.assert_array_equal(seen[:, 0], np.asarray(places))
    np.testing.assert_array_equal(states.counts[:, 2:4], np.asarray(places))
    state, seen = EpisodeStatistics(AutoReset(ENV)).reset(keys[0], params, 4, 1)
    np.testing.assert_array_equal(seen[0], [4, 1])
    assert int(state.env_state.task_index) == 4


def test_test_mode_chooses_among_the_tests():
    params = make_params(mode="test")
    _, seen = ENV.reset(jax.random.key(3), params, 2, 1)
    np.testing.assert_array_equal(seen[0], [2, 8])
    with pytest.raises(IndexError, match=r"pair_index.*\[0, 1\].*2.*2"):
        ENV.reset(jax.random.key(3), params, 2, 2)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ((5, None), r"task_index must be in \[0, 4\], got 5"),
        ((-1, 0), r"task_index must be in \[0, 4\], got -1"),
        ((1, 1), r"pair_index must be in \[0, 0\], got 1: in train mode task 1 has"),
        ((None, 4), r"pair_index must be in \[0, 3\], got 4: in train mode no task has"),
    ],
)
def test_place_that_does_not_exist_is_refused(place, message):
    with pytest.raises(IndexError, match=message):
        ENV.reset(jax.random.key(0), make_params(), *place)
    with pytest.raises(IndexError, match=message):
        make_params().only(*place)


def test_inside_jit_the_nearest_place_is_played():
    reset = jax.jit(ENV.reset)
    state, _ = reset(jax.random.key(0), make_params(), jnp.int32(77), jnp.int32(77))
    np.testing.assert_array_equal(state.counts[2:4], [4, 1])
    state, _ = reset(jax.random.key(0), make_params(), jnp.int32(-3), jnp.int32(-3))
    np.testing.assert_array_equal(state.counts[2:4], [0, 0])


def test_another_choice_compiles_nothing_anew():
    chex.clear_trace_counter()
    reset = jax.jit(chex.assert_max_traces(lambda key, params: ENV.reset(key, params)[0].counts, n=1))
    key = jax.random.key(0)
    for task, pair in ((0, 1), (2, 0), (3, 3)):
        np.testing.assert_array_equal(reset(key, make_params().only(task, pair))[2:4], [task, pair])
