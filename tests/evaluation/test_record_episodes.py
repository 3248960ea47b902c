"""Trajectories: they show what the environment did, step by step, and are the episodes that evaluations play."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_exam import rules, task, task_set

from jaxarc import constants as c
from jaxarc.envs import ArcEnvironment, BboxAction, EnvParams
from jaxarc.evaluation import EpisodeSpec, RecordedAgent, episodes
from jaxarc.evaluation.agent import as_agent
from jaxarc.evaluation.episodes import play_episodes, record_episodes
from jaxarc.parallel import NotEnoughMemoryError, RandomPolicy
from jaxarc.tasks import uniform_weights

TASKS = task_set(task("one", ([[5, 5], [6, 6]], [[1, 5], [1, 6]])), task("two", ([[7]], [[7]])))
PAINT = {  # paint the left column with color 1, copy, submit
    "point": [[1, 0, 0], [1, 1, 0], [c.SUBMIT, 0, 0]],
    "bbox": [[1, 1, 0, 0, 0], [c.COPY, 0, 0, 0, 1], [c.SUBMIT, 0, 0, 0, 0]],
    "mask": [[1, 0, 0, 1, 0], [c.SUBMIT]],
}


def params_of(selection_format, **fields):
    config = rules(2, selection_format=selection_format, mode="test", **fields)
    return EnvParams(TASKS.buffer(config.grid_shape), uniform_weights(len(TASKS)), config)


def places(*task_indices):
    indices = np.array(task_indices, np.int32)
    return EpisodeSpec(indices, np.zeros_like(indices), np.arange(len(indices), dtype=np.int32))


@pytest.mark.parametrize("selection_format", PAINT)
def test_a_trajectory_holds_actions_and_their_results(selection_format):
    params = params_of(selection_format, allowed_operations=(1, c.COPY, c.SUBMIT))
    actions = PAINT[selection_format]
    agent = RecordedAgent.create({("one", 0): actions}, TASKS, params.config)
    trajectory, other = record_episodes(agent, params, places(0, 1), jax.random.key(0))
    assert trajectory.actions == [tuple(action) for action in actions]
    assert trajectory.is_solved
    assert len(trajectory.grids) == len(actions) + 1
    np.testing.assert_array_equal(trajectory.grids[0], [[5, 5], [6, 6]])
    np.testing.assert_array_equal(trajectory.grids[-1], trajectory.target)
    assert trajectory.similarities[0] == pytest.approx(0.5)
    assert trajectory.similarities[-1] == 1
    assert [len(part) for part in (trajectory.rewards, trajectory.invalid)] == [len(actions)] * 2
    assert len(other.actions) == 1, "what comes after the end of an episode is left out"
    if selection_format == "bbox":
        np.testing.assert_array_equal(trajectory.clipboards[-1], [[1, 5], [c.PADDING, c.PADDING]])


def test_a_trajectory_is_what_single_steps_of_the_environment_give():
    params = params_of("bbox", max_episode_steps=40)
    agent = as_agent(RandomPolicy(ArcEnvironment().action_space(params)))
    (trajectory,) = record_episodes(agent, params, places(0), jax.random.key(3))
    env = ArcEnvironment()
    state, _ = env.reset(jax.random.key(0), params, 0, 0)
    for step, action in enumerate(trajectory.actions):
        np.testing.assert_array_equal(trajectory.grids[step], state.working_grid)
        state, _, reward, _, info = env.step(state, BboxAction(*map(jnp.int32, action)), params)
        assert trajectory.rewards[step] == reward
        assert trajectory.similarities[step + 1] == state.similarity_score
        assert trajectory.invalid[step] == info["invalid_action"]
    np.testing.assert_array_equal(trajectory.grids[-1], state.working_grid)
    assert bool(state.done)


def test_trajectories_are_the_episodes_that_are_evaluated_whatever_the_batch():
    params = params_of("bbox", max_episode_steps=40)
    agent = as_agent(RandomPolicy(ArcEnvironment().action_space(params)))
    chosen, key = places(0, 1, 0), jax.random.key(5)
    played = play_episodes(agent, params, chosen, key, 3)
    for row, trajectory in enumerate(record_episodes(agent, params, chosen, key, 2)):
        assert len(trajectory.actions) == played.steps[row]
        np.testing.assert_array_equal(trajectory.grids[-1], played.grids[row])


def test_a_trajectory_is_cut_where_its_recording_ends():
    params = params_of("bbox", allowed_operations=(1, c.COPY, c.SUBMIT))
    agent = RecordedAgent.create({("one", 0): PAINT["bbox"][:2], ("two", 0): [PAINT["bbox"][-1]]}, TASKS, params.config)
    trajectory, other, none = record_episodes(agent, params, places(0, 1, 1), jax.random.key(0), lengths=[2, 5, 0])
    assert [action[0] for action in trajectory.actions] == [1, c.COPY], "the submit that follows is not recorded"
    assert (trajectory.similarities[-1], trajectory.is_solved) == (1, False)
    assert (len(other.actions), other.is_solved) == (1, True)
    assert (len(none.actions), len(none.grids), none.is_solved) == (0, 1, False)
    with pytest.raises(ValueError, match=r"2 .*1 lengths"):
        list(record_episodes(agent, params, places(0, 1), jax.random.key(0), lengths=[2]))


def test_batches_shrink_until_they_fit_in_memory(monkeypatch):
    params = params_of("bbox", max_episode_steps=3)
    agent = as_agent(RandomPolicy(ArcEnvironment().action_space(params)))
    chosen = places(*[0, 1] * 32)
    seen = []
    whole = play_episodes(agent, params, chosen, jax.random.key(5), 64, lambda *counts: seen.append(counts))
    assert seen == [(64, 64)]
    needed = []
    measure = episodes.program_memory
    monkeypatch.setattr(episodes, "program_memory", lambda program: needed.append(measure(program)) or needed[-1])
    play_episodes(agent, params, chosen, jax.random.key(5), 64)
    monkeypatch.setattr(episodes, "available_memory", lambda: needed[0] // 2)
    seen.clear()
    parts = play_episodes(agent, params, chosen, jax.random.key(5), 64, lambda *counts: seen.append(counts))
    assert len(seen) > 2
    assert all(jax.tree.leaves(jax.tree.map(np.array_equal, whole, parts)))
    monkeypatch.setattr(episodes, "available_memory", lambda: 100)
    with pytest.raises(NotEnoughMemoryError):
        play_episodes(agent, params, chosen, jax.random.key(5), 64)
