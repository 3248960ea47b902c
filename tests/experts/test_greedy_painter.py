"""The greedy painter against a search through every box, and in the environment."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_tasks import tasks_of

import jaxarc
from jaxarc import constants as c
from jaxarc.experts import GreedyPainter, greedy_painter
from jaxarc.parallel import rollout
from jaxarc.wrappers import AutoReset, EpisodeStatistics

SHAPE = (5, 7)
NUM_TASKS = 12
RULES = {
    "selection_format": "bbox",
    "reveal_target": True,
    "max_grid_height": SHAPE[0],
    "max_grid_width": SHAPE[1],
    "max_episode_steps": SHAPE[0] * SHAPE[1] + 2,
    "allowed_operations": (*range(10), c.RESIZE, c.SUBMIT),
    "invalid_action_policy": "raise",
    "history_enabled": False,
}
PAINTER = GreedyPainter()
act = jax.jit(PAINTER.act)


def padded(grid):
    return np.pad(grid, [(0, size - has) for size, has in zip(SHAPE, grid.shape, strict=True)], constant_values=-1)


def shown(working, target):
    grids = [np.stack([padded(np.asarray(grid, np.int8)) for grid in stack]) for stack in (working, target)]
    return {"working_grid": jnp.asarray(grids[0]), "target_grid": jnp.asarray(grids[1])}


def actions(observation):
    """Operation and corners of each environment, as integers."""
    action = act(observation)
    return np.stack([action.operation, action.r1, action.c1, action.r2, action.c2], axis=1).tolist()


def random_grids(count, seed, colors=4):
    draw = np.random.default_rng(seed)
    sizes = [(draw.integers(1, SHAPE[0] + 1), draw.integers(1, SHAPE[1] + 1)) for _ in range(count)]
    pairs = [[draw.integers(0, colors, size) for size in sizes] for _ in range(2)]
    return pairs[0], pairs[1]


def every_box(shape):
    rows, columns = (list(itertools.combinations(range(size + 1), 2)) for size in shape)
    return [(r1, c1, r2 - 1, c2 - 1) for (r1, r2), (c1, c2) in itertools.product(rows, columns)]


def merit(working, target, color, box):
    """Cells won and, to choose among equals, cells painted over that were right."""
    r1, c1, r2, c2 = box
    inside = (slice(r1, r2 + 1), slice(c1, c2 + 1))
    was_right, is_right = working[inside] == target[inside], target[inside] == color
    return is_right.sum() - was_right.sum(), (was_right & ~is_right).sum()


def test_the_box_is_the_best_of_all():
    working, target = random_grids(40, seed=0)
    for before, wanted, (color, *box) in zip(working, target, actions(shown(working, target)), strict=True):
        if (before != wanted).any():
            best = max(
                merit(before, wanted, color, box) for box in every_box(wanted.shape) for color in np.unique(wanted)
            )
            assert merit(before, wanted, color, box) == best
            assert box[2] < wanted.shape[0]
            assert box[3] < wanted.shape[1]


def test_a_large_area_comes_first_and_the_detail_in_it_later():
    target = np.full(SHAPE, 3)
    target[2, 3] = 5
    working = np.zeros(SHAPE)
    working[2, 3] = 5
    observation = shown([working, np.where(target == 5, 3, target)], [target, target])
    assert actions(observation) == [[3, 0, 0, 4, 6], [5, 2, 3, 2, 3]]


def test_a_wrong_size_is_mended_first_and_a_right_grid_submitted():
    wide, tall = np.ones((1, 3)), np.ones((3, 2))
    observation = shown([wide, tall, tall], [tall, wide, tall])
    assert actions(observation) == [[c.RESIZE, 0, 0, 2, 1], [c.RESIZE, 0, 0, 0, 2], [c.SUBMIT, 0, 0, 0, 0]]


def test_accelerators_choose_as_cpus_do(monkeypatch):
    observation = shown(*random_grids(NUM_TASKS, seed=2))
    monkeypatch.setattr(greedy_painter, "compiles_for_cpu", lambda: False)
    dense = jax.jit(lambda x: PAINTER.act(x))(observation)
    for left, right in zip(jax.tree.leaves(dense), jax.tree.leaves(act(observation)), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.fixture(scope="module")
def world():
    """Inputs and answers of random sizes, and of random colors: hardly a box larger than a cell."""
    inputs, answers = random_grids(NUM_TASKS, seed=3, colors=10)
    shifted = answers[1:] + answers[:1]
    return jaxarc.make(tasks_of(*zip(inputs, shifted, strict=True)), **RULES)


def test_every_fill_makes_a_cell_right_until_the_pair_is_solved(world):
    env, params = world
    states, observation = jax.vmap(env.reset, (0, None, 0))(
        jax.random.split(jax.random.key(0), NUM_TASKS), params, jnp.arange(NUM_TASKS)
    )
    step = jax.jit(lambda states, action: jax.vmap(env.step, (0, 0, None))(states, action, params))
    right = lambda shown: np.asarray((shown["working_grid"] == shown["target_grid"]).sum(axis=(1, 2)))
    while not states.done.all():
        action = act(observation)
        fills, before = np.asarray(action.operation) < c.NUM_COLORS, right(observation)
        states, observation, *_ = step(states, action)
        assert (right(observation) > before)[fills].all()
    assert states.is_solved.all()


def test_a_rollout_takes_it_as_a_policy(world):
    env, params = world
    played = rollout(EpisodeStatistics(AutoReset(env)), params, PAINTER, jax.random.key(0), num_envs=4, num_steps=60)
    assert played.totals.episodes == played.totals.solved > 4
