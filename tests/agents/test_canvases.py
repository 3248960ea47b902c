"""A run whose tasks are on canvases of several sizes: one agent, whose figures mean what they mean on one canvas."""

import dataclasses
import itertools
import json

import jax
import numpy as np
import pytest
from small_run import RULES_2X2, Ready, painted, without_clocks

from jaxarc.agents import EditPolicy, Experiment, read_metrics, updates
from jaxarc.agents import train as agent_training
from jaxarc.agents.canvases import TasksOnCanvas, canvases_of, configs_of, merge_progress
from jaxarc.agents.ppo import EpisodeCounts, Losses, TrainConfig
from jaxarc.agents.train import train
from jaxarc.config import (
    AgentConfig,
    AnswerConfig,
    CheckpointConfig,
    CloningConfig,
    ConfigValidationError,
    NetworkConfig,
    ScheduleConfig,
    TaskConfig,
    TrainingConfig,
)
from jaxarc.datasets.task_set import cheapest_sides
from jaxarc.datasets.training_pairs import TrainingPairs
from jaxarc.runs import RunFolder

AGENT = AgentConfig(num_envs=8, rollout_steps=4, num_minibatches=4)
TRAINING = TrainingConfig(seed=5, num_seeds=2, total_steps=4 * 32, updates_per_report=2, reports_per_evaluation=2)
EXPERIMENT = Experiment(
    RULES_2X2, AGENT, task=TaskConfig(max_side=2), training=TRAINING, checkpoint=CheckpointConfig(min_seconds=0.0)
)

pytestmark = pytest.mark.usefixtures("standard_promotion")


LEARNED = ([[1]], [[2], [2]], [[4]], [[5]])
PAIRS = TrainingPairs(painted(*LEARNED), painted(*LEARNED, [[3, 3], [3, 3]]), num_train=4)


class CompiledOnce:
    """Compiles a function once for arguments of the same shapes, whoever asks."""

    def __init__(self, function):
        self.function, self.programs = function, {}

    def __call__(self, *args):
        return self.function(*args)

    def lower(self, *args):
        leaves, structure = jax.tree.flatten(args)
        shapes = tuple((leaf.shape, leaf.dtype) if hasattr(leaf, "shape") else leaf for leaf in leaves)
        if (structure, shapes) not in self.programs:
            self.programs[structure, shapes] = Ready(self.function.lower(*args).compile())
        return self.programs[structure, shapes]


@pytest.fixture(scope="module")
def programs():
    return [CompiledOnce(function) for function in (updates.run_updates, updates.measure, updates.start_training)]


@pytest.fixture
def quick(programs, monkeypatch):
    """Let ``train`` compile each program once for all tests of this file."""
    run_updates, measure, start = programs
    monkeypatch.setattr(agent_training, "run_updates", run_updates)
    monkeypatch.setattr(agent_training, "measure", measure)
    monkeypatch.setattr(agent_training, "start_training", start)


def on_canvases(*sides):
    return EXPERIMENT.replace(task=EXPERIMENT.task.replace(canvases=sides))


def train_config(agent):
    answer = AnswerConfig(batches_per_update=16)
    return TrainConfig(agent, NetworkConfig(), ScheduleConfig(), answer, CloningConfig(), num_updates=7)


def of_sizes(*counts):
    return [TasksOnCanvas(range(count), RULES_2X2, slice(None)) for count in counts]


def test_one_canvas_is_the_run_without_canvases_bit_for_bit(quick):
    whole, one = (train(experiment, PAIRS) for experiment in (EXPERIMENT, on_canvases(2)))
    assert without_clocks(whole.reports) == without_clocks(one.reports)
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(whole.state), jax.device_get(one.state))


def test_a_run_on_two_canvases_ends_the_same_when_it_is_stopped_and_goes_on(quick, tmp_path):
    experiment = on_canvases(1, 2)
    whole = train(experiment, PAIRS, RunFolder(tmp_path / "whole"))
    stopped = RunFolder(tmp_path / "stopped")
    asked = itertools.count()
    assert train(experiment, PAIRS, stopped, should_stop=lambda: next(asked) == 1).interrupted
    resumed = train(experiment, PAIRS, stopped, resume=True)
    assert without_clocks(whole.reports) == without_clocks(read_metrics(stopped.metrics))
    jax.tree.map(np.testing.assert_array_equal, jax.device_get(whole.state), jax.device_get(resumed.state))

    # Each canvas has its share of the environments, and every task and pair its row.
    assert [state.env_state.working_grid.shape for state in whole.state.env_states] == [(2, 2, 2, 2), (2, 6, 1, 1)]
    assert whole.played.solved.shape == whole.played.steps.shape == (2, 5)
    assert (whole.played.steps > 0).all()
    rows = [json.loads(line) for line in stopped.tasks.read_text().splitlines()]
    assert [row["task_id"] for row in rows] == [f"task-{i}" for i in range(4)] * 2
    assert sum(row["attempts"] for row in rows) == sum(report.episodes for report in whole.reports)
    np.testing.assert_allclose(sum(row["weight"] for row in rows if row["seed"] == 5), 1)


def test_a_policy_chooses_the_same_on_any_canvas_that_holds_the_grids():
    policy = EditPolicy.create(jax.random.key(0), RULES_2X2, NetworkConfig())

    @jax.jit
    def choose(observation):
        placed = policy.on_canvas_of(observation)
        edit = placed.greedy(observation)
        output = placed.evaluate(observation, edit)
        return placed.to_action(edit), (output.value, output.log_prob)

    found = []
    for side in (2, 4):
        draw = np.random.default_rng(0)
        grids = np.full((2, 64, side, side), -1, np.int8)
        grids[:, :, :2, :2] = draw.integers(0, 10, (2, 64, 2, 2))
        grids[0, :32, 1], grids[1, 16:48, :, 1] = -1, -1
        observation = {"working_grid": grids[0], "target_grid": grids[1], "step_count": np.zeros(64, np.int32)}
        found.append(choose(observation))
    jax.tree.map(np.testing.assert_array_equal, *(actions for actions, _ in found))
    value, log_prob = (np.stack(pair) for pair in zip(*(numbers for _, numbers in found), strict=True))
    np.testing.assert_allclose(value[0], value[1], rtol=2e-5, atol=1e-6)
    # A larger canvas has more sizes to choose from, which this network scores by 0: they make others less likely.
    paints = np.asarray(found[0][0].operation) < 10
    assert paints.any()
    np.testing.assert_allclose(log_prob[0][paints], log_prob[1][paints], rtol=2e-5, atol=1e-6)


def test_weights_for_the_cells_of_a_canvas_are_refused_on_another():
    policy = EditPolicy.create(jax.random.key(0), RULES_2X2, NetworkConfig("cells"))
    grids = np.zeros((1, 3, 3), np.int8)
    with pytest.raises(ValueError, match=r"kind 'cells' has weights for the cells of its canvas, 2x2, .* 3x3"):
        policy.on_canvas_of({"working_grid": grids, "target_grid": grids, "step_count": np.zeros(1, np.int32)})


def test_environments_are_divided_by_tasks_in_whole_minibatches():
    config = train_config(AgentConfig(num_envs=256, num_minibatches=64))
    divided = configs_of(config, of_sizes(141, 260, 378, 939))
    assert [one.agent.num_minibatches for one in divided] == [5, 10, 14, 35]
    assert [one.agent.num_envs for one in divided] == [20, 40, 56, 140]
    assert [one.answer.batches_per_update for one in divided] == [1, 2, 4, 9]
    assert {one.minibatches_of_update for one in divided} == {64}
    assert {one.parts_of_update for one in divided} == {4}
    assert configs_of(config, of_sizes(5)) == [config]
    assert config.minibatches_of_update == 64
    draw = np.random.default_rng(1)
    for _ in range(50):
        counts = draw.integers(1, 2000, draw.integers(2, 6)).tolist()
        seats = [one.agent.num_minibatches for one in configs_of(config, of_sizes(*counts))]
        wanted = 64 * np.array(counts) / sum(counts)
        assert sum(seats) == 64
        assert min(seats) >= 1
        assert np.abs(np.array(seats) - wanted).max() < 1.5
    with pytest.raises(ConfigValidationError, match=r"num_minibatches must be at least 3, the number of canvases"):
        configs_of(dataclasses.replace(config, agent=AgentConfig(num_minibatches=2)), of_sizes(1, 2, 3))


def test_progress_of_canvases_is_that_of_all_their_episodes():
    config = TrainConfig(
        AgentConfig(num_envs=8, num_minibatches=4),
        NetworkConfig(),
        ScheduleConfig(),
        AnswerConfig(),
        CloningConfig(),
        7,
    )
    shares = configs_of(config, of_sizes(10, 30))  # a quarter and three quarters

    def progress(ended, loss, played, effective):
        column = lambda value, dtype=np.float32: np.array([value], dtype)
        counts = EpisodeCounts(column(ended, np.int32), column(1, np.int32), column(0.5), column(3 * ended, np.int32))
        losses = Losses(*(column(loss) for _ in range(3)), None, None, column(loss))
        return updates.Progress(counts, losses, None, column(played, np.int32), column(effective))

    calls = [
        [progress(1, 4.0, 2, 10.0), progress(3, 8.0, 5, 30.0)],
        [progress(2, 0.0, 3, 10.0), progress(4, 4.0, 6, 30.0)],
    ]
    merged = merge_progress(calls, shares)
    assert merged.episodes.ended == 10
    assert merged.episodes.length_sum == 30
    assert merged.episodes.return_sum == 2
    assert merged.tasks_played == 9
    assert merged.answer_loss is None
    assert merged.losses.approx_kl is None
    np.testing.assert_allclose(merged.losses.policy_loss, (7 + 3) / 2)
    np.testing.assert_allclose(merged.effective_tasks, 40, rtol=1e-6)  # all equally likely
    np.testing.assert_allclose(merge_progress([calls[0][:1]], [config]).effective_tasks, 10)


def test_a_task_is_on_the_smallest_canvas_that_holds_it():
    found = canvases_of(PAIRS.eval, RULES_2X2, (1, 2))
    assert [canvas.tasks.task_ids for canvas in found] == [("task-1", "task-4"), ("task-0", "task-2", "task-3")]
    assert [canvas.places.tolist() for canvas in found] == [[1, 4], [0, 2, 3]]
    assert [canvas.rules.grid_shape for canvas in found] == [(2, 2), (1, 1)]
    assert [canvas.params.tasks.grid_shape for canvas in found] == [(2, 2), (1, 1)]
    (whole,) = canvases_of(PAIRS.eval, RULES_2X2, ())
    assert whole.tasks is PAIRS.eval
    assert whole.rules is RULES_2X2


def test_the_cheapest_sides_are_those_of_every_choice():
    draw = np.random.default_rng(0)
    for most in (1, 2, 3, 5):
        largest = draw.integers(1, 12, 30).tolist()
        cost = lambda sides, largest=largest: sum(min(s for s in sides if s >= side) ** 2 for side in largest)
        every = [
            sides
            for count in range(1, most + 1)
            for sides in itertools.combinations(sorted(set(largest)), count)
            if sides[-1] == max(largest)
        ]
        chosen = cheapest_sides(largest, most)
        assert len(chosen) <= most
        assert cost(chosen) == min(map(cost, every))


@pytest.mark.parametrize(
    ("topic", "change", "words"),
    [
        ("network", NetworkConfig("cells"), r"network.kind must be 'relational' .* got 'cells'"),
        ("cloning", CloningConfig(num_updates=1, traces="a.jsonl"), r"cloning.traces are replayed on one canvas"),
        ("task", TaskConfig(max_side=2, canvases=(2, 3)), r"must fit the canvas of the rules, 2x2, got \[2, 3\]"),
    ],
)
def test_what_does_not_go_with_canvases_is_refused(topic, change, words):
    with pytest.raises(ConfigValidationError, match=words):
        on_canvases(1, 2).replace(**{topic: change})


def test_pairs_that_are_drawn_anew_have_one_canvas():
    with pytest.raises(ConfigValidationError, match=r"task.canvases must be empty, as each episode draws pairs of"):
        canvases_of(PAIRS.train.buffer(), RULES_2X2, (1, 2))
