"""What an agent is shown: every option alone and all together, in every form, from either API."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxarc
from jaxarc.constants import SUBMIT
from jaxarc.datasets import TaskSet
from jaxarc.envs import EnvParams
from jaxarc.envs.action_masks import legal_operation_mask
from jaxarc.tasks import RawTask
from jaxarc.tasks.procedural import procedural_tasks
from jaxarc.testing import create_test_config
from jaxarc.wrappers import AutoReset, EpisodeStatistics

CANVAS = (3, 4)
ENV = jaxarc.ArcEnvironment()
TRAIN = [([[1, 2], [3, 4]], [[p, p, p]]) for p in range(3)]
TEST = [([[5, 6, 7]], [[8], [9]]), ([[9]], [[0, 0]])]
TASKS = TaskSet("shown", (RawTask("shown/0", TRAIN, TEST), RawTask("shown/1", TRAIN[:1], TEST)))
EVERYTHING = {
    "include_input": True,
    "include_clipboard": True,
    "include_selection": True,
    "include_demonstrations": True,
    "include_operations": True,
    "include_step_count": True,
    "include_submission_count": True,
}


def make_config(**fields):
    return create_test_config(6, "bbox", CANVAS, **{"invalid_action_policy": "noop", **fields})


def make_params(**fields):
    config = make_config(**fields)
    buffer = TASKS.buffer(CANVAS).with_symmetries(config.augmentation.num_symmetries)
    return EnvParams(buffer, jnp.ones(2), config)


def plain(grid):
    grid = np.asarray(grid)
    padded = np.full(CANVAS, -1, np.int8)
    padded[: grid.shape[0], : grid.shape[1]] = grid
    return padded


GENERATED = procedural_tasks("transpose", (4, 4), num_train=2)


@functools.cache
def setting(kind, grid_format):
    fields = {"grid_format": grid_format, **EVERYTHING}
    if kind == "generated":
        config = create_test_config(6, "bbox", (4, 4), invalid_action_policy="noop", **fields)
        return EnvParams(GENERATED, jnp.ones(1), config)
    if kind == "augmented":
        return make_params(symmetries="flips", recolor="all", shuffle_demos=True, **fields)
    return make_params(mode="test" if kind == "test" else "train", **fields)


@pytest.mark.parametrize("kind", ["train", "test", "augmented", "generated"])
def test_space_holds_every_observation_of_a_batch(kind):
    params, env = setting(kind, "planes"), AutoReset(ENV)
    space = env.observation_space(params)

    @jax.jit
    def play(keys):
        def step(states, key):
            actions = jax.vmap(env.action_space(params).sample)(jax.random.split(key, 8))
            states, seen, *_ = jax.vmap(env.step, (0, 0, None))(states, actions, params)
            later = env.observe(states, params)  # of a batch, without vmap
            return states, (jax.vmap(space.contains)(seen), seen, later)

        states, first = jax.vmap(env.reset, (0, None))(keys, params)
        return jax.vmap(space.contains)(first), jax.lax.scan(step, states, jax.random.split(keys[0], 10))[1]

    at_first, (inside, seen, later) = play(jax.random.split(jax.random.key(5), 8))
    assert bool(at_first.all())
    assert bool(inside.all())
    chex.assert_trees_all_equal(seen, later, strict=True)
    sample = space.sample(jax.random.key(0))
    assert bool(space.contains(sample))
    assert not bool(space.contains({**sample, "working_grid": sample["working_grid"].astype(jnp.int32)}))


def with_other_answers(params):
    """The same tasks with other hidden answers, of other sizes too; demonstrations stay."""
    tasks = params.tasks
    outputs = np.asarray(tasks.outputs).copy()
    copies = outputs.reshape(tasks.num_symmetries, -1, outputs.shape[1])
    for first, trains, tests in zip(*map(np.asarray, (tasks.first_pair, tasks.num_train, tasks.num_test)), strict=True):
        hidden = slice(first + trains, first + trains + tests)
        copies[:, hidden] = plain([[0, 5, 5, 5], [0, 5, 0, 5]]).reshape(-1)
    return dataclasses.replace(params, tasks=dataclasses.replace(tasks, outputs=jnp.asarray(outputs)))


AUGMENTED = {"symmetries": "flips", "recolor": "all", "shuffle_demos": True}


@pytest.mark.parametrize(
    ("grid_format", "augmentation"),
    [("planes", {}), ("planes", AUGMENTED), ("one_hot", {}), ("tokens", AUGMENTED)],
    ids=["planes", "planes-augmented", "one_hot", "tokens-augmented"],
)
def test_hidden_answer_is_in_nothing_that_is_shown_before_the_submit(grid_format, augmentation):
    operations = tuple(range(SUBMIT))  # all but the submit
    fields = {
        "mode": "test",
        "grid_format": grid_format,
        "allowed_operations": operations,
        **EVERYTHING,
        **augmentation,
    }
    params = make_params(**fields)
    env = EpisodeStatistics(AutoReset(ENV))

    @jax.jit
    def play(params):
        def step(states, key):
            actions = jax.vmap(env.action_space(params).sample)(jax.random.split(key, 8))
            states, *received = jax.vmap(env.step, (0, 0, None))(states, actions, params)
            return states, (received, env.info(states, params), jax.vmap(flat_mask)(states.env_state))

        flat_mask = lambda state: legal_operation_mask(state, params.config)
        states, first = jax.vmap(env.reset, (0, None))(jax.random.split(jax.random.key(1), 8), params)
        return first, jax.lax.scan(step, states, jax.random.split(jax.random.key(2), 15))[1]

    other = with_other_answers(params)
    assert (np.asarray(other.tasks.outputs) != np.asarray(params.tasks.outputs)).any()
    chex.assert_trees_all_equal(play(params), play(other), strict=True)
