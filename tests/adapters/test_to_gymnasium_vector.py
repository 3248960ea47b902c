"""The vector environment plays what as many single ones play, in every autoreset mode."""

import gymnasium
import jax
import jax.numpy as jnp
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
    world_fields,
)
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from jaxarc.adapters import GymnasiumEnv, GymnasiumVectorEnv, register_gymnasium
from jaxarc.envs import PointAction
from jaxarc.profiling import CompileCounter
from jaxarc.wrappers import AutoReset

B = 5
ID = "jaxarc/arc-agi-1-training-v1"
HAND_IN = np.tile([SUBMIT_PLACE, 0, 0], (B, 1))
PAINT = np.tile([0, 1, 1], (B, 1))
SAME_STEP, NEXT_STEP = AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP


@pytest.fixture(scope="module")
def world():
    return make_world()


def some_actions(count):
    rng = np.random.default_rng(0)
    return [rng.integers((0, 0, 0), (len(OPERATIONS), 3, 4), (B, 3)) for _ in range(count)]


def assert_alike(ours, theirs):
    """The same names and values; Gymnasium widens float32 to float64."""
    if isinstance(theirs, dict):
        assert set(ours) == set(theirs)
        for name in theirs:
            assert_alike(ours[name], theirs[name])
    elif isinstance(theirs, tuple):
        for one, other in zip(ours, theirs, strict=True):
            assert_alike(one, other)
    elif isinstance(theirs, np.ndarray) and theirs.dtype == object:
        assert [one is None for one in ours] == [one is None for one in theirs]
        for one, other in zip(ours, theirs, strict=True):
            assert_alike(one, other)
    elif theirs is not None:
        np.testing.assert_allclose(
            ours, theirs, rtol=1e-6 * (np.asarray(theirs).dtype == np.float64), atol=0
        )  # rewards


@pytest.mark.parametrize("mode", [SAME_STEP, NEXT_STEP])
def test_it_returns_what_gymnasium_returns_for_as_many_single_environments(world, mode):
    ours = GymnasiumVectorEnv(*world, num_envs=B, autoreset_mode=mode)
    theirs = SyncVectorEnv([lambda: GymnasiumEnv(*world)] * B, autoreset_mode=mode)
    assert (ours.action_space, ours.observation_space) == (theirs.action_space, theirs.observation_space)
    assert ours.metadata["autoreset_mode"] is ours.autoreset_mode is mode
    assert_alike(ours.reset(seed=11), theirs.reset(seed=11))
    ended = 0
    for actions in some_actions(12):
        left, right = ours.step(actions), theirs.step(actions)
        assert_alike(left, right)
        ended += int((left[2] | left[3]).sum())
    assert ended > B


def test_same_step_agrees_with_our_auto_reset(world):
    env, params = world
    vector = GymnasiumVectorEnv(env, params, num_envs=B, autoreset_mode=SAME_STEP)
    vector.reset(seed=3)
    ours = AutoReset(env)
    states, _ = jax.vmap(ours.reset, (0, None))(jax.vmap(jax.random.key)(np.arange(3, 3 + B)), params)
    step = jax.jit(jax.vmap(ours.step, (0, 0, None)))
    for actions in some_actions(8):
        points = PointAction(np.array(OPERATIONS)[actions[:, 0]], actions[:, 1], actions[:, 2])
        states, expected, rewards, dones, told = step(states, points, params)
        observation, gained, terminated, truncated, infos = vector.step(actions)
        assert_trees_equal(observation, np.asarray(expected))
        np.testing.assert_array_equal(gained, rewards)
        np.testing.assert_array_equal(terminated | truncated, dones)
        for place in np.flatnonzero(dones):
            np.testing.assert_array_equal(infos["final_obs"][place], told["final_observation"][place])
            assert infos["final_info"]["success"][place] == told["success"][place]


def test_options_say_what_each_environment_plays(world):
    env = GymnasiumVectorEnv(*world, num_envs=B)
    options = {"task_index": [0, 1, 2, 1, 0], "pair_index": [0, 1, 0, 0, 0]}
    first, infos = env.reset(seed=1, options=options)
    assert first.max(axis=(1, 2)).tolist() == [1, 4, 3, 1, 1]
    assert set(options) == {"task_index", "pair_index"}, "the caller's options must stay as they are"
    assert not {"terminated", "truncated"} & set(infos), "Gymnasium returns them by themselves"
    assert env.reset(options={"task_index": 2})[0].max(axis=(1, 2)).tolist() == [3] * B


def test_seeds_are_one_for_each_environment(world):
    def play(seed):
        env = GymnasiumVectorEnv(*world, num_envs=B)
        shown = [env.reset(seed=seed)[0], *(env.step(HAND_IN)[0] for _ in range(4))]
        return np.stack([*shown, env.reset()[0], env.reset(options={"pair_index": 0})[0]])

    assert_trees_equal(play(4), play(4))
    assert_trees_equal(play(4)[:-1], play([4, 5, 6, 7, 8])[:-1])
    assert_trees_equal(play([9, 2, 9, 2, 9]), play([9, 2, 9, 2, 9]))
    assert_trees_equal(play([9, None, 9, None, 9])[:-1, ::2], play([9, 2, 9, 2, 9])[:-1, ::2])
    assert (play(None) != play(None)).any()


@pytest.mark.parametrize("mode", [SAME_STEP, NEXT_STEP])
def test_arrays_are_new_in_every_step(world, mode):
    env, twin = (GymnasiumVectorEnv(*world, num_envs=B, autoreset_mode=mode) for _ in range(2))
    shown, expected = env.reset(seed=0), twin.reset(seed=0)
    for actions in some_actions(6):
        assert_alike(shown, expected)
        for array in [leaf for leaf in jax.tree.leaves(shown) if leaf is not None]:
            array[...] = 0  # whatever is done to them matters to nobody
        shown, expected = env.step(actions), twin.step(actions)


def test_after_the_first_steps_nothing_is_compiled_anew(world):
    env = GymnasiumVectorEnv(*world, num_envs=B)
    env.reset(seed=0)
    env.step(HAND_IN)
    with CompileCounter() as counter:
        env.reset(seed=1)
        for actions in some_actions(5):
            env.step(actions)
    assert counter.total == 0, counter.reasons


@pytest.mark.parametrize("action_format", FORMATS)
def test_every_action_of_the_space_is_taken(action_format):
    shown = SHOWN if action_format == "point" else {}
    env = GymnasiumVectorEnv(*make_world(action_format, **shown), num_envs=B, autoreset_mode=SAME_STEP)
    env.action_space.seed(0)
    assert env.observation_space.contains(env.reset(seed=0)[0])
    for _ in range(6):
        observation, *_, infos = env.step(env.action_space.sample())
        assert env.observation_space.contains(observation)
        assert not infos["invalid_action"].any()
        for final in [one for one in infos.get("final_obs", []) if one is not None]:
            assert env.single_observation_space.contains(final)


def test_action_masks_are_those_of_as_many_single_environments():
    for action_format in ("point", "flat"):
        made = make_world(action_format)
        vector = GymnasiumVectorEnv(*made, num_envs=2)
        vector.reset(seed=4)
        masks = vector.action_masks()
        for seed, mask in zip((4, 5), masks, strict=True):
            single = GymnasiumEnv(*made)
            single.reset(seed=seed)
            np.testing.assert_array_equal(mask, single.action_masks())


def test_gymnasium_draws_by_the_masks_in_info_and_in_the_method():
    vector = GymnasiumVectorEnv(*make_world("flat", mask_in_info=True), num_envs=3)
    _, infos = vector.reset(seed=0)
    for masks in (infos["action_mask"], vector.action_masks()):
        drawn = vector.action_space.sample(mask=tuple(masks))
        assert all(mask[action] for mask, action in zip(masks, drawn, strict=True))
    single = GymnasiumEnv(*make_world("flat", mask_in_info=True))
    _, info = single.reset(seed=0)
    for mask in (info["action_mask"], single.action_masks()):
        assert mask[single.action_space.sample(mask=mask)] == 1
    info = single.step(single.action_space.sample(mask=info["action_mask"]))[-1]
    single.action_space.sample(mask=info["action_mask"])


@pytest.mark.parametrize("one", [np.int64(3), jnp.int32(3), np.array(3)])
def test_seeds_are_integers_of_any_library(world, one):
    vector, single = GymnasiumVectorEnv(*world, num_envs=2), GymnasiumEnv(*world)
    np.testing.assert_array_equal(vector.reset(seed=one)[0], vector.reset(seed=3)[0])
    np.testing.assert_array_equal(vector.reset(seed=[one, None])[0][0], single.reset(seed=3)[0])
    np.testing.assert_array_equal(single.reset(seed=one)[0], single.reset(seed=3)[0])
    np.testing.assert_array_equal(vector.reset(seed=jnp.arange(3, 5))[0], vector.reset(seed=[3, 4])[0])
    for env, seed in ((vector, 3.5), (vector, [3.5, 4]), (single, 3.5), (vector, "33")):
        with pytest.raises(TypeError, match="a seed must be an integer, got "):
            env.reset(seed=seed)


def test_actions_may_be_lists():
    for action_format, actions in (
        ("point", PAINT.tolist()),
        ("mask", {"operation": [0] * B, "selection": np.ones((B, 3, 4), int).tolist()}),
        ("mask", [{"operation": np.int64(0), "selection": np.ones((3, 4), np.int8)}] * B),
    ):
        env = GymnasiumVectorEnv(*make_world(action_format), num_envs=B)
        env.reset(seed=0, options={"task_index": 2})
        assert (env.step(actions)[0] == OPERATIONS[0]).any(axis=(1, 2)).all()


def test_what_cannot_work_is_refused(world):
    env, params = world
    vector = GymnasiumVectorEnv(env, params, num_envs=2)
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"call reset\(\) first"):
        vector.step(PAINT[:2])
    vector.reset(seed=0)
    with pytest.raises(ValueError, match="an action must be in"):
        vector.step(np.array([[0, 0, 0], [3, 0, 0]]))
    with pytest.raises(ValueError, match=r"options\['task_index'\].*2"):
        vector.reset(options={"task_index": [0, 1, 2]})
    with pytest.raises(IndexError, match=r"pair_index.*\[0, 0\].*1"):
        vector.reset(options={"task_index": [1, 2], "pair_index": 1})


def test_make_vec_makes_it_and_gymnasiums_statistics_count_its_episodes():
    register_gymnasium()
    env = gymnasium.make_vec(
        ID,
        num_envs=B,
        vectorization_mode="vector_entry_point",
        dataset=TASKS,
        autoreset_mode=NEXT_STEP.value,
        render_mode="ansi",
        **world_fields(),
    )
    counted = gymnasium.wrappers.vector.RecordEpisodeStatistics(env)
    counted.reset(seed=0)
    lengths = []
    for _ in range(11):
        infos = counted.step(PAINT)[4]
        lengths += infos["episode"]["l"][infos["_episode"]].tolist() if "episode" in infos else []
    assert lengths == [4] * (2 * B)
    assert len(env.render()) == B
    env.close()
    env.close()
