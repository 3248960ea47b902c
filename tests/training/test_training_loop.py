"""A training run of a few updates: what it reports, writes, and keeps when it is stopped."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.agents import EditPolicy
from jaxarc.config import CurriculumConfig, JaxArcConfig, PPOConfig, TrainingConfig
from jaxarc.tasks import RawTask, TaskBuffer, TaskSet
from jaxarc.tasks.curriculum import effective_task_count
from jaxarc.training import Experiment, RunFolder, TrainingPairs, load_checkpoint, loop, read_metrics, train
from jaxarc.training.rollout import collect

PPO = PPOConfig(num_envs=8, rollout_steps=4, num_minibatches=2)
RULES = JaxArcConfig().with_fields(
    selection_format="bbox",
    max_grid_height=2,
    max_grid_width=2,
    max_episode_steps=3,
    reveal_target=True,
    include_step_count=True,
    invalid_action_policy="noop",
    start_grid="partial",
    history_enabled=False,
)
TRAINING = TrainingConfig(max_side=2, total_steps=3 * 2 * 32, updates_per_report=2, reports_per_evaluation=2)
EXPERIMENT = Experiment(RULES, PPO, TRAINING, CurriculumConfig("replay"))

pytestmark = pytest.mark.usefixtures("standard_promotion")


def tasks(*targets):
    pairs = [(np.zeros_like(target), target) for target in map(np.asarray, targets)]
    return TaskSet("small", tuple(RawTask(f"task-{i}", (pair,), (pair,)) for i, pair in enumerate(pairs)))


PAIRS = TrainingPairs(tasks([[1, 1]], [[2], [2]]), tasks([[1, 1]], [[2], [2]], [[3, 3], [3, 3]]), num_train=2)


@pytest.fixture(scope="module")
def compiled():
    """The first state, and the loop's functions compiled once for all tests of this file."""
    with jax.numpy_dtype_promotion("standard"):
        params = loop.make_params(PAIRS.learned, RULES)
        state = loop.start_training(jax.random.key(0), params, PPO, EXPERIMENT.num_updates, EXPERIMENT.curriculum)
        updates = loop.run_updates.lower(state, params, PPO, EXPERIMENT.num_updates, 2).compile()
        measure = loop.measure.lower(state.learner.policy, loop.make_params(PAIRS.measured, RULES)).compile()
    return state, params, updates, measure


@pytest.fixture
def quick(compiled, monkeypatch):
    """Let ``train`` find its functions compiled."""

    class Ready:
        def __init__(self, function):
            self.function = function

        def lower(self, *_):
            return self

        def compile(self):
            return self.function

    monkeypatch.setattr(loop, "run_updates", Ready(compiled[2]))
    monkeypatch.setattr(loop, "measure", Ready(compiled[3]))
    monkeypatch.setattr(loop, "start_training", lambda *_: compiled[0])


@pytest.mark.usefixtures("quick")
def test_a_run_measures_before_and_after_and_reports_between(tmp_path):
    folder, seen = RunFolder(tmp_path), []
    outcome = train(EXPERIMENT, PAIRS, folder, seen.append)
    assert outcome.reports == seen == read_metrics(folder.metrics)
    assert [report.update for report in seen] == [0, 2, 4, 6]
    assert [report.environment_steps for report in seen] == [0, 64, 128, 192]
    assert [report.evaluation_solve_rate is not None for report in seen] == [True, False, True, True]
    assert all(report.steps_per_second and report.episodes for report in seen[1:])
    assert not outcome.interrupted
    check_tasks(folder, outcome)
    loaded = load_checkpoint(folder.checkpoint, outcome.state)
    assert all(map(np.array_equal, jax.tree.leaves(loaded), jax.tree.leaves(outcome.state)))


def check_tasks(folder, outcome):
    """The table, the reports and the state tell the same of the tasks."""
    rows = [json.loads(line) for line in folder.tasks.read_text().splitlines()]
    assert [row["task_id"] for row in rows] == ["task-0", "task-1"]
    assert sum(row["attempts"] for row in rows) == sum(report.episodes for report in outcome.reports)
    solves = [round(report.episode_solve_rate * report.episodes) for report in outcome.reports if report.episodes]
    assert sum(row["solves"] for row in rows) == sum(solves)
    for row in rows:
        assert row["success_rate"] == row["solves"] / row["attempts"]
    weights = [row["weight"] for row in rows]
    assert sum(weights) == pytest.approx(1)
    assert outcome.state.curriculum.statistics.clock == EXPERIMENT.num_updates
    assert outcome.state.curriculum.statistics.attempts.tolist() == [row["attempts"] for row in rows]
    assert outcome.reports[-1].tasks_played == 2
    assert outcome.reports[-1].effective_tasks == pytest.approx(float(effective_task_count(jnp.array(weights))))


@pytest.mark.usefixtures("quick")
def test_equal_experiments_learn_the_same_bit_for_bit():
    first, second = (train(EXPERIMENT, PAIRS).state for _ in range(2))
    assert all(map(np.array_equal, jax.tree.leaves(first), jax.tree.leaves(second)))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("way", ["exception", "wish"])
def test_an_interrupted_run_keeps_what_was_learned_and_measures_it(tmp_path, compiled, way):
    folder, seen = RunFolder(tmp_path), []

    def note(report):
        seen.append(report)
        if way == "exception" and len(seen) == 2:
            raise KeyboardInterrupt

    outcome = train(EXPERIMENT, PAIRS, folder, note, lambda: way == "wish" and len(seen) == 2)
    assert outcome.interrupted
    assert [report.update for report in outcome.reports] == [0, 2, 2]
    assert outcome.reports[-1].evaluation_solve_rate is not None
    expected, _ = compiled[2](compiled[0], compiled[1])
    loaded = load_checkpoint(folder.checkpoint, compiled[0])
    assert all(map(np.array_equal, jax.tree.leaves(loaded), jax.tree.leaves(expected)))
    assert not np.array_equal(loaded.learner.policy.network.positions, compiled[0].learner.policy.network.positions)


@pytest.mark.usefixtures("quick")
def test_a_loss_that_is_not_finite_stops_the_run_and_keeps_the_last_good_state(tmp_path, compiled, monkeypatch):
    calls = []

    class Broken:
        def lower(self, *_):
            return self

        def compile(self):
            return self

        def __call__(self, state, params):
            state, progress = compiled[2](state, params)
            calls.append(state)
            losses = progress.losses._replace(value_loss=jnp.float32(np.nan))
            return state, progress if len(calls) == 1 else progress._replace(losses=losses)

    monkeypatch.setattr(loop, "run_updates", Broken())
    folder = RunFolder(tmp_path)
    with pytest.raises(loop.TrainingDivergedError, match=r"not finite between updates 2 and 4: .*'value_loss': nan"):
        train(EXPERIMENT, PAIRS, folder)
    loaded = load_checkpoint(folder.checkpoint, compiled[0])
    assert all(map(np.array_equal, jax.tree.leaves(loaded), jax.tree.leaves(calls[0])))


def test_a_call_returns_what_it_takes_so_that_nothing_compiles_twice(compiled):
    state, params, _, _ = compiled
    after, _ = jax.eval_shape(lambda s: loop.run_updates(s, params, PPO, EXPERIMENT.num_updates, 2), state)
    describe = lambda x: (x.shape, x.dtype, x.weak_type)
    assert jax.tree.map(describe, after) == jax.tree.map(describe, state)


def test_a_rollout_values_the_final_observation_where_an_episode_is_cut_off(compiled):
    state, params, _, _ = compiled
    policy: EditPolicy = state.learner.policy
    env = loop._ENV
    _, trajectories, played, counts = jax.jit(lambda p, s, k: collect(p, env, params, s, k, 12))(
        policy, state.env_states, jax.random.key(1)
    )
    truncated, terminated = np.asarray(trajectories.truncated), np.asarray(trajectories.terminated)
    assert truncated.any()
    assert terminated.any()
    assert not (truncated & terminated).any()
    assert counts.ended == (truncated | terminated).sum() == played.ended.sum()
    assert counts.solved == (played.ended & played.solved).sum()
    shown = np.asarray(trajectories.observation["target_grid"])[..., 0, 0]
    np.testing.assert_array_equal(played.task_index, shown - 1)  # task 0 paints with color 1, task 1 with color 2
    # A final observation shows the last step of the limit, which no observation that is acted on ever does.
    assert np.asarray(trajectories.observation["step_count"]).max() == RULES.environment.max_episode_steps - 1
    step, env_index = (int(places[0]) for places in np.nonzero(truncated))
    before = jax.tree.map(lambda x: x[step, env_index][None], trajectories.observation)
    edit = jax.tree.map(lambda x: x[step, env_index][None], trajectories.edit)
    final = replay(before, policy.to_action(edit))
    np.testing.assert_allclose(trajectories.final_value[step, env_index], policy.value(final)[0], rtol=1e-4, atol=1e-5)


def test_the_symmetries_that_episodes_draw_from_are_packed():
    packed = loop.make_params(PAIRS.learned, RULES.with_fields(symmetries="all")).tasks
    assert isinstance(packed, TaskBuffer)
    assert packed.num_symmetries == 8


def test_the_curriculum_decides_which_tasks_are_played(compiled):
    """Weights are read in every update of a call, and the scores are not the success rates'."""
    state, params, updates, _ = compiled
    only_second = dataclasses.replace(state.curriculum, base_weights=jnp.array([0.0, 1.0]))
    after, progress = updates(dataclasses.replace(state, curriculum=only_second), params)
    after, _ = updates(after, params)
    running = np.asarray(state.env_states.env_state.task_index)
    statistics = after.curriculum.statistics
    assert statistics.attempts[0] == (running == 0).sum()  # those that had begun
    assert statistics.attempts[1] > PPO.num_envs
    assert np.all(np.asarray(after.env_states.env_state.task_index) == 1)
    assert progress.effective_tasks == pytest.approx(1)
    assert not np.allclose(statistics.score, statistics.success_rate * (1 - statistics.success_rate))


def replay(observation, action):
    """The observation after a fill, a resize or nothing, in plain NumPy."""
    grid = np.array(observation["working_grid"][0])
    operation, r1, c1, r2, c2 = (int(x[0]) for x in (action.operation, action.r1, action.c1, action.r2, action.c2))
    rows, columns = np.indices(grid.shape)
    if operation < 10:
        inside = (rows >= min(r1, r2)) & (rows <= max(r1, r2)) & (columns >= min(c1, c2)) & (columns <= max(c1, c2))
        grid = np.where(inside & (grid >= 0), operation, grid)
    else:
        grid = np.where((rows <= r2) & (columns <= c2), np.maximum(grid, 0), -1)
    return {
        **observation,
        "working_grid": jnp.asarray(grid, jnp.int8)[None],
        "step_count": observation["step_count"] + 1,
    }
