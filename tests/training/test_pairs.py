import numpy as np

from jaxarc.config import TaskConfig
from jaxarc.evaluation import one_task_per_pair
from jaxarc.tasks import load_tasks
from jaxarc.training import load_pairs

CONFIG = TaskConfig()


def test_every_pair_of_the_small_tasks_is_measured_once_and_no_unseen_one_is_learned():
    pairs = load_pairs(CONFIG, (5, 5))
    assert (pairs.num_train, pairs.num_evaluation) == (136, 27)
    content = lambda task: tuple((g.shape, g.tobytes()) for g in task.train[0])
    learned = {content(task) for task in pairs.learned}
    measured = [content(task) for task in pairs.measured]
    assert set(measured[: pairs.num_train]) == learned
    assert not set(measured[pairs.num_train :]) & learned


def test_a_task_taken_apart_keeps_its_pairs_in_order():
    task_set = load_tasks("arc-agi-1/training").select(ids=["25ff71a9"])
    task = task_set.raw_task("25ff71a9")
    apart = one_task_per_pair(task_set)
    assert apart.task_ids == tuple(f"25ff71a9/{i}" for i in range(len(task.pairs)))
    for single, pair in zip(apart, task.pairs, strict=True):
        np.testing.assert_array_equal(single.train[0][0], pair[0])
        np.testing.assert_array_equal(single.train[0][1], pair[1])
