"""Trials on demonstrations, then on a test, in one episode."""

import dataclasses
import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.cases import random_boxes, random_operations

import jaxarc
from jaxarc.constants import COPY_INPUT, RESET_PAIR, SUBMIT
from jaxarc.datasets import TaskSet
from jaxarc.envs import BboxAction, EnvParams
from jaxarc.tasks import RawTask
from jaxarc.tasks.procedural import procedural_tasks
from jaxarc.testing import create_test_config
from jaxarc.wrappers import AutoReset, EpisodeStatistics, Trials

CANVAS = (2, 3)
ENV = Trials(jaxarc.ArcEnvironment())
ONE, TWO = [([[1, 1]], [[2, 1]]), ([[3]], [[2], [3]])], [([[5, 5]], [[2, 5]])]
TASKS = TaskSet("trials", (RawTask("trials/0", ONE, [*TWO, ([[6]], [[2]])]), RawTask("trials/1", TWO, ONE)))
FILL = 2


def make_params(num_trials=2, steps=6, tasks=None, **fields):
    defaults = {"mode": "trials", "num_trials": num_trials, "invalid_action_policy": "noop", "start_grid": "input"}
    config = create_test_config(steps, "bbox", CANVAS, **{**defaults, **fields})
    tasks = tasks or TASKS.buffer(CANVAS).with_symmetries(config.augmentation.num_symmetries)
    return EnvParams(tasks, jnp.ones(tasks.num_tasks), config)


def act(operation):
    return BboxAction(jnp.int32(operation), *[jnp.int32(0)] * 4)


@functools.cache
def compiled(env):
    """Reset and step of an environment, compiled once for each kind of params."""
    return jax.jit(env.reset), jax.jit(env.step)


def play(params, operations, seed=0, env=ENV, **place):
    """What each step gave, and the states before it."""
    reset, step = compiled(env)
    state, observation = reset(jax.random.key(seed), params, **place)
    steps = []
    for operation in operations:
        before = state
        state, observation, reward, done, info = step(state, act(operation), params)
        steps.append((before, observation, float(reward), bool(done), jax.tree.map(np.asarray, info)))
    return steps, state


def test_trials_go_through_demonstrations_and_end_with_a_test():
    steps, _ = play(make_params(), [SUBMIT] * 3, task_index=0)
    for (before, *_), pair in zip(steps, ([[1, 1]], [[3]], [[5, 5]]), strict=True):
        height, width = np.shape(pair)
        np.testing.assert_array_equal(before.env_state.working_grid[:height, :width], pair)
    assert [int(info["trial_index"]) for *_, info in steps] == [0, 1, 2]
    assert [bool(info["trial_done"]) for *_, info in steps] == [True] * 3
    assert [done for *_, done, _ in steps] == [False, False, True]
    assert [bool(info["terminated"]) for *_, info in steps] == [False, False, True]
    assert [float(info["discount"]) for *_, info in steps] == [1, 1, 0]
    assert [int(observation["trial_index"]) for _, observation, *_ in steps] == [1, 2, 2]


def test_fewer_demonstrations_come_again():
    steps, _ = play(make_params(num_trials=5), [SUBMIT] * 6, task_index=0)
    assert [int(before.env_state.pair_index) for before, *_ in steps] == [0, 1, 0, 1, 0, 2]
    steps, _ = play(make_params(num_trials=2), [SUBMIT] * 3, task_index=1)
    assert [int(before.env_state.pair_index) for before, *_ in steps] == [0, 0, 1]


def test_a_trial_pays_as_its_mode_does():
    rules = make_params().config.reward
    train = create_test_config(6, "bbox", CANVAS).reward
    assert rules == train
    solved, _ = play(make_params(), [FILL, SUBMIT, SUBMIT, FILL, SUBMIT], task_index=0)
    rewards = [reward for *_, reward, _, _ in solved]
    shaping = rules.similarity_weight * 0.5
    expected = [
        rules.step_penalty + shaping,
        rules.step_penalty + rules.success_bonus,
        rules.step_penalty + rules.unsolved_submission_penalty,
        rules.step_penalty,  # on the test nothing tells how near the answer is,
        rules.step_penalty,  # nor that it is right
    ]
    np.testing.assert_allclose(rewards, expected, atol=1e-6)
    assert [bool(info["success"]) for *_, info in solved] == [False, True, False, False, False]
    assert [float(info["similarity"]) for *_, info in solved][3:] == [0, 0]
    scored, _ = play(make_params(score_on_submit=True), [SUBMIT, SUBMIT, FILL, SUBMIT], task_index=0)
    assert bool(scored[-1][-1]["success"])
    np.testing.assert_allclose(scored[-1][2], rules.step_penalty + rules.success_bonus, atol=1e-6)


@pytest.mark.parametrize("score_on_submit", [False, True])
def test_a_right_submit_ends_a_trial_though_others_are_left(score_on_submit):
    params = make_params(score_on_submit=score_on_submit, max_submissions=3)
    steps, _ = play(params, [SUBMIT, FILL, SUBMIT], task_index=0)
    assert [bool(info["trial_done"]) for *_, info in steps] == [False, False, True]


def test_trial_that_takes_too_long_is_followed_by_the_next():
    steps, _ = play(make_params(steps=2), [FILL] * 6, task_index=0)
    assert [bool(info["trial_done"]) for *_, info in steps] == [False, True] * 3
    assert [done for *_, done, _ in steps] == [False] * 5 + [True]
    assert [bool(info["truncated"]) for *_, info in steps] == [False] * 5 + [True]
    assert float(steps[-1][-1]["discount"]) == 1
    assert [int(info["step_count"]) for *_, info in steps] == [1, 2] * 3


def test_done_episode_stays_as_it_is():
    params = make_params(num_trials=1)
    _, state = play(params, [SUBMIT] * 2, task_index=0)
    after, _, reward, done, _ = ENV.step(state, act(FILL), params)
    chex.assert_trees_all_equal(after, state, strict=True)
    assert (float(reward), bool(done)) == (0, True)


def test_operations_load_the_input_of_the_trial():
    steps, _ = play(make_params(), [SUBMIT, SUBMIT, FILL, COPY_INPUT, FILL, RESET_PAIR], task_index=0)
    for place in (4,):
        np.testing.assert_array_equal(steps[place][0].env_state.working_grid[0, :2], [5, 5])
    np.testing.assert_array_equal(steps[3][0].env_state.working_grid[0, :2], [2, 5])


@pytest.mark.parametrize("kind", ["augmented", "generated"])
def test_all_trials_play_the_same_task(kind):
    if kind == "augmented":
        params = make_params(symmetries="flips", recolor="all", shuffle_demos=True)
        shared = lambda state: (state.augmentation, state.task_index)
    else:
        params = make_params(tasks=procedural_tasks("color-map", CANVAS, num_train=2, side=(2, 2), num_test=2))
        shared = lambda state: (state.pairs, state.task_index)
    steps, _ = play(params, [SUBMIT] * 3)
    first, *others = (shared(before.env_state) for before, *_ in steps)
    for other in others:
        chex.assert_trees_all_equal(other, first, strict=True)
    assert len({int(before.env_state.pair_index) for before, *_ in steps}) > 1


@pytest.mark.parametrize("kind", ["stored", "augmented", "generated"])
def test_a_trial_shows_the_answers_of_all_demonstrations_but_its_own(kind):
    fields = {"include_demonstrations": True, "grid_format": "tokens"}
    if kind == "augmented":
        fields |= {"symmetries": "flips", "recolor": "all", "shuffle_demos": True}
    if kind == "generated":
        fields["tasks"] = procedural_tasks("color-map", CANVAS, num_train=2, side=(2, 2))
    params = make_params(**fields)
    state, observation = ENV.reset(jax.random.key(0), params, 0)
    answers = {}
    for trial in range(3):
        shown = observation["demonstrations"]
        assert [bool(flag) for flag in shown["mask"]] == [slot != trial for slot in range(2)]
        for slot, answer in answers.items():
            np.testing.assert_array_equal(shown["outputs"][slot], answer)
        answers[trial] = state.env_state.canvas.target.astype(jnp.int32) + 1
        state, observation, *_ = ENV.step(state, act(SUBMIT), params)


def random_actions(shape, seed=0):
    rng, count = np.random.default_rng(seed), int(np.prod(shape))
    operation = np.where(rng.random(count) < 0.3, SUBMIT, random_operations(rng, count))
    return jax.tree.map(
        lambda x: x.reshape(*shape, *x.shape[1:]),
        BboxAction(operation.astype(np.int32), *random_boxes(rng, count, *CANVAS).T),
    )


def roll(env, params, states, actions, batched):
    step = jax.vmap(env.step, (0, 0, None)) if batched else env.step

    def once(states, action):
        states, *received = step(states, action, params)
        return states, (received, env.info(states, params))

    return jax.lax.scan(once, states, actions)


def test_statistics_and_auto_reset_count_whole_episodes():
    params = make_params(task_order="in_turn")
    env = EpisodeStatistics(AutoReset(ENV))
    steps, _ = play(params, [SUBMIT] * 9, env=env)
    ended = [bool(info["episode_ended"]) for *_, info in steps]
    assert ended == [False, False, True] * 3
    assert {int(info["episode_length"]) for *_, info in steps[2::3]} == {3}
    tasks = [int(info["task_index"]) for *_, info in steps[::3]]
    assert tasks[0] != tasks[1] != tasks[2]
    assert {int(observation["trial_index"]) for _, observation, *_ in steps[2::3]} == {0}


def test_hidden_answer_changes_nothing_in_the_whole_episode():
    params = make_params(include_demonstrations=True, include_input=True)
    outputs = np.asarray(params.tasks.outputs).copy()
    for first, trains, tests in ((0, 2, 2), (4, 1, 2)):
        outputs[first + trains : first + trains + tests] = np.array([7, 7, 7, 7, 7, 7], np.int8)
    other = dataclasses.replace(params, tasks=dataclasses.replace(params.tasks, outputs=jnp.asarray(outputs)))
    env, actions = EpisodeStatistics(AutoReset(ENV)), random_actions((20, 16), seed=3)
    states, first = jax.vmap(env.reset, (0, None))(jax.random.split(jax.random.key(2), 16), params)
    states_too, first_too = jax.vmap(env.reset, (0, None))(jax.random.split(jax.random.key(2), 16), other)
    run = jax.jit(lambda s, a, params: roll(env, params, s, a, True)[1])
    chex.assert_trees_all_equal(first, first_too, strict=True)
    chex.assert_trees_all_equal(run(states, actions, params), run(states_too, actions, other), strict=True)


def test_observations_lie_in_their_space():
    params = make_params(include_demonstrations=True)
    space = ENV.observation_space(params)
    state, observation = ENV.reset(jax.random.key(0), params)
    assert bool(space.contains(observation))
    assert bool(space.contains(ENV.step(state, act(SUBMIT), params)[1]))
    assert not bool(space.contains({**observation, "trial_index": jnp.int32(3)}))


def test_a_pair_is_not_chosen():
    with pytest.raises(ValueError, match="pair_index=1"):
        ENV.reset(jax.random.key(0), make_params(), 0, 1)
