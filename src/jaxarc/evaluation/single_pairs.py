"""Every pair, or every test, of a task set as a task of its own, so that each is played once and none by chance."""

from jaxarc.datasets import TaskSet
from jaxarc.tasks import RawTask


def one_task_per_pair(task_set: TaskSet) -> TaskSet:
    """Make each pair, demonstrations and tests alike, a task with this one demonstration.

    Where the answer is shown, a test pair is one more pair to learn from or to play. The pair of task ``007bbfb7`` that
    comes third gets the id ``007bbfb7/2``; its test repeats its demonstration, because a task needs one.
    """
    named = ((f"{task.task_id}/{index}", pair) for task in task_set for index, pair in enumerate(task.pairs))
    tasks = tuple(RawTask(name, (pair,), (pair,)) for name, pair in named)
    return TaskSet(f"{task_set.name}, pair by pair", tasks, task_set.canvas)


def one_task_per_test(task_set: TaskSet) -> TaskSet:
    """Make each test pair a task of its own, whose first pair it is and whose others are the demonstrations.

    Where the answer is hidden, what is played is the first pair, and the others are shown. The second test pair of task
    ``007bbfb7`` gets the id ``007bbfb7/1``.
    """
    named = ((task, f"{task.task_id}/{index}", pair) for task in task_set for index, pair in enumerate(task.test))
    tasks = tuple(RawTask(name, (pair, *task.train), (pair,)) for task, name, pair in named)
    return TaskSet(f"{task_set.name}, test by test", tasks, task_set.canvas)
