"""Agents loaded from run folders: they act as they did, and their weights fit another canvas or are refused."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_run import LEARNABLE, write_measured_tasks, write_small_tasks

import jaxarc
from jaxarc.agents import EditAgent, EditPolicy
from jaxarc.agents.experiment import Experiment, Report
from jaxarc.agents.predictor import AnswerPredictor, answer_shown_config
from jaxarc.agents.saved_agent import TrainedAgent, policy_shapes, require_weights_fit
from jaxarc.agents.updates import make_params, start_training
from jaxarc.config import (
    AgentConfig,
    ConfigValidationError,
    LoggingConfig,
    NetworkConfig,
    TaskConfig,
    TrainingConfig,
)
from jaxarc.datasets.training_pairs import load_pairs
from jaxarc.evaluation import EpisodeSpec
from jaxarc.nn.layers import DTYPES
from jaxarc.runs import RunFolderError
from jaxarc.runs.checkpoint import CheckpointError
from jaxarc.runs.folder import create_run_folder
from jaxarc.runs.run_state import RunState, save_run_state

RULES = LEARNABLE.with_fields(max_grid_height=5, max_grid_width=4, invalid_action_policy="noop")


def experiment_of(kind):
    return Experiment(environment=RULES, network=NetworkConfig(kind=kind), task=TaskConfig(max_side=4))


@pytest.mark.parametrize("kind", ["cells", "residual_cnn"])
def test_weights_for_the_cells_of_one_canvas_are_refused_on_another(kind):
    experiment = experiment_of(kind)
    rules = experiment.environment.with_fields(max_grid_height=6, max_grid_width=6)
    message = r"the agent of run has weights for .* canvas of 5x4, so it plays on no other; train .*kind=relational"
    with pytest.raises(CheckpointError, match=message):
        require_weights_fit(Path("run"), experiment, policy_shapes(experiment, rules))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of two fresh agents, and the policy of each."""
    tasks = write_small_tasks(tmp_path_factory.mktemp("tasks"))
    experiment = Experiment(
        environment=RULES.with_fields(max_grid_height=2, max_grid_width=2, max_episode_steps=3),
        agent=AgentConfig(num_envs=2, rollout_steps=2, num_minibatches=1),
        task=TaskConfig(str(tasks), str(write_measured_tasks(tasks)), max_side=2),
        training=TrainingConfig(seed=4, num_seeds=2),
        logging=LoggingConfig(run_root=str(tmp_path_factory.mktemp("runs"))),
    )
    params = make_params(load_pairs(experiment.task, (2, 2)).train, experiment.environment)
    keys = jax.vmap(jax.random.key)(np.array(experiment.training.seeds))
    state = start_training(keys, params, experiment.train_config, experiment.curriculum)
    folder = create_run_folder(experiment)
    folder.metrics.touch()
    reports = [Report(1, 0, 0.0, seed, evaluation_solve_rate=0.5) for seed in experiment.training.seeds]
    save_run_state(folder, experiment, RunState(state, 1, reports), Report)
    return folder, params, [jax.tree.map(lambda leaf, k=k: leaf[k], state.learner.policy) for k in range(2)]


@pytest.mark.parametrize(("seed", "index"), [(None, 0), (5, 1)])
def test_a_loaded_agent_acts_as_its_policy(trained, seed, index):
    folder, params, policies = trained
    agent = jaxarc.load_agent(str(folder.path), seed=seed)
    assert agent.config == params.config
    keys = jax.random.split(jax.random.key(0), 5)
    _, observations = jax.vmap(jaxarc.ArcEnvironment().reset, (0, None))(keys, params)
    wanted = policies[index].act(observations)
    for found in (jax.vmap(agent.act)(keys, observations), jax.vmap(agent)(keys, observations)):
        assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), found, wanted))


def test_a_loaded_agent_plays_recorded_episodes_and_draws_if_asked_to(trained):
    folder, params, _ = trained
    agent = jaxarc.load_agent(folder.path, samples=True)
    episode = jaxarc.record_episode(agent, jaxarc.ArcEnvironment(), params, jax.random.key(0))
    assert 1 <= len(episode.steps.actions) <= 3
    _, observation = jaxarc.ArcEnvironment().reset(jax.random.key(0), params)
    drawn = jax.vmap(agent.act, (0, None))(jax.random.split(jax.random.key(1), 50), observation)
    assert len(np.unique(drawn.operation)) > 1


@pytest.mark.parametrize("precision", ["bfloat16", "float16", "tensorfloat32"])
def test_an_agent_is_loaded_in_the_precision_asked_for(trained, precision):
    folder, params, _ = trained
    full, rounded = (jaxarc.load_agent(folder.path, precision=name) for name in ("float32", precision))
    assert {leaf.dtype for leaf in jax.tree.leaves(rounded)} == {jnp.dtype(DTYPES[precision])}
    keys = jax.random.split(jax.random.key(0), 5)
    _, observations = jax.vmap(jaxarc.ArcEnvironment().reset, (0, None))(keys, params)
    found, wanted = (jax.vmap(agent.act)(keys, observations) for agent in (rounded, full))
    assert (found.operation == wanted.operation).mean() >= 0.8


def test_the_rules_of_a_loaded_agent_may_be_changed(trained):
    folder, _, _ = trained
    assert jaxarc.load_agent(folder.path, max_grid_height=7, max_grid_width=7).config.grid_shape == (7, 7)
    with pytest.raises(ConfigValidationError, match="max_grid_hight"):
        jaxarc.load_agent(folder.path, max_grid_hight=7)


def test_a_folder_without_a_run_has_no_agent(tmp_path, trained):
    with pytest.raises(RunFolderError, match=r"config\.json"):
        jaxarc.load_agent(tmp_path)
    with pytest.raises(CheckpointError, match=r"no seed 9; it has 4, 5"):
        jaxarc.load_agent(trained[0].path, seed=9)


def test_an_agent_that_predicts_the_answer_acts_as_in_an_evaluation():
    hidden = RULES.with_fields(reveal_target=False, include_demonstrations=True, include_input=True)
    key_predictor, key_editor, key = jax.random.split(jax.random.key(0), 3)
    policy = EditPolicy.create(key_editor, answer_shown_config(hidden), NetworkConfig())
    predictor = AnswerPredictor(key_predictor, 8)
    env, params = jaxarc.make("procedural/gravity", hidden)
    _, observation = env.reset(key, params)
    spec = EpisodeSpec(*(jnp.int32(0) for _ in range(3)))
    evaluated = EditAgent(policy, predictor)
    wanted, _ = evaluated.act(key, observation, evaluated.start(key, spec, observation))
    found = TrainedAgent(policy, hidden, samples=False, predictor=predictor).act(key, observation)
    assert jax.tree.all(jax.tree.map(lambda a, b: bool((a == b).all()), found, wanted))
