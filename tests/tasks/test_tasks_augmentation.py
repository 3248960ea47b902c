"""Augmentations change all grids of a task alike, and can be undone."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.config import AugmentationConfig
from jaxarc.datasets import TaskSet
from jaxarc.tasks import RawTask, create_task
from jaxarc.tasks.augmentation import (
    augment_grid,
    augment_task,
    draw_augmentation,
    restore_grid,
    restore_task,
    turn_grid,
)

SIDE = 6
EVERYTHING = AugmentationConfig(symmetries="all", recolor="all", shuffle_demos=True)
SLOTS = 7


@functools.partial(jax.jit, static_argnums=(2, 3))
def draw_many(keys, num_train, config, slots=SLOTS):
    return jax.vmap(lambda key: draw_augmentation(key, num_train, slots, config))(keys)


turn = jax.jit(turn_grid)


def random_grid(rng, low=1, high=SIDE):
    return rng.integers(0, 10, rng.integers(low, high + 1, 2)).astype(np.int8)


def padded(grid, side=SIDE):
    canvas = np.full((side, side), -1, np.int8)
    canvas[: grid.shape[0], : grid.shape[1]] = grid
    return canvas


def numpy_turn(grid, symmetry):
    grid = grid.T if symmetry & 4 else grid
    grid = grid[::-1] if symmetry & 1 else grid
    return grid[:, ::-1] if symmetry & 2 else grid


@pytest.mark.parametrize("symmetry", range(8))
def test_symmetries_turn_the_active_area_as_numpy_does(symmetry):
    rng = np.random.default_rng(symmetry)
    for _ in range(20):
        grid = random_grid(rng)
        turned = np.asarray(turn(padded(grid), jnp.int8(symmetry)))
        np.testing.assert_array_equal(turned, padded(numpy_turn(grid, symmetry)))


def test_grid_comes_back_when_an_augmentation_is_undone():
    rng = np.random.default_rng(0)
    grids = np.stack([padded(random_grid(rng)) for _ in range(200)])
    augmentations = draw_many(jax.random.split(jax.random.key(0), 200), 3, EVERYTHING)
    changed = jax.jit(jax.vmap(augment_grid))(grids, augmentations)
    assert (np.asarray(changed) != grids).any(axis=(1, 2)).mean() > 0.95
    np.testing.assert_array_equal(jax.jit(jax.vmap(restore_grid))(changed, augmentations), grids)


def test_two_grids_are_equal_exactly_when_their_augmented_ones_are():
    rng = np.random.default_rng(1)
    one = np.stack([padded(random_grid(rng, 2, 2) % 2) for _ in range(300)])
    other = np.stack([padded(random_grid(rng, 2, 2) % 2) for _ in range(300)])
    augmentations = draw_many(jax.random.split(jax.random.key(1), 300), 3, EVERYTHING)
    change = jax.jit(jax.vmap(augment_grid))
    equal = (one == other).all(axis=(1, 2))
    assert 0 < equal.sum() < 300
    after = np.asarray(change(one, augmentations) == change(other, augmentations)).all(axis=(1, 2))
    np.testing.assert_array_equal(after, equal)


def mixed_task():
    rng = np.random.default_rng(2)
    pairs = [(random_grid(rng), random_grid(rng)) for _ in range(6)]
    return create_task(pairs[:4], pairs[4:], (SIDE, SIDE))


def test_task_is_changed_as_a_whole():
    task = mixed_task()
    augmentation = jax.tree.map(lambda x: x[0], draw_many(jax.random.split(jax.random.key(3), 1), 4, EVERYTHING, 4))
    changed = jax.jit(augment_task)(task, augmentation)
    shown = np.asarray(augmentation.order)
    for name in ("input_grids_examples", "output_grids_examples"):
        for place in range(4):
            expected = augment_grid(getattr(task, name)[shown[place]], augmentation)
            np.testing.assert_array_equal(getattr(changed, name)[place], expected)
    for name in ("test_input_grids", "true_test_output_grids"):
        for place in range(2):
            expected = augment_grid(getattr(task, name)[place], augmentation)
            np.testing.assert_array_equal(getattr(changed, name)[place], expected)
    np.testing.assert_array_equal(changed.output_masks_examples, np.asarray(changed.output_grids_examples) >= 0)
    chex.assert_trees_all_equal(restore_task(changed, augmentation), task, strict=True)


KEYS = jax.random.split(jax.random.key(4), 8)


def test_draws_reach_every_symmetry_and_color_alike():
    count = 8000
    drawn = draw_many(jax.random.split(jax.random.key(5), count), 3, EVERYTHING)
    symmetries = np.bincount(np.asarray(drawn.symmetry), minlength=8)
    assert np.abs(symmetries / count - 1 / 8).max() < 5 * np.sqrt(1 / 8 / count)
    colors = np.asarray(drawn.colors)
    assert (np.sort(colors, axis=1) == np.arange(10)).all()
    shares = np.stack([np.bincount(colors[:, color], minlength=10) for color in range(10)]) / count
    assert np.abs(shares - 0.1).max() < 5 * np.sqrt(0.1 / count)


@pytest.mark.parametrize("count", [1, 2, 3, 31])
def test_order_moves_only_demonstrations_that_exist(count):
    order = np.asarray(draw_many(jax.random.split(jax.random.key(6), 600), count, EVERYTHING, 31).order)
    np.testing.assert_array_equal(np.sort(order[:, :count], axis=1), np.broadcast_to(np.arange(count), (600, count)))
    np.testing.assert_array_equal(order[:, count:], np.broadcast_to(np.arange(count, 31), (600, 31 - count)))
    assert len({tuple(row) for row in order.tolist()}) == {1: 1, 2: 2, 3: 6, 31: 600}[count]


def test_black_stays_black_when_asked():
    colors = np.asarray(draw_many(jax.random.clone(KEYS), 3, AugmentationConfig(recolor="keep_black")).colors)
    assert (colors[:, 0] == 0).all()
    assert (np.sort(colors, axis=1) == np.arange(10)).all()
    assert len({tuple(row) for row in colors.tolist()}) == len(KEYS)


def test_what_the_config_leaves_alone_is_none():
    assert jax.tree.leaves(draw_augmentation(jax.random.clone(KEYS)[0], 3, SLOTS, AugmentationConfig())) == []
    drawn = draw_augmentation(jax.random.clone(KEYS)[0], 3, SLOTS, AugmentationConfig(symmetries="flips"))
    assert drawn.colors is None
    assert drawn.order is None
    many = draw_many(jax.random.split(jax.random.clone(KEYS)[1], 100), 3, AugmentationConfig(symmetries="flips"))
    assert set(np.asarray(many.symmetry).tolist()) == {0, 1, 2, 3}


def test_buffer_holds_every_pair_under_every_symmetry():
    rng = np.random.default_rng(7)
    pairs = [(random_grid(rng), random_grid(rng)) for _ in range(5)]
    tasks = TaskSet("two", (RawTask("a", pairs[:1], pairs[1:2]), RawTask("b", pairs[2:4], pairs[4:])))
    buffer = tasks.buffer((SIDE, SIDE)).with_symmetries(8)
    assert buffer.num_pairs == 5
    assert buffer.inputs.shape == (40, SIDE * SIDE)
    for symmetry in range(8):
        for place, pair in enumerate(pairs):
            for table, grid in zip((buffer.inputs, buffer.outputs), pair, strict=True):
                np.testing.assert_array_equal(
                    table[symmetry * 5 + place].reshape(SIDE, SIDE), padded(numpy_turn(grid, symmetry))
                )
    chex.assert_trees_all_equal(buffer.with_symmetries(1), tasks.buffer((SIDE, SIDE)), strict=True)


def test_buffer_refuses_symmetries_that_it_cannot_hold():
    tasks = TaskSet("one", (RawTask("a", [([[1]], [[2]])], [([[1]], [[2]])]),))
    with pytest.raises(ValueError, match="square canvas, got 2x3"):
        tasks.buffer((2, 3)).with_symmetries(8)
    with pytest.raises(ValueError, match=r"1, 4 or 8 .*3"):
        tasks.buffer((2, 3)).with_symmetries(3)
    assert tasks.buffer((2, 3)).with_symmetries(4).inputs.shape == (8, 6)
