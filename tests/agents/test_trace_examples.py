"""Recorded traces become examples, and a policy that imitates them edits as they do."""

import dataclasses
import json

import jax
import numpy as np
import pytest

from jaxarc import constants as c
from jaxarc.agents import EditPolicy
from jaxarc.agents.cloning import TraceExampleError, clone_examples, load_examples
from jaxarc.agents.updates import make_params
from jaxarc.config import AgentConfig, CloningConfig, JaxArcConfig, NetworkConfig
from jaxarc.datasets import TaskSet
from jaxarc.evaluation import one_task_per_pair, play_every_task
from jaxarc.experts import InvalidActionError, Painter
from jaxarc.files import CHECKSUM
from jaxarc.tasks import RawTask
from jaxarc.traces import Graph, pairs_by_id, record_traces
from jaxarc.traces.trace_files import write_trace_file

SIDE, NUM_TASKS = 3, 8
RULES = JaxArcConfig().with_fields(
    selection_format="bbox",
    max_grid_height=SIDE,
    max_grid_width=SIDE,
    max_episode_steps=20,
    reveal_target=True,
    include_step_count=True,
    invalid_action_policy="noop",
    history_enabled=False,
    similarity_weight=0.0,
    step_penalty=0.0,
    success_bonus=1.0,
)
AGENT = AgentConfig(num_envs=16, rollout_steps=8, num_minibatches=4)
GAMMA = 0.5

pytestmark = pytest.mark.usefixtures("standard_promotion")


@pytest.fixture(scope="module")
def tasks():
    random = np.random.default_rng(0)
    draw = lambda: random.integers(0, 3, (SIDE, SIDE)).astype(np.int8)
    return TaskSet(
        "random", tuple(RawTask(f"t{i}", ((draw(), draw()),), ((draw(), draw()),)) for i in range(NUM_TASKS))
    )


@pytest.fixture(scope="module")
def traces(tasks):
    """What the painter does on all pairs, by place."""
    graph = Graph.of_tasks(tasks)
    recording = record_traces(graph, Painter(copying=0), "bbox")
    recording.require_complete()
    return {place: recording.trace_of(place.node) for place in pairs_by_id(tasks)}


@pytest.fixture(scope="module")
def file(tmp_path_factory, traces):
    return write_trace_file(tmp_path_factory.mktemp("traces") / "traces.jsonl", traces)


@pytest.fixture(scope="module")
def world(tasks):
    learned = one_task_per_pair(tasks)
    return learned, make_params(learned, RULES)


@pytest.fixture(scope="module")
def examples(file, tasks, world):
    return load_examples(file, tasks, *world, GAMMA)


def test_there_is_an_example_for_each_action_with_what_was_seen_before_it(examples, traces, tasks):
    counts = [len(trace.actions) for trace in traces.values()]
    assert len(examples.value_target) == sum(counts)
    starts = np.asarray(examples.observation["step_count"]) == 0
    assert starts.sum() == 2 * NUM_TASKS
    seen = {grid.tobytes() for grid in np.asarray(examples.observation["working_grid"])[starts]}
    assert seen == {source.tobytes() for task in tasks for source, _ in task.pairs}


def test_the_value_of_a_situation_is_the_discounted_reward_from_there_on(examples, traces):
    expected = [GAMMA**left for trace in traces.values() for left in range(len(trace.actions))]
    assert sorted(np.asarray(examples.value_target)) == pytest.approx(sorted(expected))
    ends = np.asarray(examples.value_target) == 1.0
    at_end = {name: np.asarray(examples.observation[name])[ends] for name in ("working_grid", "target_grid")}
    np.testing.assert_array_equal(at_end["working_grid"], at_end["target_grid"])


def test_a_policy_that_imitates_the_examples_solves_their_pairs(examples, world):
    _, params = world
    cloning = CloningConfig(num_updates=150, learning_rate=1e-2, traces="traces.jsonl")
    policy = EditPolicy.create(jax.random.key(0), RULES, NetworkConfig())
    cloned = jax.jit(lambda policy, key: clone_examples(policy, examples, key, cloning, AGENT))(
        policy, jax.random.key(1)
    )
    solve_rate = jax.jit(
        lambda policy: play_every_task(
            lambda task, observation, states: (policy.act(observation), None), params
        ).solved.mean()
    )
    assert solve_rate(policy) < 0.2
    assert solve_rate(cloned) > 0.8


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"task_id": "nobody", "unit": ""}, r"line 1: .*'nobody'"),
        ({"pair_index": 7, "unit": ""}, r"line 1: task 't0' has 1 train and . test pairs, .*, got train/7"),
        ({"action_format": "mask"}, r"line 1: actions in format 'mask', but policies act in 'bbox'"),
        ({"actions": [[c.SUBMIT + 1, 0, 0, 0, 0]]}, r"line 1, action 0: operation 35 is not among those allowed"),
        ({"actions": [[0, 0, 0, 3, 0]]}, r"line 1, action 0: row 3 is not on the canvas of 3x3"),
        ({"actions": [[0, 0, 0]]}, r"line 1, action 0: 3 numbers"),
        ({"actions": [[c.SUBMIT, 0, 0, 0, 0]]}, r"line 1: by the rules of this run the trace does not solve its pair"),
    ],
)
def test_a_trace_that_cannot_be_imitated_is_named(tmp_path, file, tasks, world, change, complaint):
    first, *rest = file.read_text().splitlines()
    changed = tmp_path / "changed.jsonl"
    fields = {name: value for name, value in json.loads(first).items() if name != CHECKSUM}  # changed on purpose
    changed.write_text("\n".join([json.dumps({**fields, **change}), *rest]))
    with pytest.raises((TraceExampleError, InvalidActionError), match=complaint):
        load_examples(changed, tasks, *world, GAMMA)


def test_a_trace_finds_its_pair_by_content_under_another_name(tmp_path, file, tasks, world, examples):
    first, *rest = file.read_text().splitlines()
    fields = {name: value for name, value in json.loads(first).items() if name != CHECKSUM}
    renamed = tmp_path / "renamed.jsonl"
    renamed.write_text("\n".join([json.dumps({**fields, "task_id": "nobody", "pair_index": 7}), *rest]))
    found = load_examples(renamed, tasks, *world, GAMMA)
    np.testing.assert_array_equal(np.sort(found.value_target), np.sort(examples.value_target))


def test_traces_of_other_pairs_alone_are_refused(file, tasks, world):
    learned, params = world
    other = [dataclasses.replace(task, train=((task.train[0][1], task.train[0][0]),)) for task in learned]
    with pytest.raises(TraceExampleError, match="16 pairs"):
        load_examples(file, tasks, TaskSet("others", tuple(other)), params, GAMMA)
