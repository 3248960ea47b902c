import json
from types import SimpleNamespace

import jax
import pytest
from run_command import run_command

from jaxarc.benchmarks import suite
from jaxarc.benchmarks.measure import measure_rows
from jaxarc.benchmarks.suite import Budget
from jaxarc.benchmarks.training import training_rows, with_environments
from jaxarc.benchmarks.training_parts import Speeds
from jaxarc.cli.settings import read_experiment
from jaxarc.config import ConfigValidationError
from jaxarc.envs import ArcEnvironment
from jaxarc.wrappers import AutoReset

ENV = AutoReset(ArcEnvironment())
NUM_ENVS, NUM_STEPS = 4, 3


@pytest.fixture(scope="module")
def experiment():
    whole = read_experiment(["experiment=ladder_l1", "environment.max_episode_steps=2", "agent.rollout_steps=2"])
    return with_environments(whole, NUM_ENVS)


def test_every_row_of_a_training_is_measured_and_the_shares_sum_to_one(experiment):
    rows = training_rows({"tiny": experiment}, [NUM_ENVS])
    with jax.numpy_dtype_promotion("standard"):  # optax
        results = {result.row.row_id: result for result in measure_rows(rows, Budget(1, 0.0, 1), lambda *_: None)}
    value = lambda name: results[f"{name}-tiny-{NUM_ENVS}"].value
    assert len(results) == 6
    assert all(value(name) > 0 for name in ("learning", "playing", "stepping"))
    assert sum(value(f"share-{name}") for name in ("envs", "policy", "update")) == pytest.approx(100)
    assert "5x5, 4 environments x 2 steps, 1 x 1 minibatches, relational" in results["learning-tiny-4"].row.what


def test_shares_follow_from_the_times_of_the_parts():
    speeds = Speeds(environment=100.0, playing=25.0, learning=10.0)
    assert speeds.environment_share == pytest.approx(0.1)
    assert speeds.policy_share == pytest.approx(0.3)
    assert speeds.update_share == pytest.approx(0.6)


def test_more_environments_keep_the_size_of_a_minibatch():
    whole = read_experiment(["experiment=ladder_l2"])
    assert with_environments(whole, 1024).agent.num_minibatches == 4 * whole.agent.num_minibatches
    assert with_environments(whole, 2).agent.num_minibatches == 1
    with pytest.raises(ConfigValidationError, match="num_minibatches"):
        with_environments(whole, 129)


def test_the_command_writes_its_rows(tmp_path, monkeypatch):
    speeds = SimpleNamespace(sample=lambda _: Speeds(90.0, 30.0, 10.0))
    monkeypatch.setattr(suite, "TrainingParts", SimpleNamespace(of=lambda _: speeds))
    path = tmp_path / "training.json"
    assert run_command("benchmark", "training", "--quick", "--sizes", "256,1024", "--output", path).exit_code == 0
    rows = {row["id"]: row for row in json.loads(path.read_text())["rows"]}
    assert len(rows) == 3 * 2 * 6
    assert rows["learning-ladder_l2-1024"]["value"] == 10.0
    assert "30x30, 1,024 environments" in rows["learning-ladder_l2-1024"]["what"]
    assert "canvases 10, 20, 30" in rows["learning-ladder_l2-1024"]["what"]
    assert "canvases" not in rows["learning-ladder_l2-one-canvas-1024"]["what"]
