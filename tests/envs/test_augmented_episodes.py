"""Episodes on augmented tasks: the same bits however the task is held, and nothing of the plain task shows through."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.cases import random_boxes, random_operations

import jaxarc
from jaxarc.constants import COPY_INPUT, NEXT_DEMO_PAIR, RESET_PAIR, SUBMIT
from jaxarc.datasets import TaskSet
from jaxarc.envs import BboxAction, EnvParams, arc_reset, arc_step
from jaxarc.io.serialization import load_state_efficiently, save_state_efficiently
from jaxarc.tasks import RawTask, create_task, register_task
from jaxarc.testing import create_test_config
from jaxarc.wrappers import AutoReset

SIDE = 5
CANVAS = (SIDE, SIDE)
STEPS = 40
ALL = {"symmetries": "all", "recolor": "all", "shuffle_demos": True}


def make_pairs(seed, count):
    rng = np.random.default_rng(seed)
    grid = lambda: rng.integers(0, 10, rng.integers(1, SIDE + 1, 2)).astype(np.int8)
    return [(grid(), grid()) for _ in range(count)]


TRAIN, TEST = make_pairs(0, 4), make_pairs(1, 2)
TASKS = TaskSet("augmented", (RawTask("augmented/0", TRAIN, TEST), RawTask("augmented/1", make_pairs(2, 2), TEST)))


def make_config(mode="train", steps=STEPS, **fields):
    switching = {"allow_demo_switching": True} if mode == "train" else {"allow_test_switching": True}
    defaults = {"invalid_action_policy": "noop", "max_submissions": 50, "mode": mode, **switching, **ALL}
    return create_test_config(steps, "bbox", CANVAS, **{**defaults, **fields})


def make_params(config, tasks=TASKS):
    buffer = tasks.buffer(CANVAS).with_symmetries(config.augmentation.num_symmetries)
    return EnvParams(buffer, jnp.ones(len(tasks)), config)


@functools.cache
def actions(seed=0):
    rng = np.random.default_rng(seed)
    operation = random_operations(rng, STEPS).copy()
    operation[::4] = rng.choice([COPY_INPUT, RESET_PAIR, NEXT_DEMO_PAIR, 36, 37, 38, 40, 41, SUBMIT], STEPS // 4)
    return BboxAction(operation, *random_boxes(rng, STEPS, *CANVAS).T)


@functools.partial(jax.jit, static_argnums=2)
def play_task(state, actions, config):
    def step(state, action):
        state, *rest = arc_step(state, action, config)
        return state, (state.canvas, state.counts, *rest)

    return jax.lax.scan(step, state, actions)[1]


@jax.jit
def play_buffer(state, actions, params):
    env = jaxarc.ArcEnvironment()

    def step(state, action):
        state, *rest = env.step(state, action, params)
        return state, (state.canvas, state.counts, *rest)

    return jax.lax.scan(step, state, actions)[1]


@pytest.mark.parametrize(("executor", "mode"), [("auto", "test"), ("xla", "train")])
def test_task_in_a_buffer_and_task_in_the_state_are_augmented_alike(mode, executor):
    config = make_config(mode, executor=executor)
    params = make_params(config).only(0)
    task = create_task(TRAIN, TEST, CANVAS, register_task("augmented/0"))
    for seed in range(4):
        key = jax.random.key(seed)
        of_task, seen = arc_reset(key, config, task)
        of_buffer, seen_too = jaxarc.ArcEnvironment().reset(key, params)
        chex.assert_trees_all_equal(seen, seen_too, strict=True)
        chex.assert_trees_all_equal(of_task.augmentation, of_buffer.augmentation, strict=True)
        registered = int(task.task_index)
        canvas, counts, *held, info = play_task(of_task, actions(seed), config)
        info["task_index"] -= registered  # the guide API counts tasks in the registry, the buffer in itself
        held = (canvas, counts.at[:, 2].add(-registered), *held, info)
        chex.assert_trees_all_equal(held, play_buffer(of_buffer, actions(seed), params), strict=True)


@pytest.mark.parametrize("symmetries", ["none", "all"])
def test_similarity_does_not_depend_on_the_augmentation(symmetries):
    """With grids of other sizes it may: their top-left corners meet in another cell of each."""
    rng = np.random.default_rng(3)
    shapes = rng.integers(1, SIDE + 1, (6, 2))
    pairs = [tuple(rng.integers(0, 2, shape).astype(np.int8) for _ in range(2)) for shape in shapes]
    tasks = TaskSet("same sizes", (RawTask("same", pairs, pairs),)) if symmetries == "all" else TASKS
    keys, env = jax.random.split(jax.random.key(8), 40), jaxarc.ArcEnvironment()
    configs = (
        make_config(shuffle_demos=False, symmetries=s, recolor=r) for s, r in (("none",) * 2, (symmetries, "all"))
    )
    one, other = (jax.vmap(env.reset, (0, None))(keys, make_params(config, tasks))[0] for config in configs)
    np.testing.assert_array_equal(one.pair_index, other.pair_index)
    np.testing.assert_array_equal(one.similarity_score, other.similarity_score)
    assert 0 < np.asarray(one.similarity_score).max()
    assert (np.asarray(one.working_grid) != np.asarray(other.working_grid)).any(axis=(1, 2)).mean() > 0.8


def test_every_auto_reset_draws_another_augmentation():
    config = make_config(steps=1)
    env, params = AutoReset(jaxarc.ArcEnvironment()), make_params(config).only(0, 0)
    nothing = BboxAction(jnp.int32(0), *[jnp.int32(0)] * 4)

    def step(state, _):
        state = env.step(state, nothing, params)[0]
        return state, (state.augmentation, state.canvas.grid, state.pair_index, state.task_index)

    state, _ = env.reset(jax.random.key(9), params)
    augmentations, grids, pair, task = jax.jit(lambda s: jax.lax.scan(step, s, None, length=200)[1])(state)
    assert set(np.asarray(task).tolist()) == {0}
    assert set(np.asarray(pair).tolist()) == {0}
    assert set(np.asarray(augmentations.symmetry).tolist()) == set(range(8))
    assert len({row.tobytes() for row in np.asarray(augmentations.colors)}) == 200
    assert len({row.tobytes() for row in np.asarray(grids)}) > 190


def test_without_augmentation_resets_draw_what_they_drew():
    """The words of an augmentation come after the others, so switching it on moves nothing else."""
    config = make_config(symmetries="none", recolor="none", shuffle_demos=False)
    keys, env = jax.random.split(jax.random.key(10), 20), jaxarc.ArcEnvironment()
    plain, _ = jax.vmap(env.reset, (0, None))(keys, make_params(config))
    changed, _ = jax.vmap(env.reset, (0, None))(keys, make_params(make_config()))
    assert plain.augmentation is None
    for name in ("task_index", "pair_index", "key"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(changed, name))


def test_augmented_state_comes_back_from_its_file(tmp_path):
    config = make_config()
    task = TASKS.get_task_by_id("augmented/0")
    state, _ = arc_reset(jax.random.key(11), config, task)
    state, *_ = arc_step(state, jax.tree.map(lambda x: x[0], actions()), config)
    path = save_state_efficiently(state, tmp_path / "state")
    dummy, _ = arc_reset(jax.random.key(12), config, task)
    loaded = load_state_efficiently(path, TASKS, dummy)
    chex.assert_trees_all_equal(loaded, state, strict=True)
    restored, padded = loaded.original_task, TASKS.on_canvas(CANVAS).get_task_by_id("augmented/0")
    chex.assert_trees_all_equal(restored, padded, strict=True)


def test_params_refuse_a_buffer_without_the_symmetries():
    config = make_config()
    with pytest.raises(ValueError, match=r"needs 8 symmetries .* holds 1; .*with_symmetries\(8\)"):
        EnvParams(TASKS.buffer(CANVAS), jnp.ones(2), config)
    flips = dataclasses.replace(make_params(config), config=make_config(symmetries="flips"))  # more than needed is fine
    state, _ = jaxarc.ArcEnvironment().reset(jax.random.key(0), flips)
    assert int(state.augmentation.symmetry) < 4
