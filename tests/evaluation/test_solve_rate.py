"""Which pairs an agent solves, and in how many steps."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_tasks import tasks_of

from jaxarc import constants as c
from jaxarc.envs import BboxAction, EnvParams, JaxArcConfig
from jaxarc.evaluation import play_every_task
from jaxarc.tasks import uniform_weights

SAME = ([[1, 2]], [[1, 2]])
ONE_CELL = ([[1, 2]], [[3, 2]])
FAR = ([[1, 2]], [[3, 4]])


def params(*pairs, **fields):
    tasks = tasks_of(*pairs)
    config = JaxArcConfig().with_fields(
        **{
            "max_grid_height": 1,
            "max_grid_width": 2,
            "selection_format": "bbox",
            "max_episode_steps": 3,
            "allowed_operations": (*range(c.NUM_COLORS), c.SUBMIT),
            "reveal_target": True,
            **fields,
        }
    )
    return EnvParams(tasks.buffer((1, 2)), uniform_weights(len(tasks)), config)


play = jax.jit(play_every_task, static_argnums=(0, 2))


def paint_first_wrong_cell(task_index, observation, states):
    """Repair one cell a step, from the left; submit when all are right."""
    wrong = (observation["working_grid"] != observation["target_grid"])[:, 0]
    column = jnp.argmax(wrong, axis=1).astype(jnp.int32)
    color = jnp.take_along_axis(observation["target_grid"][:, 0], column[:, None], axis=1)[:, 0].astype(jnp.int32)
    zero = jnp.zeros_like(column)
    return BboxAction(jnp.where(wrong.any(axis=1), color, c.SUBMIT), zero, column, zero, column), None


def always_submit(task_index, observation, states):
    zero = jnp.zeros(observation["working_grid"].shape[0], jnp.int32)
    return BboxAction(zero + c.SUBMIT, zero, zero, zero, zero), None


def test_each_task_is_played_once_and_judged_by_its_own_pair():
    tasks = params(FAR, SAME, ONE_CELL, SAME)
    submitted, painted = play(always_submit, tasks, 4), play(paint_first_wrong_cell, tasks, 4)
    np.testing.assert_array_equal(submitted.solved, [False, True, False, True])
    np.testing.assert_array_equal(submitted.steps, [1] * 4)
    np.testing.assert_array_equal(painted.solved, [True] * 4)
    np.testing.assert_array_equal(painted.steps, [3, 1, 2, 1])


@pytest.mark.parametrize("num_slots", [1, 3, 256])
def test_results_do_not_depend_on_how_many_episodes_run_side_by_side(num_slots):
    """Seven tasks: more than slots, of different lengths, of which the first and the last run longest."""
    tasks = params(FAR, SAME, ONE_CELL, FAR, SAME, ONE_CELL, FAR, max_episode_steps=2)
    played = play(paint_first_wrong_cell, tasks, num_slots)
    np.testing.assert_array_equal(played.solved, [False, True, True, False, True, True, False])
    np.testing.assert_array_equal(played.steps, [2, 1, 2, 2, 1, 2, 2])


def paint_number_of_task(task_index, observation, states):
    """Paint the left cell in the color of the task's number, then submit."""
    painted = observation["working_grid"][:, 0, 0] == task_index.astype(jnp.int8)
    zero = jnp.zeros(painted.shape, jnp.int32)
    return BboxAction(jnp.where(painted, c.SUBMIT, task_index), zero, zero, zero, zero), None


@pytest.mark.parametrize("num_slots", [2, 256])
def test_a_policy_gets_the_task_index_of_each_observation(num_slots):
    tasks = params(*(([[9, 9]], [[number, 9]]) for number in range(5)))
    played = play(paint_number_of_task, tasks, num_slots)
    assert played.solved.all()
    np.testing.assert_array_equal(played.steps, [2] * 5)


def test_a_grid_that_is_not_submitted_in_time_is_not_solved_whatever_training_starts_from():
    tasks = params(*[FAR] * 15, ONE_CELL, start_grid="partial", partial_probability=1.0, max_episode_steps=2)
    np.testing.assert_array_equal(play(paint_first_wrong_cell, tasks, 16).solved, [False] * 15 + [True])


def paint_three_on_the_left(task_index, observation, states):
    """Paint the left cell with color 3 whatever the target is, then submit."""
    return paint_number_of_task(jnp.full_like(task_index, 3), observation, states)


def test_tasks_are_measured_as_they_are_whatever_training_augments():
    assert np.all(play(paint_three_on_the_left, params(*[ONE_CELL] * 16, recolor="all"), 16).solved)


def test_another_policy_of_the_same_kind_compiles_nothing_anew():
    traced = []

    @jax.jit
    def measure(color, tasks):
        traced.append(color)
        return play_every_task(functools.partial(paint, color), tasks).solved

    def paint(color, task_index, observation, states):
        return paint_number_of_task(jnp.broadcast_to(color, task_index.shape), observation, states)

    tasks = params(SAME, ONE_CELL)
    assert measure(jnp.int32(3), tasks).tolist() == [False, True]
    assert measure(jnp.int32(1), tasks).tolist() == [True, False]
    assert len(traced) == 1
