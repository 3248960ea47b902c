"""A training run of a few updates: what it reports, writes, and keeps when it is stopped, and how it goes on."""

import dataclasses
import json
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_run import RULES_2X2, Ready, painted, same, without_clocks

from jaxarc.agents import EditPolicy, Experiment, read_metrics, updates
from jaxarc.agents import train as agent_training
from jaxarc.agents.ppo import collect
from jaxarc.agents.train import train
from jaxarc.config import (
    AgentConfig,
    CheckpointConfig,
    CurriculumConfig,
    ScheduleConfig,
    TaskConfig,
    TrainingConfig,
)
from jaxarc.datasets.training_pairs import TrainingPairs
from jaxarc.prng import keys_of_seeds
from jaxarc.runs import (
    CheckpointError,
    DamagedCheckpointWarning,
    IncompatibleRunError,
    RunFolder,
    RunFolderError,
    load_checkpoint,
    loop,
)
from jaxarc.tasks.curriculum import effective_task_count

AGENT = AgentConfig(num_envs=8, rollout_steps=4, num_minibatches=2)
RULES = RULES_2X2.with_fields(start_grid="partial")
TRAINING = TrainingConfig(seed=5, num_seeds=2, total_steps=3 * 2 * 32, updates_per_report=2, reports_per_evaluation=2)
EXPERIMENT = Experiment(
    RULES, AGENT, task=TaskConfig(max_side=2), training=TRAINING, curriculum=CurriculumConfig("replay")
)
OFTEN = EXPERIMENT.replace(checkpoint=CheckpointConfig(min_seconds=0.0, keep_last=9))
SEEDS = [5, 6]

pytestmark = pytest.mark.usefixtures("standard_promotion")


PAIRS = TrainingPairs(painted([[1, 1]], [[2], [2]]), painted([[1, 1]], [[2], [2]], [[3, 3], [3, 3]]), num_train=2)


@pytest.fixture(scope="module")
def compiled():
    """The first state, and the loop's functions compiled once for all tests of this file."""
    with jax.numpy_dtype_promotion("standard"):
        params = updates.make_params(PAIRS.train, RULES)
        keys = keys_of_seeds(SEEDS)
        state = updates.start_training(keys, params, EXPERIMENT.train_config, EXPERIMENT.curriculum)
        run_updates = updates.run_updates.lower(state, params, EXPERIMENT.train_config, 2).compile()
        measured = updates.make_params(PAIRS.eval, RULES)
        measure = updates.measure.lower(state.players, measured).compile()
    return state, params, run_updates, measure


@pytest.fixture
def quick(compiled, monkeypatch):
    """Let ``train`` find its functions compiled."""
    monkeypatch.setattr(agent_training, "run_updates", Ready(compiled[2]))
    monkeypatch.setattr(agent_training, "measure", Ready(compiled[3]))
    monkeypatch.setattr(agent_training, "start_training", Ready(lambda *_: compiled[0], updates.start_training))


@pytest.mark.usefixtures("quick")
def test_a_run_measures_before_and_after_and_reports_each_seed_between(tmp_path):
    folder, seen = RunFolder(tmp_path), []
    outcome = train(EXPERIMENT, PAIRS, folder, seen.append)
    assert outcome.reports == seen == read_metrics(folder.metrics)
    assert [report.seed for report in seen] == SEEDS * 4
    mine = seen[1::2]
    assert [report.update for report in mine] == [0, 2, 4, 6]
    assert [report.environment_steps for report in mine] == [0, 64, 128, 192]
    assert [report.evaluation_solve_rate is not None for report in mine] == [True, False, True, True]
    assert all(report.steps_per_second and report.episodes for report in mine[1:])
    assert seen[2].entropy != seen[3].entropy
    assert not outcome.interrupted
    check_tasks(folder, outcome)
    assert folder.checkpoints.updates() == [6]
    assert same(load_checkpoint(folder.checkpoints.at(6), outcome.state), outcome.state)


@pytest.mark.usefixtures("quick")
def test_the_first_state_is_reported_while_an_update_is_compiled(compiled, monkeypatch):
    is_reported = threading.Event()

    class CompiledLate(Ready):
        def compile(self, _=None):
            assert is_reported.wait(timeout=60)
            return self.program

    monkeypatch.setattr(agent_training, "run_updates", CompiledLate(compiled[2]))
    outcome = train(EXPERIMENT, PAIRS, on_report=lambda _: is_reported.set())
    assert outcome.reports[0].update == 0
    assert outcome.reports[0].seconds < outcome.compile_seconds


@pytest.mark.usefixtures("quick")
def test_a_run_whose_state_is_donated_learns_the_same_bit_for_bit(compiled, monkeypatch):
    expected = train(EXPERIMENT, PAIRS)
    state, params, *_ = compiled
    in_place = agent_training.run_updates_in_place.lower(state, params, EXPERIMENT.train_config, 2).compile()
    start = jax.tree.map(jnp.copy, state)
    monkeypatch.setattr(agent_training, "run_updates_in_place", Ready(in_place))
    monkeypatch.setattr(agent_training, "start_training", Ready(lambda *_: start, updates.start_training))
    monkeypatch.setattr(agent_training, "compiles_for_cpu", lambda: False)
    found = train(EXPERIMENT, PAIRS)
    assert all(leaf.is_deleted() for leaf in jax.tree.leaves(start))
    assert without_clocks(found.reports) == without_clocks(expected.reports)
    assert same(found.state, expected.state)


def check_tasks(folder, outcome):
    """The table, the reports and the state tell the same of the tasks."""
    rows = [json.loads(line) for line in folder.tasks.read_text().splitlines()]
    assert [(row["seed"], row["task_id"]) for row in rows] == [(s, t) for s in SEEDS for t in ("task-0", "task-1")]
    assert outcome.state.curriculum.statistics.attempts.ravel().tolist() == [row["attempts"] for row in rows]
    assert outcome.state.curriculum.statistics.clock.tolist() == [EXPERIMENT.num_updates] * 2
    rows = [row for row in rows if row["seed"] == SEEDS[1]]
    reports = [report for report in outcome.reports if report.seed == SEEDS[1]]
    assert sum(row["attempts"] for row in rows) == sum(report.episodes for report in reports)
    solves = [round(report.episode_solve_rate * report.episodes) for report in reports if report.episodes]
    assert sum(row["solves"] for row in rows) == sum(solves)
    for row in rows:
        assert row["success_rate"] == row["solves"] / row["attempts"]
    weights = [row["weight"] for row in rows]
    assert sum(weights) == pytest.approx(1)
    assert reports[-1].tasks_played == 2
    assert reports[-1].effective_tasks == pytest.approx(float(effective_task_count(jnp.array(weights))))


@pytest.mark.usefixtures("quick")
def test_the_table_of_measured_pairs_is_there_before_the_last_checkpoint(tmp_path, monkeypatch):
    folder, tables = folder_in(tmp_path, "killed"), []
    save = loop.save_run_state

    def note_and_save(folder, experiment, run_state, kind):
        tables.append((run_state.updates, folder.measured.exists()))
        save(folder, experiment, run_state, kind)

    monkeypatch.setattr(loop, "save_run_state", note_and_save)
    train(EXPERIMENT, PAIRS, folder)
    assert tables[-1] == (EXPERIMENT.num_updates, True)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("way", ["exception", "wish"])
def test_an_interrupted_run_keeps_what_was_learned_and_measures_it(tmp_path, compiled, way):
    folder, seen = RunFolder(tmp_path), []

    def note(report):
        seen.append(report)
        if way == "exception" and len(seen) == 4:
            raise KeyboardInterrupt

    outcome = train(EXPERIMENT, PAIRS, folder, note, lambda: way == "wish" and len(seen) == 4)
    assert outcome.interrupted
    assert [report.update for report in outcome.reports] == [0, 0, 2, 2, 2, 2]
    assert outcome.reports[-1].evaluation_solve_rate is not None
    expected, _ = compiled[2](compiled[0], compiled[1])
    loaded = load_checkpoint(folder.checkpoints.at(2), compiled[0])
    assert same(loaded, expected)
    assert not same(loaded.learner.policy, compiled[0].learner.policy)


@pytest.mark.usefixtures("quick")
def test_a_run_that_was_stopped_goes_on_as_if_it_had_not_been(tmp_path):
    whole = train(EXPERIMENT, PAIRS, folder_in(tmp_path, "whole"))
    folder, seen = folder_in(tmp_path, "stopped"), []
    train(EXPERIMENT, PAIRS, folder, seen.append, lambda: len(seen) == 4)
    assert len(read_metrics(folder.metrics)) == 6  # with the measurement at the end
    outcome = train(EXPERIMENT, PAIRS, folder, resume=True)
    assert not outcome.interrupted
    assert same(outcome.state, whole.state)
    assert without_clocks(outcome.reports) == without_clocks(whole.reports)
    assert outcome.reports == read_metrics(folder.metrics)
    assert folder.tasks.read_bytes() == folder_in(tmp_path, "whole").tasks.read_bytes()


@pytest.mark.usefixtures("quick")
def test_without_a_checkpoint_a_run_begins_again(tmp_path):
    whole = train(EXPERIMENT, PAIRS)
    folder = RunFolder(tmp_path)
    folder.metrics.write_text('{"update": 0, "environ')  # killed amid its first line
    outcome = train(EXPERIMENT, PAIRS, folder, resume=True)
    assert same(outcome.state, whole.state)
    assert without_clocks(read_metrics(folder.metrics)) == without_clocks(whole.reports)


@pytest.mark.usefixtures("quick")
def test_a_run_is_saved_after_each_report_if_wished_and_goes_on_past_a_damaged_checkpoint(tmp_path):
    folder = RunFolder(tmp_path)
    whole = train(OFTEN, PAIRS, folder)
    assert folder.checkpoints.updates() == [2, 4, 6]
    (folder.checkpoints.at(6) / "record.json").write_text("{")
    with pytest.warns(DamagedCheckpointWarning, match="6 is damaged"):
        outcome = train(OFTEN, PAIRS, folder, resume=True)
    assert folder.checkpoints.updates() == [2, 4, 6]
    assert same(outcome.state, whole.state)
    for update in folder.checkpoints.updates():
        (folder.checkpoints.at(update) / "record.json").write_text("{")
    with pytest.warns(DamagedCheckpointWarning), pytest.raises(CheckpointError, match="every checkpoint"):
        train(OFTEN, PAIRS, folder, resume=True)


def test_a_finished_run_has_nothing_to_learn_and_compiles_nothing(tmp_path, quick, monkeypatch):
    folder = RunFolder(tmp_path)
    whole = train(EXPERIMENT, PAIRS, folder)
    monkeypatch.setattr(agent_training, "run_updates", None)
    outcome = train(EXPERIMENT, PAIRS, folder, resume=True)
    assert same(outcome.state, whole.state)
    assert outcome.reports == whole.reports


@pytest.mark.usefixtures("quick")
def test_a_run_that_is_out_of_time_goes_on_when_it_gets_more(tmp_path):
    folder, seen = RunFolder(tmp_path), []
    short = EXPERIMENT.replace(training=TRAINING.replace(max_seconds=0.0))
    assert train(short, PAIRS, folder, seen.append).reports[-1].update == 0
    assert [report.update for report in train(EXPERIMENT, PAIRS, folder, resume=True).reports[::2]] == [0, 2, 4, 6]


@pytest.mark.usefixtures("quick")
def test_a_run_ends_when_every_seed_solves_its_share_and_does_so_again_when_it_goes_on(tmp_path, monkeypatch):
    rates = {0: (0.0, 0.0), 2: (1.0, 0.75), 4: (1.0, 1.0), 6: (1.0, 1.0)}  # of the two seeds, by update
    learned = TRAINING.replace(stop_at_solve_rate=0.9, reports_per_evaluation=1)
    evaluate = agent_training.AgentTraining.evaluate

    def pretend(self, state):
        found = evaluate(self, state)
        update = int(state.learner.num_updates[0])
        return [mine | dict.fromkeys(mine, rate) for mine, rate in zip(found, rates[update], strict=True)]

    monkeypatch.setattr(agent_training.AgentTraining, "evaluate", pretend)
    folder, seen = RunFolder(tmp_path), []
    train(EXPERIMENT.replace(training=learned), PAIRS, folder, seen.append, lambda: len(seen) == 4)
    outcome = train(EXPERIMENT.replace(training=learned), PAIRS, folder, resume=True)
    assert [report.update for report in outcome.reports] == [0, 0, 2, 2, 4, 4]
    assert not outcome.interrupted
    assert folder.checkpoints.updates()[-1] == 4
    assert train(EXPERIMENT.replace(training=learned), PAIRS, folder, resume=True).reports == outcome.reports
    more = learned.replace(stop_at_solve_rate=None)
    assert train(EXPERIMENT.replace(training=more), PAIRS, folder, resume=True).reports[-1].update == 6


@pytest.mark.usefixtures("quick")
def test_a_folder_is_of_one_run_of_one_config_in_one_process(tmp_path):
    folder, seen = RunFolder(tmp_path), []
    train(EXPERIMENT, PAIRS, folder, seen.append, lambda: len(seen) == 4)
    with pytest.raises(RunFolderError, match="holds a run already"):
        train(EXPERIMENT, PAIRS, folder)
    other = EXPERIMENT.replace(schedule=ScheduleConfig(learning_rate=1e-3))
    with pytest.raises(IncompatibleRunError, match=r"schedule\.learning_rate.*0\.004.*0\.001"):
        train(other, PAIRS, folder, resume=True)
    with folder.lock(), pytest.raises(RunFolderError, match="another process is training in"):
        train(EXPERIMENT, PAIRS, folder, resume=True)


@pytest.mark.parametrize(("choices", "saved"), [(EXPERIMENT, []), (OFTEN, [2])])
@pytest.mark.usefixtures("quick")
def test_a_run_that_a_later_start_of_its_job_takes_over_stops_and_writes_nothing_more(
    choices, saved, tmp_path, monkeypatch
):
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    folder, seen = RunFolder(tmp_path), []

    def note_until_the_job_starts_again(report):
        seen.append(report)
        if report.update == 4:
            with monkeypatch.context() as later:
                later.setenv("SLURM_RESTART_COUNT", "1")
                folder.claim()

    with pytest.raises(RunFolderError, match="another process goes on with"):
        train(choices, PAIRS, folder, note_until_the_job_starts_again)
    assert [report.update for report in read_metrics(folder.metrics)[::2]] == [0, 2, 4]
    assert folder.checkpoints.updates() == saved
    assert not folder.tasks.exists()
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    outcome = train(choices, PAIRS, folder, resume=True)
    alone = train(EXPERIMENT, PAIRS)
    assert without_clocks(read_metrics(folder.metrics)) == without_clocks(alone.reports)
    assert same(outcome.state, alone.state)


@pytest.mark.usefixtures("quick")
def test_metrics_that_are_gone_are_missed(tmp_path):
    folder, seen = RunFolder(tmp_path), []
    train(EXPERIMENT, PAIRS, folder, seen.append, lambda: len(seen) == 4)
    folder.metrics.unlink()
    with pytest.raises(RunFolderError, match=r"0 lines.*4"):
        train(EXPERIMENT, PAIRS, folder, resume=True)
    folder.metrics.write_text("{\n" * 4)
    with pytest.raises(RunFolderError, match="line 1"):
        train(EXPERIMENT, PAIRS, folder, resume=True)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("name", ["value_loss", "gradient_norm"])
def test_a_loss_or_gradient_that_is_not_finite_stops_the_run_and_keeps_the_last_good_state(
    tmp_path, compiled, monkeypatch, name
):
    calls = []

    def broken(state, params):
        state, progress = compiled[2](state, params)
        calls.append(state)
        losses = progress.losses._replace(**{name: jnp.array([0.0, np.nan], jnp.float32)})
        return state, progress if len(calls) == 1 else progress._replace(losses=losses)

    monkeypatch.setattr(agent_training, "run_updates", Ready(broken))
    monkeypatch.setattr(agent_training, "program_memory", lambda program: None)
    folder = RunFolder(tmp_path)
    with pytest.raises(loop.TrainingDivergedError) as error:
        train(EXPERIMENT, PAIRS, folder)
    for words in (
        "seed 6 is not finite between updates 2 and 4",
        f"'{name}': nan",
        f"the last good checkpoint is {folder.checkpoints.at(2)}, the config {folder.config}",
    ):
        assert words in str(error.value)
    assert same(load_checkpoint(folder.checkpoints.at(2), compiled[0]), calls[0])


def test_a_rollout_values_the_final_observation_where_an_episode_is_cut_off(compiled):
    states, params, _, _ = compiled
    state = jax.tree.map(lambda x: x[0], states)
    policy: EditPolicy = state.learner.policy
    env = updates.environment_of(params, AGENT)
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
    edit = jax.tree.map(lambda x: x[step, env_index][None], trajectories.choice)
    final = replay(before, policy.to_action(edit))
    np.testing.assert_allclose(trajectories.final_value[step, env_index], policy.value(final)[0], rtol=1e-4, atol=1e-5)


def test_the_curriculum_decides_which_tasks_are_played(compiled):
    """Weights are read in every update of a call, and the scores are not the success rates'."""
    state, params, run_updates, _ = compiled
    only_second = dataclasses.replace(state.curriculum, base_weights=jnp.array([[0.0, 1.0]] * 2))
    after, progress = run_updates(dataclasses.replace(state, curriculum=only_second), params)
    after, _ = run_updates(after, params)
    running = np.asarray(state.env_states.env_state.task_index)
    statistics = after.curriculum.statistics
    assert statistics.attempts[:, 0].tolist() == (running == 0).sum(axis=1).tolist()  # those that had begun
    assert statistics.attempts[:, 1].min() > AGENT.num_envs
    assert np.all(np.asarray(after.env_states.env_state.task_index) == 1)
    assert progress.effective_tasks == pytest.approx([1, 1])
    assert not np.allclose(statistics.score, statistics.success_rate * (1 - statistics.success_rate))


def folder_in(root, name):
    (root / name).mkdir(exist_ok=True)
    return RunFolder(root / name)


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
