"""Episodes of any policy, recorded; and what `jaxarc.show` shows in a terminal and in a notebook."""

import sys
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import jaxarc
from jaxarc import constants as c
from jaxarc.datasets import TaskSet
from jaxarc.tasks import RawTask, create_mock_task
from jaxarc.wrappers import AutoReset, EpisodeStatistics, FlatActions

BLUE, RED = np.full((2, 2), 1), np.full((2, 2), 2)
TASKS = TaskSet("red", (RawTask("paint-it-red", ((BLUE, RED),), ((BLUE, RED),)),))
RULES = {"selection_format": "bbox", "max_grid_height": 3, "max_grid_width": 3, "max_episode_steps": 5}


@pytest.fixture(scope="module")
def made():
    return jaxarc.make(TASKS, **RULES)


def paint_and_submit(key, observation):
    """Paint the grid red, then submit it."""
    operation = jnp.where(observation[0, 0] == 2, c.SUBMIT, c.FILL + 2)
    return jaxarc.BboxAction(operation, 0, 0, 1, 1)


def submit(key, observation):
    return jaxarc.BboxAction(c.SUBMIT, 0, 0, 0, 0)


@pytest.fixture(scope="module")
def episode(made):
    return jaxarc.record_episode(paint_and_submit, *made, jax.random.key(0), player="painter")


def test_an_episode_is_recorded_as_the_environment_plays_it(episode):
    task, steps = episode
    assert task.task_id == "paint-it-red"
    np.testing.assert_array_equal(task.demonstrations, [(BLUE, RED)])
    assert steps.actions == [(2, 0, 0, 1, 1), (34, 0, 0, 1, 1)]
    assert [grid[0, 0] for grid in steps.grids] == [1, 2, 2]
    np.testing.assert_allclose(steps.rewards, [0.99, 9.99], rtol=1e-6)
    np.testing.assert_array_equal(steps.similarities, [0, 1, 1])
    assert (steps.pair, steps.player, steps.is_solved) == ("train 0", "painter", True)
    assert repr(episode) == "RecordedEpisode('paint-it-red', train 0, 2 steps, reward 10.98, solved)"


def test_flat_actions_and_statistics_are_recorded_as_structured_actions(made):
    env, params = made
    flat = FlatActions(env)
    policy = lambda key, observation: flat.to_flat(paint_and_submit(key, observation), params)
    steps = jaxarc.record_episode(policy, EpisodeStatistics(flat), params, jax.random.key(0)).steps
    assert [action[0] for action in steps.actions] == [2, 34]
    assert steps.is_solved


def test_an_episode_that_runs_out_of_time_ends(made):
    nothing = lambda key, observation: jaxarc.BboxAction(c.FILL + 1, 0, 0, 0, 0)
    episode = jaxarc.record_episode(nothing, *made, jax.random.key(0))
    assert len(episode.steps.actions) == 5
    assert not episode.steps.is_solved


@pytest.mark.parametrize(("dataset", "fields"), [("procedural/random", {}), (TASKS, {"mode": "test"})])
def test_generated_and_hidden_pairs_are_recorded_too(dataset, fields):
    episode = jaxarc.record_episode(submit, *jaxarc.make(dataset, **RULES, **fields), jax.random.key(1))
    assert len(episode.steps.actions) == 1


@pytest.mark.parametrize(("wrap", "fields"), [(AutoReset, {}), (lambda env: env, {"mode": "trials"})])
def test_an_environment_that_goes_on_behind_an_episode_is_refused(wrap, fields):
    env, params = jaxarc.make(TASKS, **RULES, **fields)
    with pytest.raises(ValueError, match=r"AutoReset|trials"):
        jaxarc.record_episode(paint_and_submit, wrap(env), params, jax.random.key(0))


@pytest.mark.parametrize("ending", ["html", "gif", "svg", "png"])
def test_an_episode_is_written_as_its_ending_says(episode, tmp_path, ending):
    path = episode.save(tmp_path / f"episode.{ending}")
    if ending in ("gif", "png"):
        with Image.open(path) as image:
            assert image.format == ending.upper()
            assert ending == "png" or image.n_frames == 3
    else:
        assert f"<{ending}" in path.read_text(encoding="utf-8")


def test_another_ending_is_refused(episode, tmp_path):
    with pytest.raises(ValueError, match="mp4"):
        episode.save(tmp_path / "episode.mp4")
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_shows_text(made, episode, capsys):
    env, params = made
    state, _ = env.reset(jax.random.key(0), params)
    states = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), state)
    shown = {
        "2 steps": episode,
        "solved": [episode, episode],
        "working grid": state,
        "2 states": states,
        "similarity": [state, state],
        "paint-it-red": TASKS,
        "test 0": TASKS[0],
        "train 2": create_mock_task(5, 5),
    }
    for words, thing in shown.items():
        jaxarc.show(thing)
        assert words in capsys.readouterr().out


def test_a_notebook_shows_pictures_and_pages(made, episode, monkeypatch):
    html = []
    shell = SimpleNamespace(config={"IPKernelApp": {}})
    display = SimpleNamespace(HTML=lambda text: text, display=html.append)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell, display=display))
    env, params = made
    state, _ = env.reset(jax.random.key(0), params)
    for thing in (episode, [episode], state, TASKS, TASKS[0]):
        jaxarc.show(thing)
    jaxarc.show(episode, animated=True)
    jaxarc.show([state, state])
    starts = ["<iframe", "<iframe", "<svg", "<p", "<svg", "<img", "<img"]
    assert [text[: len(start)] for text, start in zip(html, starts, strict=True)] == starts


def test_the_public_names_are_exactly_those_that_dir_lists():
    names = [name for name in dir(jaxarc) if not name.startswith("__")]
    assert names == sorted(jaxarc.__all__)
    assert all(getattr(jaxarc, name) is not None for name in names)
    for room in (jaxarc.tasks, jaxarc.datasets, jaxarc.wrappers, jaxarc.render, jaxarc.evaluation, jaxarc.adapters):
        assert dir(room) == sorted(room.__all__)
