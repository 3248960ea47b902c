"""The pairs of a run: which are learned from, and which are played to measure."""

import json

import jax
import numpy as np
import pytest

from jaxarc.agents.updates import make_params
from jaxarc.config import JaxArcConfig, TaskConfig
from jaxarc.datasets import TaskSet, load_tasks
from jaxarc.datasets.training_pairs import load_pairs, pairs_by_rule
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.tasks.pair_pool import PairPool
from jaxarc.tasks.procedural import ProceduralTasks

CONFIG = TaskConfig()
RULES = TaskConfig("procedural/transpose+gravity", "procedural/gravity+transpose", min_side=2, max_side=3, num_unseen=4)


def content(task):
    return tuple((grid.shape, grid.tobytes()) for pair in task.train for grid in pair)


def test_every_pair_of_the_small_tasks_is_measured_once_and_no_unseen_one_is_learned():
    pairs = load_pairs(CONFIG, (5, 5))
    assert isinstance(pairs.train, TaskSet)
    assert (pairs.num_train, pairs.num_evaluation) == (136, 27)
    learned = {content(task) for task in pairs.train}
    measured = [content(task) for task in pairs.eval]
    assert set(measured[: pairs.num_train]) == learned
    assert not set(measured[pairs.num_train :]) & learned
    assert pairs.train_ids == tuple(task_id.removeprefix("train/") for task_id in pairs.eval.task_ids[:136])
    assert all(task_id.startswith("evaluation/") for task_id in pairs.eval.task_ids[136:])


@pytest.fixture(scope="module")
def made():
    return load_pairs(RULES, (3, 4))


def test_rules_are_learned_as_they_come_and_measured_on_as_many_tasks_of_each(made):
    assert isinstance(made.train, ProceduralTasks)
    assert made.train_ids == ("procedural/transpose", "procedural/gravity")
    assert (made.num_train, made.num_evaluation) == (0, 8)
    places = pairs_by_rule(made)
    assert {rule: len(of_rule) for rule, of_rule in places.items()} == {
        "procedural/gravity": 4,
        "procedural/transpose": 4,
    }
    measured = list(made.eval)
    for place in places["procedural/transpose"]:
        assert all(np.array_equal(output, source.T) for source, output in measured[place].pairs)
    sides = [side for task in measured for pair in task.pairs for grid in pair for side in grid.shape]
    assert (min(sides), max(sides)) == (2, 3)


def test_with_hidden_answers_each_test_comes_first_and_only_demonstrations_follow():
    pairs = load_pairs(CONFIG, (5, 5), hides_answers=True)
    tasks = {task.task_id: task for task in load_tasks("arc-agi-1/evaluation")}
    unseen = pairs.eval.tasks[pairs.num_train :]
    expected = [(name, i) for name, task in tasks.items() for i in range(len(task.test))]
    assert len(unseen) > 3
    for found in unseen:
        _, name, index = found.task_id.split("/")
        assert (name, int(index)) in expected
        whole = tasks[name]
        wanted = (whole.test[int(index)], *whole.train)
        assert content(found) == tuple((grid.shape, grid.tobytes()) for pair in wanted for grid in pair)


@pytest.fixture
def pooled(tmp_path):
    """A training set of one task with 24 pairs, and an evaluation set of which one pair is among them."""
    pairs = [{"input": [[a, b]], "output": [[b, a]]} for a in range(4) for b in range(6)]
    (tmp_path / "train").mkdir()
    (tmp_path / "train" / "mirror.json").write_text(json.dumps(pairs))
    unseen = {"train": [{"input": [[5, 6]], "output": [[6, 5]]}], "test": [pairs[20]]}
    (tmp_path / "other.json").write_text(json.dumps(unseen))
    return TaskConfig(
        train_dataset=str(tmp_path / "train"), evaluation_dataset=str(tmp_path / "other.json"), max_side=5
    )


def test_of_tasks_with_pools_every_reset_draws_the_pairs_and_none_of_them_is_unseen(pooled):
    pairs = load_pairs(pooled, (5, 5))
    assert isinstance(pairs.train, PairPool)
    assert (pairs.train.num_train, pairs.train.num_tasks) == (pooled.num_demonstrations + 1, 1)
    assert (pairs.train_ids, pairs.num_train) == (("mirror",), 0)
    assert (pairs.num_evaluation, pairs.num_left_out) == (1, 1)
    assert pairs.eval.tasks[0].pairs[0][0].tolist() == [[5, 6]]
    config = JaxArcConfig().with_fields(max_grid_height=5, max_grid_width=5)
    params = make_params(pairs.train, config)
    states, _ = jax.vmap(ArcEnvironment().reset, (0, None))(jax.random.split(jax.random.key(0), 32), params)
    assert len({tuple(row) for row in np.asarray(states.target_grid)[:, 0, :2].tolist()}) > 12


def test_a_task_with_too_few_pairs_for_its_demonstrations_is_named(pooled):
    with pytest.raises(ValueError, match=r"no task with 32 pairs up to 5x5; lower task\.num_demonstrations"):
        load_pairs(pooled.replace(num_demonstrations=30), (5, 5))
