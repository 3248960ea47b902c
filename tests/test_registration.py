"""What `jaxarc.make` makes of the names of datasets, tasks, presets and choices."""

import jax
import numpy as np
import pytest

import jaxarc
from jaxarc.cli.settings import read_experiment
from jaxarc.config import EpisodeConfig
from jaxarc.config.choices import EXPERIMENT, Preset, choices_of, editing_presets, read_preset
from jaxarc.datasets.training_pairs import load_pairs
from jaxarc.tasks import task_id_of
from jaxarc.wrappers import FlatActions


@pytest.mark.parametrize("name", ["007bbfb7", "arc-agi-1/training/007bbfb7"])
def test_a_task_is_made_by_its_id(name):
    _, params = jaxarc.make(name, max_grid_height=9, max_grid_width=9)
    assert [task_id_of(index) for index in params.tasks.registry_index.tolist()] == ["007bbfb7"]


@pytest.mark.parametrize("name", ["small_grids", "ladder_l1"])
def test_a_preset_has_the_rules_and_the_training_tasks_of_its_run(name):
    experiment = read_experiment([f"{EXPERIMENT}={name}"])
    env, params = jaxarc.make(name)
    assert params.config == experiment.environment
    assert isinstance(env, jaxarc.ArcEnvironment)
    trained = load_pairs(experiment.task, params.config.grid_shape).train_ids
    assert tuple(task_id_of(index) for index in params.tasks.registry_index.tolist()) == trained
    _, shorter = jaxarc.make(name, max_episode_steps=7)
    assert shorter.config == experiment.environment.with_fields(max_episode_steps=7)


def test_the_evaluation_of_a_preset_has_its_unseen_pairs_as_they_are_measured():
    experiment = read_experiment([f"{EXPERIMENT}=small_grids"])
    pairs = load_pairs(experiment.task, experiment.environment.grid_shape)
    _, params = jaxarc.make("small_grids/evaluation")
    assert params.tasks.num_tasks == pairs.num_evaluation
    assert params.config.episode.start_grid == "input"
    assert not params.config.augmentation.is_active
    assert params.config.reward == experiment.environment.reward


def test_every_preset_is_read_as_a_run_reads_it():
    for name in choices_of(EXPERIMENT):
        experiment = read_experiment([f"{EXPERIMENT}={name}"])
        preset = read_preset(name)
        assert preset == Preset(experiment.environment, experiment.task, experiment.answer)
        if experiment.game.name:  # a game is no task: jaxarc.games.make has it
            continue
        assert jaxarc.make(name)[1].config == experiment.environment


def test_a_topic_is_chosen_by_the_name_of_a_file():
    _, params = jaxarc.make("007bbfb7", reward="editing", action="boxes", step_penalty=-0.5)
    assert (params.config.reward.similarity_weight, params.config.reward.step_penalty) == (3, -0.5)
    assert params.config.action.selection_format == "bbox"


def test_the_starter_shows_the_answer_and_takes_flat_actions():
    env, params = jaxarc.make("starter")
    assert isinstance(env, FlatActions)
    assert env.action_space(params).n == 45
    assert env.observation_space(params).shape == (3, 3, 22)
    state, observation = env.reset(jax.random.key(0), params)
    total = 0.0
    for row, column in np.ndindex(3, 3):  # fill color by color, cell by cell; then submit
        action = int(state.target_grid[row, column]) * 9 + row * 3 + column
        state, observation, reward, done, info = env.step(state, action, params)
        total += float(reward)
    np.testing.assert_array_equal(observation[..., :11], observation[..., 11:])
    assert not done
    state, _, reward, done, info = env.step(state, 4 * 9, params)
    assert bool(done)
    assert bool(info["success"])
    assert total + float(reward) > 1
    plain, rules = jaxarc.make("starter", flat_actions=False, layout="dict", max_episode_steps=5)
    assert isinstance(plain, jaxarc.ArcEnvironment)
    assert set(plain.observation_space(rules).entries) == {"target_grid", "working_grid"}
    assert rules.config.environment.max_episode_steps == 5


@pytest.mark.parametrize("name", ["starter", *editing_presets()])
def test_fields_are_laid_over_a_preset_and_never_over_other_rules(name):
    _, params = jaxarc.make(name, mask_in_info=True)
    assert params.config == jaxarc.make(name)[1].config.with_fields(mask_in_info=True)


def test_the_evaluation_of_a_preset_takes_fields_that_its_training_does_not():
    _, params = jaxarc.make("small_grids/evaluation", mode="test", reveal_target=False)
    assert (params.config.episode.mode, params.config.episode.start_grid) == ("test", "input")
    _, chosen = jaxarc.make("small_grids/evaluation", episode=EpisodeConfig(start_grid="partial"))
    assert chosen.config.episode.start_grid == "partial"
