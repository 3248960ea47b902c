import jax
import jax.numpy as jnp
import numpy as np

from jaxarc import constants as c
from jaxarc.envs import BboxAction, EnvParams, JaxArcConfig
from jaxarc.evaluation import play_every_task
from jaxarc.tasks import RawTask, TaskSet, uniform_weights

SAME = ([[1, 2]], [[1, 2]])
ONE_CELL = ([[1, 2]], [[3, 2]])
FAR = ([[1, 2]], [[3, 4]])


def params(*pairs, **fields):
    tasks = tuple(RawTask(f"task-{i}", (pair,), (pair,)) for i, pair in enumerate(pairs))
    task_set = TaskSet("small", tasks)
    config = JaxArcConfig().with_fields(
        max_grid_height=1, max_grid_width=2, selection_format="bbox", max_episode_steps=3, reveal_target=True, **fields
    )
    return EnvParams(task_set.buffer((1, 2)), uniform_weights(len(tasks)), config)


def paint_first_wrong_cell(observation):
    """Repair one cell a step, from the left; submit when all are right."""
    wrong = (observation["working_grid"] != observation["target_grid"])[:, 0]
    column = jnp.argmax(wrong, axis=1).astype(jnp.int32)
    color = jnp.take_along_axis(observation["target_grid"][:, 0], column[:, None], axis=1)[:, 0].astype(jnp.int32)
    zero = jnp.zeros_like(column)
    return BboxAction(jnp.where(wrong.any(axis=1), color, c.SUBMIT), zero, column, zero, column)


def always_submit(observation):
    zero = jnp.zeros(observation["working_grid"].shape[0], jnp.int32)
    return BboxAction(zero + c.SUBMIT, zero, zero, zero, zero)


def test_each_task_is_played_once_and_judged_by_its_own_pair():
    tasks = params(FAR, SAME, ONE_CELL, SAME)
    np.testing.assert_array_equal(
        jax.jit(lambda p: play_every_task(always_submit, p))(tasks), [False, True, False, True]
    )
    np.testing.assert_array_equal(jax.jit(lambda p: play_every_task(paint_first_wrong_cell, p))(tasks), [True] * 4)


def test_a_grid_that_is_not_submitted_in_time_is_not_solved_whatever_training_starts_from():
    tasks = params(*[FAR] * 15, ONE_CELL, start_grid="partial", partial_probability=1.0)
    tasks = EnvParams(tasks.tasks, tasks.weights, tasks.config.with_fields(max_episode_steps=2))
    solved = jax.jit(lambda p: play_every_task(paint_first_wrong_cell, p))(tasks)
    np.testing.assert_array_equal(solved, [False] * 15 + [True])


def paint_three_on_the_left(observation):
    """Paint the left cell with color 3 whatever the target is, then submit."""
    painted = observation["working_grid"][:, 0, 0] == 3
    zero = jnp.zeros(painted.shape, jnp.int32)
    return BboxAction(jnp.where(painted, c.SUBMIT, 3), zero, zero, zero, zero)


def test_tasks_are_measured_as_they_are_whatever_training_augments():
    tasks = params(*[ONE_CELL] * 16, recolor="all")
    assert np.all(jax.jit(lambda p: play_every_task(paint_three_on_the_left, p))(tasks))
