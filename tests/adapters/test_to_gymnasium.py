"""The single Gymnasium environment plays what ours plays."""

import dataclasses
import importlib.util
import subprocess
import sys
from functools import partial

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
    make_world,
    world_fields,
)
from compiling import EXECUTORS
from gymnasium.utils.env_checker import check_env

import jaxarc
from jaxarc.adapters import GymnasiumEnv, register_gymnasium
from jaxarc.config.build import UnknownFieldError
from jaxarc.envs import Environment, PointAction
from jaxarc.envs.action_masks import factored_action_mask, flat_action_mask
from jaxarc.profiling import CompileCounter
from jaxarc.render import pixels
from jaxarc.spaces import Discrete, DiscreteSubset
from jaxarc.wrappers import AutoReset, EpisodeStatistics, Wrapper

ID = "jaxarc/arc-agi-1-training-v1"
PAINT, HAND_IN = np.array([0, 1, 1]), np.array([SUBMIT_PLACE, 0, 0])


@pytest.fixture(scope="module")
def world():
    return make_world()


def plain(info):
    """Our info in numbers, without the flags that Gymnasium returns by themselves."""
    return {name: value.item() for name, value in info.items() if name not in ("terminated", "truncated")}


def test_its_episodes_are_those_of_our_environment(world):
    env, params = world
    ours, theirs = AutoReset(env), GymnasiumEnv(env, params)
    state, expected = ours.reset(jax.random.key(7), params)
    observation, info = theirs.reset(seed=7)
    np.testing.assert_array_equal(observation, expected)
    assert info == plain(env.info(state, params))
    for action in (PAINT, HAND_IN, PAINT, PAINT, PAINT, PAINT, HAND_IN):
        point = PointAction(OPERATIONS[action[0]], int(action[1]), int(action[2]))
        state, expected, reward, done, told = ours.step(state, point, params)
        observation, gained, terminated, truncated, info = theirs.step(action)
        np.testing.assert_array_equal(observation, told.pop("final_observation"))
        assert (gained, terminated | truncated) == (pytest.approx(float(reward), rel=1e-6), bool(done))
        assert info == plain(told)
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


def test_equal_seeds_give_equal_episodes_and_no_seed_gives_others(world):
    def colors(seed):
        env = GymnasiumEnv(*world)
        return [env.reset(seed=seed if first else None)[0].max() for first in (True, *[False] * 20)]

    assert colors(3) == colors(3)
    assert colors(2**40 + 3) != colors(3), "all 64 bits of a seed count"
    assert len({tuple(colors(None)) for _ in range(3)}) == 3


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


@pytest.mark.parametrize("executor", dict.fromkeys(["xla", EXECUTORS[0]]))
def test_an_episode_runs_few_compiled_programs_and_nothing_else(executor):
    """The library steps and starts the next episode, so only the first reset is compiled."""
    sides = {"max_grid_height": 4 if executor == "xla" else 6, "max_grid_width": 5}  # which no other test compiles
    env = GymnasiumEnv(*make_world(executor=executor, **sides))
    with CompileCounter() as counter:
        env.reset(seed=0)
        env.step([0, 1, 1])
        env.reset()
    assert counter.total == (1 if executor == "native" else 3), counter.reasons


@pytest.mark.parametrize(
    ("action_format", "action"),
    [
        ("point", [0, 1, 2]),
        ("point", (0, 1, 2)),
        ("flat", np.int64(6)),  # operation 0 at row 1, column 2
        ("mask", {"operation": 0, "selection": [[0] * 4, [0, 0, 1, 0], [0] * 4]}),
        ("mask", {"operation": 0, "selection": np.arange(12).reshape(3, 4) == 6}),
    ],
)
def test_an_action_may_be_a_list_or_of_another_integer_type(action_format, action):
    fields = {"selection_format": "point"} if action_format == "flat" else {}
    env = GymnasiumEnv(*make_world(action_format, **fields))
    env.reset(seed=0, options={"task_index": 2})
    observation, *_ = env.step(action)
    assert np.argwhere(observation == OPERATIONS[0]).tolist() == [[1, 2]]


@pytest.mark.parametrize(
    "action", [np.array([3, 0, 0]), np.array([0, 3, 0]), np.array([0, 0]), [0, 0, -1], [0, [1], 2], [0.0, 1.0, 1.0], 1]
)
def test_an_action_outside_the_space_is_refused(world, action):
    env = GymnasiumEnv(*world)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"action.*MultiDiscrete\(\[3 3 4\]\)"):
        env.step(action)


@pytest.mark.parametrize("mode", ["train", "test"])
def test_frames_show_the_grid_and_where_it_is_not_hidden_the_target_in_one_size(world, mode):
    env, params = world
    params = params.replace(mode=mode)
    painter = GymnasiumEnv(EpisodeStatistics(env), params, render_mode="rgb_array", cell_size=20)
    observation, _ = painter.reset(seed=0, options={"task_index": 2})
    frame = painter.render()
    drawn = np.asarray(pixels.draw_grid(observation, cell_size=20))
    height, width, _ = drawn.shape
    np.testing.assert_array_equal(frame[:height, :width], drawn)
    assert (frame.dtype, frame.flags.writeable) == (np.uint8, True)
    assert (frame.shape[1] > 3 * width) == (mode == "train")
    for action in (PAINT, PAINT):
        painter.step(action)
        assert painter.render().shape == frame.shape


def test_frames_have_even_sides_as_the_colors_of_videos_need_them(world):
    env, params = world
    sides = []
    for cell_size in (20, 21):
        painter = GymnasiumEnv(env, params, render_mode="rgb_array", cell_size=cell_size)
        painter.reset(seed=0)
        sides += painter.render().shape[:2]
    assert [side % 2 for side in sides] == [0] * 4


def test_frames_of_a_test_are_the_same_whatever_its_answer_is():
    task = lambda answer: [{"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[1]], "output": answer}]}]
    frames = []
    for answer in ([[1]], [[2, 3]]):
        env = GymnasiumEnv(*jaxarc.make(task(answer), max_grid_height=2, max_grid_width=2, mode="test"), "rgb_array")
        env.reset(seed=0)
        frames.append(env.render())
    np.testing.assert_array_equal(*frames)


def test_lines_of_digits_show_the_working_grid(world):
    env, params = world
    writer = GymnasiumEnv(env, params, render_mode="ansi")
    writer.reset(seed=0, options={"task_index": 2})
    assert [line.split() for line in writer.render().splitlines()] == [["3"] * 3] * 2
    assert GymnasiumEnv(env, params).render() is None


def test_ids_are_registered_once_and_make_the_environment():
    assert ID in register_gymnasium()
    assert register_gymnasium() == register_gymnasium()
    env = gymnasium.make(ID, dataset=TASKS, flat_actions=True, **world_fields("flat"))
    env.reset(seed=0)
    assert env.action_space == gymnasium.spaces.Discrete(180)
    assert not env.step(env.action_space.sample())[4]["invalid_action"]
    assert env.unwrapped.spec.id == ID


def test_a_configured_id_is_all_that_a_client_needs():
    name = "adapters/points-v3"
    assert register_gymnasium(name, dataset=TASKS, **world_fields()) == (name,)
    try:
        env = gymnasium.make(name)
        assert env.action_space == gymnasium.spaces.MultiDiscrete([3, 3, 4])
        assert (env.spec.max_episode_steps, env.unwrapped.spec.id) == (4, name)
        assert gymnasium.make(name, max_episode_steps=2).spec.max_episode_steps == 2
        assert gymnasium.wrappers.TimeAwareObservation(env).max_timesteps == 4
        vector = gymnasium.make_vec(name, num_envs=2)
        assert vector.spec.max_episode_steps == 4
        again = gymnasium.make(env.spec)
        again.reset(seed=0, options={"task_index": 1})
        assert [again.step(PAINT)[2:4] for _ in range(4)] == [(False, False)] * 3 + [(False, True)]
    finally:
        del gymnasium.registry[name]


def test_an_id_alone_shows_one_array_and_takes_one_integer():
    register_gymnasium()
    for env in (gymnasium.make("jaxarc/procedural-gravity-v1"), gymnasium.make("jaxarc/starter-v1")):
        assert isinstance(env.observation_space, gymnasium.spaces.Box)
        assert isinstance(env.action_space, gymnasium.spaces.Discrete)


def test_an_unknown_argument_is_a_type_error_in_the_words_of_python():
    register_gymnasium()
    for make in (gymnasium.make, partial(gymnasium.make_vec, num_envs=2)):
        with pytest.raises(TypeError, match="unexpected keyword argument 'frameskip'") as caught:
            make(ID, dataset=TASKS, frameskip=1)
        assert isinstance(caught.value, UnknownFieldError)


@pytest.mark.filterwarnings("ignore:.*HumanRendering:UserWarning")
def test_rendering_for_a_human_is_a_window_of_gymnasium_or_its_own_refusal():
    register_gymnasium()
    env = gymnasium.make(ID, dataset=TASKS, render_mode="human", **world_fields())
    assert isinstance(env, gymnasium.wrappers.HumanRendering)
    if importlib.util.find_spec("pygame") is None:
        with pytest.raises(gymnasium.error.DependencyNotInstalled, match="pygame"):
            env.reset()


@pytest.mark.parametrize("action_format", ["point", "bbox", "flat"])
def test_action_masks_are_those_of_the_state(action_format):
    env, params = make_world(action_format)
    theirs = GymnasiumEnv(env, params)
    theirs.reset(seed=3)
    state, _ = env.reset(jax.random.key(3), params)
    compute = flat_action_mask if action_format == "flat" else factored_action_mask
    masks = theirs.action_masks()
    np.testing.assert_array_equal(masks, compute(state, params.config))
    space = theirs.action_space
    assert masks.shape == ((space.n,) if action_format == "flat" else (space.nvec.sum(),))
    assert not masks.all(), "the canvas is larger than the grids"


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class FewerActions(Wrapper):
    """Allows fewer operations, or fewer flat actions."""

    env: Environment

    def action_space(self, params):
        space = self.env.action_space(params)
        if isinstance(space, Discrete):
            return Discrete(space.n - 1)
        return dataclasses.replace(space, operation=DiscreteSubset(space.operation.values[1:]))


def test_action_masks_follow_a_wrapper_that_allows_fewer_operations():
    env, params = make_world("point")
    theirs = GymnasiumEnv(FewerActions(env), params)
    theirs.reset(seed=3)
    state, _ = env.reset(jax.random.key(3), params)
    np.testing.assert_array_equal(theirs.action_masks(), factored_action_mask(state, params.config)[1:])
    assert theirs.action_masks().shape == (theirs.action_space.nvec.sum(),)
    flat = GymnasiumEnv(FewerActions(make_world("flat")[0]), make_world("flat")[1])
    flat.reset(seed=3)
    with pytest.raises(ValueError, match="allowed_operations"):
        flat.action_masks()


def test_masks_as_selections_have_no_action_masks():
    env = GymnasiumEnv(*make_world("mask"))
    env.reset(seed=0)
    with pytest.raises(ValueError, match="selection_format"):
        env.action_masks()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_forked_child_is_refused_where_jax_would_hang_and_works_where_it_starts_jax_itself():
    code = """
import multiprocessing, sys
import jax, jaxarc
from jaxarc.adapters import GymnasiumEnv

def play():
    try:
        env = GymnasiumEnv(*jaxarc.make("starter"))
        env.reset(seed=0)
        print("plays")
    except RuntimeError as error:
        print(type(error).__name__, "context='spawn'" in str(error))

if sys.argv[1] == "started":
    jax.numpy.zeros(1).block_until_ready()
child = multiprocessing.get_context("fork").Process(target=play)
child.start()
child.join(100)
assert child.exitcode == 0, child.exitcode
"""
    for way, expected in (("started", "ForkedProcessError True\n"), ("fresh", "plays\n")):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", code, way], capture_output=True, text=True, timeout=200, check=False
        )
        assert (done.returncode, done.stdout) == (0, expected), done.stderr


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
