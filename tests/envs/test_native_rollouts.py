"""A rollout by the C++ library, actions, steps and resets, has the bits of one in XLA; a step stays on its thread."""

import resource

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import EXECUTORS
from reference.cases import random_pairs

import jaxarc
from jaxarc.datasets import TaskSet
from jaxarc.envs.action_space import fold_in_each
from jaxarc.tasks.raw_task import RawTask
from jaxarc.wrappers import AutoReset

SHAPE = (5, 7)
BATCH, STEPS = 24, 30

pytestmark = pytest.mark.skipif("native" not in EXECUTORS, reason="no C++ compiler is installed")

RULES = {
    "boxes, a history, weights": {"selection_format": "bbox", "history_enabled": True, "max_history_length": 4},
    "points, tests in turn": {
        "selection_format": "point",
        "mode": "test",
        "task_order": "in_turn",
        "allow_test_switching": True,
        "max_submissions": 3,
        "score_on_submit": True,
    },
    "masks, a history, trials": {"selection_format": "mask", "history_enabled": True, "mode": "trials"},
    "boxes, an augmented task": {"selection_format": "bbox", "recolor": "all", "shuffle_demos": True},
}


def made(rules):
    rng = np.random.default_rng(0)
    crop = lambda grid: grid[: (grid[:, 0] >= 0).sum(), : (grid[0] >= 0).sum()]
    pairs = [[(crop(start), crop(target)) for start, target in random_pairs(rng, 4, *SHAPE)] for _ in range(3)]
    tasks = tuple(RawTask(f"native/{i}", tuple(p[: i + 1]), tuple(p[i + 1 :])) for i, p in enumerate(pairs))
    size = {"max_grid_height": SHAPE[0], "max_grid_width": SHAPE[1]}
    options = {"max_episode_steps": 9, "invalid_action_policy": "noop", **size, **rules, "executor": "native"}
    env, params = jaxarc.make(TaskSet("native", tasks), **options)
    return AutoReset(env), params.replace(weights=jnp.array([0.5, 0.0, 1.0], jnp.float32))


def play(key, env, params):
    """All that is returned in so many steps, the states after them, and `done`; every fourth action is off by one."""
    key_start, key_play = jax.random.split(key)
    states, _ = jax.vmap(env.reset, (0, None))(jax.random.split(key_start, BATCH), params)
    sample = env.action_space(params).sample

    def step(states, key):
        actions = jax.vmap(sample)(jax.random.split(key, BATCH))
        off = jnp.where(jnp.arange(BATCH) % 4 == 0, 1, 0).astype(jnp.int32)
        actions = jax.tree.map(lambda x: x + off if x.ndim == 1 else x, actions)
        states, *seen = jax.vmap(env.step, (0, 0, None))(states, actions, params)
        return states, (actions, seen)

    states, seen = jax.lax.scan(step, states, jax.random.split(key_play, STEPS))
    return [*jax.tree.leaves((states, seen)), seen[1][2]]


@pytest.mark.parametrize("rules", RULES.values(), ids=RULES)
def test_bits_are_those_of_xla(rules):
    """An exported program holds no call of the library: where it will run is not known, so XLA does the same."""
    env, params = made(rules)
    leaves, tree = jax.tree.flatten(params)
    program = jax.jit(lambda key, *leaves: play(key, env, jax.tree.unflatten(tree, leaves)))
    key = jax.random.key(3)
    *played, dones = program(key, *leaves)
    exported = jax.export.export(program)(key, *leaves)
    assert "jaxarc-" not in exported.mlir_module()
    assert "jaxarc-" in program.lower(key, *leaves).as_text()
    for found, wanted in zip(played, exported.call(key, *leaves), strict=False):
        np.testing.assert_array_equal(found, wanted)
    assert dones.any()


@pytest.mark.parametrize("rules", ["boxes, a history, weights", "masks, a history, trials"])
def test_threads_step_as_one_does(rules):
    """Batches of 4,096 and more are stepped in parts by several threads, where the process may use several cores."""
    env, params = made(RULES[rules])
    sample = env.action_space(params).sample

    def one(key):
        state, _ = env.reset(key, params)

        def step(state, number):
            state, *seen = env.step(state, sample(jax.random.fold_in(key, number)), params)
            return state, seen

        return jax.lax.scan(step, state, jnp.arange(12, dtype=jnp.int32))

    count = 4 * 1024 + 37  # the last part is a small one
    keys = jax.random.split(jax.random.key(5), count)
    run = jax.jit(jax.vmap(one))
    together = run(keys)
    apart = jax.tree.map(lambda *parts: np.concatenate(parts), *(run(part) for part in (keys[:2048], keys[2048:])))
    for found, wanted in zip(jax.tree.leaves(together), jax.tree.leaves(apart), strict=True):
        np.testing.assert_array_equal(found, wanted)
    assert together[1][2].any()


def test_a_step_from_python_waits_for_no_other_thread():
    """XLA's runtime hands kernels to one where many are ready at once, unless their arrays have at most 512 bytes."""
    env, params = made(RULES["boxes, a history, weights"] | {"max_history_length": 100, "max_episode_steps": 200})
    step = lambda state: env.env.step(state, jaxarc.BboxAction(1, 0, 0, 1, 1), params)
    state, _ = env.reset(jax.random.key(0), params)
    assert state.action_records is not None
    assert state.action_records.size > 512
    jax.block_until_ready(step(state))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
    for _ in range(100):
        assert not step(state)[3]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before < 50


def first_of(rules, count):
    """The shapes of so many states, and their actions."""
    env, params = made(rules)
    keys = jax.eval_shape(lambda: jax.random.split(jax.random.key(0), count))
    states, _ = jax.eval_shape(jax.vmap(env.reset, (0, None)), keys, params)
    return env, params, states, jax.eval_shape(jax.vmap(env.action_space(params).sample), keys)


READERS = {
    "nothing": lambda observation, info: None,
    "observations": lambda observation, info: observation,
    "final observations": lambda observation, info: info["final_observation"],
}


@pytest.mark.parametrize(("read", "num_written"), list(zip(READERS.values(), (0, 1, 2), strict=True)), ids=READERS)
def test_grids_that_nobody_reads_are_not_written(read, num_written):
    env, params, states, actions = first_of(RULES["boxes, a history, weights"], BATCH)

    def steps(states, actions, params):
        def step(states, _):
            states, observation, _, _, info = jax.vmap(env.step, (0, 0, None))(states, actions, params)
            return states, read(observation, info)

        return jax.lax.scan(step, states, length=2)

    text = jax.jit(steps).lower(states, actions, params).as_text()
    (call,) = [line for line in text.splitlines() if "-step_and_reset" in line]
    grids = call.rpartition("->")[2].count(f"tensor<{BATCH}x{SHAPE[0] * SHAPE[1]}xi8>")
    assert grids == 3 + num_written  # grid, clipboard and target belong to the states


def test_large_batches_show_the_grids_of_their_states():
    """From 16 MiB of grids on they are written around the caches."""
    count = 2**24 // (SHAPE[0] * SHAPE[1]) + 1
    env, params, states, actions = first_of(RULES["boxes, a history, weights"], count)
    rng = np.random.default_rng(0)
    states, actions = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), (states, actions))
    states.canvas.grid[:] = rng.integers(0, 10, states.canvas.grid.shape)
    after, observation, *_ = jax.jit(jax.vmap(env.step, (0, 0, None)))(states, actions, params)
    np.testing.assert_array_equal(observation.reshape(count, -1), after.canvas.grid)


@pytest.mark.parametrize("count", [1, 16, 35])
def test_keys_are_those_of_fold_in_and_split(count):
    key = jax.random.key(count)
    index = jnp.arange(count, dtype=jnp.int32)
    folded = jax.random.key_data(jax.jit(fold_in_each, static_argnums=2)(key, index, "native"))
    np.testing.assert_array_equal(folded, jax.random.key_data(jax.random.split(key, count)))
    far = jax.random.key_data(fold_in_each(key, index * 7919, "native"))
    expected = jax.vmap(jax.random.fold_in, (None, 0))(key, index * 7919)
    np.testing.assert_array_equal(far, jax.random.key_data(expected))


@pytest.mark.parametrize("field", ["weights", "pair_index", "tasks"])
def test_members_with_params_of_their_own_get_the_bits_of_xla(field):
    """A population of curricula: ``vmap`` over params, or some of them, around a batch that resets itself."""
    env, params = made(RULES["boxes, a history, weights"])
    params = params.replace(allowed_operations=(0, 1, 34)).only(pair_index=0)
    own = lambda leaf: jnp.stack([leaf, jnp.roll(leaf, 1, axis=0) if leaf.ndim else leaf])
    members = eqx.tree_at(lambda params: getattr(params, field), params, replace_fn=lambda of: jax.tree.map(own, of))
    flags = [
        0 if one.ndim < every.ndim else None
        for one, every in zip(*map(jax.tree.leaves, (params, members)), strict=True)
    ]
    sample = jax.vmap(jax.vmap(env.action_space(params).sample))

    @jax.jit
    def play_members(members):
        axes = jax.tree.unflatten(jax.tree.structure(members), flags)
        reset = jax.vmap(jax.vmap(env.reset, (0, None)), (0, axes))
        take_steps = jax.vmap(jax.vmap(env.step, (0, 0, None)), (0, 0, axes))
        states, _ = reset(jax.random.split(jax.random.key(0), (2, BATCH)), members)

        def step(states, key):
            actions = sample(jax.random.split(key, (2, BATCH)))
            states, *seen = take_steps(states, actions, members)
            return states, seen

        return jax.lax.scan(step, states, jax.random.split(jax.random.key(1), 12))

    in_xla = jax.tree.unflatten(jax.tree.structure(params.replace(executor="xla")), jax.tree.leaves(members))
    jax.tree.map(np.testing.assert_array_equal, play_members(members), play_members(in_xla))
