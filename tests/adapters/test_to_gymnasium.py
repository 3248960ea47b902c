"""The single Gymnasium environment plays what ours plays."""

import gymnasium
import jax
import numpy as np
import pytest
from adapter_world import (
    FORMATS,
    OPERATIONS,
    SHOWN,
    SUBMIT_PLACE,
    TASKS,
    assert_trees_equal,
    make_world,
    with_other_answers,
    world_fields,
)
from gymnasium.utils.env_checker import check_env

from jaxarc.adapters import GymnasiumEnv, register_gymnasium
from jaxarc.envs import PointAction
from jaxarc.render import pixels
from jaxarc.wrappers import AutoReset, EpisodeStatistics

ID = "jaxarc/arc-agi-1-training-v1"
PAINT, HAND_IN = np.array([0, 1, 1]), np.array([SUBMIT_PLACE, 0, 0])
REPAINT = PAINT  # task 0 is of that color: nothing changes


@pytest.fixture(scope="module")
def world():
    return make_world()


def test_its_episodes_are_those_of_our_environment(world):
    env, params = world
    ours, theirs = AutoReset(env), GymnasiumEnv(env, params)
    state, expected = ours.reset(jax.random.key(7), params)
    observation, info = theirs.reset(seed=7)
    np.testing.assert_array_equal(observation, expected)
    assert info == {name: value.item() for name, value in env.info(state, params).items()}
    for action in (PAINT, HAND_IN, PAINT, PAINT, PAINT, PAINT, HAND_IN):
        point = PointAction(OPERATIONS[action[0]], int(action[1]), int(action[2]))
        state, expected, reward, done, told = ours.step(state, point, params)
        observation, gained, terminated, truncated, info = theirs.step(action)
        np.testing.assert_array_equal(observation, told.pop("final_observation"))
        assert (gained, terminated | truncated) == (float(reward), bool(done))
        assert info == {name: value.item() for name, value in told.items()}
        if done:
            observation, _ = theirs.reset()
            np.testing.assert_array_equal(observation, expected)


def test_it_terminates_by_a_submit_and_truncates_by_the_time_limit(world):
    env = GymnasiumEnv(*world)
    env.reset(seed=0, options={"task_index": 1})
    assert [env.step(PAINT)[2:4] for _ in range(4)] == [(False, False)] * 3 + [(False, True)]
    env.reset()
    assert env.step(HAND_IN)[2:4] == (True, False)
    assert env.step(PAINT)[1:4] == (0.0, True, False), "an ended episode must stay as it is"


def test_options_name_the_task_and_the_pair(world):
    env = GymnasiumEnv(*world)
    for task, pair, color in [(0, 0, 1), (1, 0, 1), (1, 1, 4), (2, 0, 3)]:
        observation, info = env.reset(options={"task_index": task, "pair_index": pair})
        assert (info["task_index"], info["pair_index"], observation.max()) == (task, pair, color)
    with pytest.raises(IndexError, match=r"task_index.*\[0, 2\].*3"):
        env.reset(options={"task_index": 3})
    with pytest.raises(ValueError, match="task_index, pair_index"):
        env.reset(options={"task": 1})


def test_equal_seeds_give_equal_episodes_and_no_seed_gives_others(world):
    def colors(seed):
        env = GymnasiumEnv(*world)
        return [env.reset(seed=seed if first else None)[0].max() for first in (True, *[False] * 20)]

    assert colors(3) == colors(3)
    assert colors(2**40 + 3) != colors(3), "all 64 bits of a seed count"
    assert len({tuple(colors(None)) for _ in range(3)}) == 3
    with pytest.raises(ValueError, match=r"a seed must be in \[0, 2\*\*64 - 1\]"):
        GymnasiumEnv(*world).reset(seed=2**64)


def test_params_are_kept_over_resets(world):
    env, params = world
    theirs = GymnasiumEnv(env, params.only(task_index=2))
    assert {theirs.reset()[1]["task_index"] for _ in range(10)} == {2}


def test_arrays_are_new_in_every_step(world):
    env = GymnasiumEnv(*world)
    first, _ = env.reset(seed=0)
    kept = first.copy()
    second, *_ = env.step(PAINT)
    np.testing.assert_array_equal(first, kept)
    second[:] = 7
    assert (env.step(HAND_IN)[0] != 7).all()


@pytest.mark.parametrize("action_format", FORMATS)
def test_every_action_of_the_space_is_taken(action_format):
    shown = SHOWN if action_format == "point" else {}
    env = GymnasiumEnv(*make_world(action_format, **shown))
    env.action_space.seed(0)
    env.reset(seed=0)
    for _ in range(8):
        observation, _, terminated, truncated, info = env.step(env.action_space.sample())
        assert env.observation_space.contains(observation)
        assert not info["invalid_action"]
        if shown:
            assert observation["step_count"] == [info["step_count"]]
        if terminated or truncated:
            env.reset()


def test_coordinates_are_row_and_column(world):
    env = GymnasiumEnv(*world)
    env.reset(seed=0, options={"task_index": 2})
    observation, *_ = env.step(np.array([0, 1, 2]))
    assert np.argwhere(observation == OPERATIONS[0]).tolist() == [[1, 2]]


@pytest.mark.parametrize("action", [np.array([3, 0, 0]), np.array([0, 3, 0]), np.array([0, 0]), [0, 0, -1], 1])
def test_an_action_outside_the_space_is_refused(world, action):
    env = GymnasiumEnv(*world)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"action.*MultiDiscrete\(\[3 3 4\]\)"):
        env.step(action)


def test_what_cannot_work_is_refused(world):
    env, params = world
    with pytest.raises(ValueError, match="hand in the environment without AutoReset"):
        GymnasiumEnv(EpisodeStatistics(AutoReset(env)), params)
    with pytest.raises(ValueError, match=r"render_mode.*None"):
        GymnasiumEnv(env, params, render_mode="human")
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"call reset\(\) first"):
        GymnasiumEnv(env, params).step(PAINT)


def test_it_draws_the_working_grid(world):
    env, params = world
    painter = GymnasiumEnv(EpisodeStatistics(env), params, render_mode="rgb_array")
    painter.reset(seed=0, options={"task_index": 2})
    frame = painter.render()
    drawn = pixels.draw_grid([[3, 3, 3, -1], [3, 3, 3, -1], [-1] * 4], cell_size=16)
    np.testing.assert_array_equal(frame, drawn)
    assert (frame.dtype, frame.flags.writeable) == (np.uint8, True)
    writer = GymnasiumEnv(env, params, render_mode="ansi")
    writer.reset(seed=0, options={"task_index": 2})
    assert [line.split() for line in writer.render().splitlines()] == [["3"] * 3] * 2
    assert GymnasiumEnv(env, params).render() is None


def test_nothing_shows_the_hidden_answers_before_the_submit():
    env, params = make_world(mode="test", score_on_submit=True, **SHOWN | {"reveal_target": False})
    runs = []
    for hidden in (params, with_other_answers(params)):
        theirs = GymnasiumEnv(env, hidden)
        first = theirs.reset(seed=5, options={"task_index": 0})
        runs.append([first, theirs.step(REPAINT), theirs.step(HAND_IN)])
    assert_trees_equal(runs[0][:2], runs[1][:2])
    assert [run[2][-1]["success"] for run in runs] == [True, False], "the submit is where the answers count"


def test_ids_are_registered_once_and_make_the_environment():
    assert ID in register_gymnasium()
    assert register_gymnasium() == register_gymnasium()
    env = gymnasium.make(ID, dataset=TASKS, flat_actions=True, **world_fields("flat"))
    env.reset(seed=0)
    assert env.action_space == gymnasium.spaces.Discrete(180)
    assert not env.step(env.action_space.sample())[4]["invalid_action"]
    assert env.unwrapped.spec.id == ID


def test_it_passes_the_checker_of_gymnasium():
    register_gymnasium()
    env = gymnasium.make(ID, dataset=TASKS, **world_fields())
    check_env(env.unwrapped)
    env.close()
    env.close()


def test_it_passes_the_checker_of_stable_baselines_and_its_ppo_trains(world, standard_promotion):
    reason = "stable-baselines3 is not installed; pip install stable-baselines3"
    checker = pytest.importorskip("stable_baselines3.common.env_checker", reason=reason)
    from stable_baselines3 import PPO

    env, params = world
    flat = gymnasium.wrappers.FlattenObservation(GymnasiumEnv(env, params, render_mode="rgb_array"))
    checker.check_env(flat, skip_render_check=False)
    model = PPO("MlpPolicy", flat, n_steps=128, batch_size=64, n_epochs=2, seed=0).learn(3000)
    assert model.num_timesteps >= 3000
