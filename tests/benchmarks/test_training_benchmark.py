import json
from types import SimpleNamespace

import jax
import pytest

from jaxarc.agents.updates import make_params, start_seed
from jaxarc.benchmarks import Budget, measure_rows, suite, training_rows
from jaxarc.benchmarks.training import with_environments
from jaxarc.benchmarks.training_parts import Replay, Speeds, record
from jaxarc.cli.main import main
from jaxarc.cli.settings import read_experiment
from jaxarc.config import ConfigValidationError
from jaxarc.datasets.training_pairs import load_pairs
from jaxarc.envs import ArcEnvironment
from jaxarc.wrappers import AutoReset

ENV = AutoReset(ArcEnvironment())
NUM_ENVS, NUM_STEPS = 4, 3


@pytest.fixture(scope="module")
def experiment():
    whole = read_experiment(["experiment=ladder_l1", "environment.max_episode_steps=2", "agent.rollout_steps=2"])
    return with_environments(whole, NUM_ENVS)


@pytest.fixture(scope="module")
def played(experiment):
    """Params, a policy and recordings of environments that it plays."""
    params = make_params(load_pairs(experiment.task, (5, 5)).train, experiment.environment)
    state = jax.jit(lambda key: start_seed(key, params, experiment.train_config, experiment.curriculum))(
        jax.random.key(0)
    )
    policy, states = state.learner.policy, state.env_states.env_state
    tape = jax.jit(lambda states: record(policy, ENV, params, states, jax.random.key(1), NUM_STEPS))
    return params, policy, tape(states)


def test_every_row_of_a_training_is_measured_and_the_shares_sum_to_one(experiment):
    rows = training_rows({"tiny": experiment}, [NUM_ENVS])
    with jax.numpy_dtype_promotion("standard"):  # optax
        results = {result.row.row_id: result for result in measure_rows(rows, Budget(1, 0.0, 1), lambda *_: None)}
    value = lambda name: results[f"{name}-tiny-{NUM_ENVS}"].value
    assert len(results) == 8
    assert all(value(name) > 0 for name in ("learning", "playing", "stepping", "bound", "of-bound"))
    assert sum(value(f"share-{name}") for name in ("envs", "policy", "update")) == pytest.approx(100)
    assert value("of-bound") == pytest.approx(100 * value("learning") / value("bound"))
    assert "5x5, 4 environments x 2 steps, 1 x 1 minibatches, relational" in results["learning-tiny-4"].row.what


def test_shares_follow_from_the_times_of_the_parts():
    speeds = Speeds(environment=100.0, playing=25.0, learning=10.0, bound=12.0)
    assert speeds.environment_share == pytest.approx(0.1)
    assert speeds.policy_share == pytest.approx(0.3)
    assert speeds.update_share == pytest.approx(0.6)


def test_more_environments_keep_the_size_of_a_minibatch():
    whole = read_experiment(["experiment=ladder_l2"])
    assert with_environments(whole, 1024).agent.num_minibatches == 4 * whole.agent.num_minibatches
    assert with_environments(whole, 2).agent.num_minibatches == 1
    with pytest.raises(ConfigValidationError, match="num_minibatches"):
        with_environments(whole, 129)


def test_a_replay_has_the_types_of_the_real_environment(played):
    params, _, recordings = played
    replay = Replay(ENV, recordings)
    action = ENV.action_space(params).sample(jax.random.key(0))
    told = []
    for env in (ENV, replay):
        state, shown = jax.eval_shape(env.reset, jax.random.key(0), params)
        _, *step = jax.eval_shape(env.step, state, action, params)
        told.append((shown, step, jax.eval_shape(env.observe, state, params), jax.eval_shape(env.info, state, params)))
    assert jax.tree.structure(told[0]) == jax.tree.structure(told[1])
    same = jax.tree.map(lambda real, copy: (real.shape, real.dtype) == (copy.shape, copy.dtype), *told)
    assert all(jax.tree.leaves(same))


def test_a_replay_repeats_what_happened_whatever_the_action(played):
    params, _, recordings = played
    replay = Replay(ENV, recordings)
    assert bool(recordings.outcomes.done.any())  # episodes have two steps
    states, _ = jax.vmap(replay.reset, (0, None))(jax.random.split(jax.random.key(2), NUM_ENVS), params)
    actions = jax.vmap(ENV.action_space(params).sample)(jax.random.split(jax.random.key(3), NUM_ENVS))
    expected = states.outcomes
    for step in range(NUM_STEPS + 1):
        states, shown, reward, done, info = jax.vmap(replay.step, (0, 0, None))(states, actions, params)
        assert (reward == expected.reward[:, step % NUM_STEPS]).all()
        assert (done == expected.done[:, step % NUM_STEPS]).all()
        assert (info["task_index"] == expected.info["task_index"][:, step % NUM_STEPS]).all()
        assert (info["final_observation"]["working_grid"] == shown["working_grid"]).all()
    again, _ = replay.reset_next(states, params)
    assert (again.position == 0).all()


def test_the_command_writes_its_rows(tmp_path, monkeypatch):
    speeds = SimpleNamespace(sample=lambda _: Speeds(90.0, 30.0, 10.0, 11.0))
    monkeypatch.setattr(suite, "TrainingParts", SimpleNamespace(of=lambda _: speeds))
    path = tmp_path / "training.json"
    with pytest.raises(SystemExit) as exit_info:
        main(["benchmark", "training", "--quick", "--sizes", "256,1024", "--output", str(path)])
    assert exit_info.value.code == 0
    rows = {row["id"]: row for row in json.loads(path.read_text())["rows"]}
    assert len(rows) == 2 * 2 * 8
    assert rows["learning-ladder_l2-1024"]["value"] == 10.0
    assert rows["of-bound-ladder_l1-256"]["value"] == pytest.approx(1000 / 11)
    assert "30x30, 1,024 environments" in rows["learning-ladder_l2-1024"]["what"]
