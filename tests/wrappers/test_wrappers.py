"""Auto-reset starts the next episode and keeps everything else; statistics are sums that a hand can check."""

import functools

import chex
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.cases import random_boxes, random_operations
from small_tasks import tasks_of

import jaxarc
from jaxarc.constants import SUBMIT
from jaxarc.envs import BboxAction
from jaxarc.testing import create_test_config
from jaxarc.wrappers import AutoReset, EpisodeStatistics

CANVAS = (2, 3)
B, S = 40, 24
FILL_ALL = (0, 0, 1, 2)


TASKS = tasks_of(*((np.full((2, 2), color), np.full((2, 2), 9)) for color in (1, 2, 3)))


@functools.cache
def make(**fields):
    """The plain environment, the one that resets itself, and params of three one-pair tasks of colors 1, 2 and 3."""
    config = create_test_config(5, "bbox", CANVAS, invalid_action_policy="noop").with_fields(**fields)
    env, params = jaxarc.make(TASKS, config)
    return env, AutoReset(env), params


@functools.cache
def random_actions(shape, seed=0):
    rng, count = np.random.default_rng(seed), int(np.prod(shape))
    action = BboxAction(random_operations(rng, count), *random_boxes(rng, count, *CANVAS).T)
    return jax.tree.map(lambda x: x.reshape(*shape), action)


def at(tree, *index):
    return jax.tree.map(lambda x: x[index], tree)


def assert_same_bits(ours, theirs):
    chex.assert_trees_all_equal_structs(ours, theirs)
    chex.assert_trees_all_equal(ours, theirs, strict=True)


def rollout(env, params, keys, actions, axes=None):
    """Reset and step a batch in one scan; what came back at each step, states included."""

    @eqx.filter_jit
    def play(params, keys, actions):
        states, _ = jax.vmap(env.reset, (0, axes))(keys, params)

        def step(states, action):
            states, *result = jax.vmap(env.step, (0, 0, axes))(states, action, params)
            return states, (states, *result)

        return jax.lax.scan(step, states, actions)[1]

    return play(params, keys, actions)


@functools.cache
def batch(executor):
    _, env, params = make(executor=executor)
    return rollout(env, params, jax.random.split(jax.random.key(0), B), random_actions((S, B)))


# Auto-reset
def test_step_within_an_episode_is_the_plain_step():
    plain, auto, params = make()
    state, _ = auto.reset(jax.random.key(0), params)
    assert_same_bits(auto.reset(jax.random.key(0), params), plain.reset(jax.random.key(0), params))
    expected_state, *expected, expected_info = plain.step(state, BboxAction(4, *FILL_ALL), params)
    after, *result, info = auto.step(state, BboxAction(4, *FILL_ALL), params)
    final = info.pop("final_observation")
    assert_same_bits((after, *result, info), (expected_state, *expected, expected_info))
    assert_same_bits(final, result[0])


@pytest.mark.parametrize("operation", [4, SUBMIT], ids=["truncated", "terminated"])
def test_step_that_ends_an_episode_shows_its_last_and_the_next_first_observation(operation):
    plain, auto, params = make(max_episode_steps=1)
    state, _ = auto.reset(jax.random.key(0), params)
    ended, last, *expected, expected_info = plain.step(state, BboxAction(operation, *FILL_ALL), params)
    after, first, reward, done, info = auto.step(state, BboxAction(operation, *FILL_ALL), params)
    assert done
    assert info["terminated"] == (operation == SUBMIT)
    assert_same_bits(info.pop("final_observation"), last)
    assert_same_bits((reward, done, info), (*expected, expected_info))
    assert_same_bits((after, first), plain.reset(ended.key, params))
    assert after.step_count == 0
    assert not after.done


def test_every_episode_is_started_by_a_key_of_its_own():
    states, _, _, dones, _ = batch("xla")
    assert dones.sum() > B
    first = np.asarray(states.step_count) == 0
    np.testing.assert_array_equal(first, dones)
    keys = np.asarray(states.key)[first]
    assert len(np.unique(keys, axis=0)) == len(keys)
    assert set(np.asarray(states.task_index)[first].tolist()) == {0, 1, 2}


def test_weights_of_one_task_hold_for_a_thousand_resets():
    _, auto, params = make(max_episode_steps=1)
    params = eqx.tree_at(lambda p: p.weights, params, jnp.array([0.0, 1.0, 0.0]))
    states, observations, _, dones, _ = rollout(
        auto, params, jax.random.split(jax.random.key(0), B), random_actions((S + 2, B))
    )
    assert dones.sum() >= 1000
    assert (states.task_index == 1).all()
    assert (observations[:, :, 0, 0] == 2).all()


def test_each_environment_may_have_params_of_its_own():
    _, auto, params = make(max_episode_steps=2)
    own = eqx.tree_at(lambda p: p.weights, params, jnp.eye(3))
    axes = eqx.tree_at(lambda p: p.weights, jax.tree.map(lambda _: None, params), 0, is_leaf=lambda x: x is None)
    states, observations, _, dones, _ = rollout(
        auto, own, jax.random.split(jax.random.key(0), 3), random_actions((S, 3)), axes
    )
    assert dones.sum() > S
    np.testing.assert_array_equal(states.task_index, np.tile([0, 1, 2], (S, 1)))
    np.testing.assert_array_equal(observations[:, :, 0, 0][np.asarray(dones)], (states.task_index + 1)[dones])


def test_wrappers_keep_the_spaces():
    plain, auto, params = make()
    assert EpisodeStatistics(auto).action_space(params) == plain.action_space(params)
    assert EpisodeStatistics(auto).observation_space(params) == plain.observation_space(params)


# Statistics
def test_statistics_are_the_sums_of_each_episode():
    _, auto, params = make()
    env = EpisodeStatistics(auto)
    _, _, rewards, dones, infos = jax.device_get(
        rollout(env, params, jax.random.split(jax.random.key(0), B), random_actions((S, B)))
    )
    assert dones.sum(0).min() >= 2
    total, length = np.zeros(B), np.zeros(B, int)
    last_total, last_length = np.zeros(B), np.zeros(B, int)
    for step in range(S):
        total, length = total + rewards[step], length + 1
        last_total, last_length = np.where(dones[step], (total, length), (last_total, last_length))
        np.testing.assert_allclose(infos["episode_return"][step], last_total, rtol=0, atol=1e-5)
        np.testing.assert_array_equal(infos["episode_length"][step], last_length)
        np.testing.assert_array_equal(infos["episode_ended"][step], dones[step])
        total, length = np.where(dones[step], 0, (total, length))


def test_statistics_leave_the_step_as_it_is():
    _, auto, params = make()
    env = EpisodeStatistics(auto)
    state, observation = env.reset(jax.random.key(0), params)
    inner, expected = auto.reset(jax.random.key(0), params)
    assert_same_bits((state.env_state, observation), (inner, expected))
    state, *result, info = env.step(state, BboxAction(4, *FILL_ALL), params)
    inner, *expected, expected_info = auto.step(inner, BboxAction(4, *FILL_ALL), params)
    added = {"episode_return", "episode_length", "episode_ended"}
    assert set(info) - set(expected_info) == added
    kept = {name: value for name, value in info.items() if name not in added}
    assert_same_bits((state.env_state, *result, kept), (inner, *expected, expected_info))


def play_past_the_end():
    """Statistics of a plain environment: a submit, and a step on the state that is done."""
    plain, _, params = make()
    env, infos = EpisodeStatistics(plain), []
    state, _ = env.reset(jax.random.key(0), params)
    for operation in (9, SUBMIT, 4):
        state, *_, info = env.step(state, BboxAction(operation, *FILL_ALL), params)
        infos.append(info)
    return infos


def test_solved_episode_reports_its_return_and_length():
    running, ended, _ = play_past_the_end()
    assert (running["episode_length"], running["episode_ended"]) == (0, False)
    assert (ended["episode_length"], ended["episode_ended"]) == (2, True)
    assert ended["episode_return"] == pytest.approx(1 + 10 - 2 * 0.01)


def test_step_after_the_end_adds_nothing_to_the_statistics():
    _, ended, after = play_past_the_end()
    assert after["episode_length"] == ended["episode_length"]
    assert after["episode_return"] == ended["episode_return"]
    assert not after["episode_ended"]
