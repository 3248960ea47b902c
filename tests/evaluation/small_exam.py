"""Small task sets, and the rules to play them by."""

import numpy as np

from jaxarc import constants as c
from jaxarc.datasets import TaskSet
from jaxarc.envs import JaxArcConfig
from jaxarc.tasks import RawTask

SIDE = 3
OPERATIONS = (*range(c.NUM_COLORS), c.RESIZE, c.SUBMIT)  # few, for they compile fast


def task(task_id, *tests):
    """A task with these test pairs; its demonstration does not matter."""
    return RawTask(task_id, (([[1]], [[2]]),), tests)


def task_set(*tasks):
    return TaskSet("exam", tasks)


def rules(side=SIDE, **fields):
    fields = {"selection_format": "bbox", "max_episode_steps": 6, "allowed_operations": OPERATIONS, **fields}
    return JaxArcConfig().with_fields(max_grid_height=side, max_grid_width=side, invalid_action_policy="noop", **fields)


def painting(answer):
    """Actions that make a grid from any other: resize, a fill for each cell, submit."""
    answer = np.asarray(answer)
    height, width = answer.shape
    cells = [[int(color), row, column, row, column] for (row, column), color in np.ndenumerate(answer)]
    return [[c.RESIZE, 0, 0, height - 1, width - 1], *cells, [c.SUBMIT, 0, 0, 0, 0]]


THREE_TESTS = task("three", ([[1]], [[1]]), ([[2, 2]], [[3, 3]]), ([[4]], [[4]]))
ONE_RIGHT = task("right", ([[5, 6], [7, 8]], [[5, 6], [7, 8]]))
ONE_WRONG = task("wrong", ([[5]], [[5, 5]]))
EXAM = task_set(THREE_TESTS, ONE_RIGHT, ONE_WRONG)
