"""The vector environment of stable-baselines3, against Gymnasium's, whose episodes it plays."""

import numpy as np
import pytest
from adapter_world import TASKS
from gymnasium.vector import AutoresetMode

import jaxarc
from jaxarc.adapters import GymnasiumVectorEnv

sb3 = pytest.importorskip("stable_baselines3", reason="stable-baselines3 is not installed")

NUM_ENVS = 3


def actions_of(space, step):
    return np.random.default_rng(step).integers(0, space.n, NUM_ENVS)


def test_it_plays_the_episodes_of_the_gymnasium_vector_environment():
    made = jaxarc.make("starter", max_episode_steps=4)
    ours = jaxarc.adapters.Sb3VecEnv(*made, NUM_ENVS)
    theirs = GymnasiumVectorEnv(*made, NUM_ENVS, AutoresetMode.SAME_STEP)
    ours.seed(5)
    observation, (expected, _) = ours.reset(), theirs.reset(seed=5)
    ended = {"truncated": 0, "terminated": 0}
    for step in range(30):
        np.testing.assert_array_equal(observation, expected)
        actions = actions_of(ours.action_space, step)
        observation, rewards, dones, infos = ours.step(actions)
        expected, wanted, terminations, truncations, batched = theirs.step(actions)
        np.testing.assert_array_equal(rewards, wanted.astype(np.float32))
        np.testing.assert_array_equal(dones, terminations | truncations)
        for index, info in enumerate(infos):
            assert bool(info) == bool(dones[index])
            if info:
                ended["truncated" if info["TimeLimit.truncated"] else "terminated"] += 1
                assert info["TimeLimit.truncated"] == truncations[index]
                assert info["is_success"] == batched["final_info"]["success"][index]
                np.testing.assert_array_equal(info["terminal_observation"], batched["final_obs"][index])
    assert min(ended.values()) > 0, "both kinds of ends were seen"


def test_an_agent_learns_in_it_a_little():
    envs = sb3.common.vec_env.VecMonitor(jaxarc.adapters.Sb3VecEnv(*jaxarc.make("starter"), 8))
    model = sb3.PPO("MlpPolicy", envs, n_steps=16, batch_size=64, n_epochs=1, seed=0, device="cpu")
    model.learn(512)
    assert model.num_timesteps == 512
    assert len(model.ep_info_buffer) > 0


def test_pictures_and_attributes_come_from_the_batch():
    envs = jaxarc.adapters.Sb3VecEnv(*jaxarc.make("starter"), 2, render_mode="rgb_array")
    envs.reset()
    assert [image.shape[-1] for image in envs.get_images()] == [3, 3]
    assert envs.get_attr("num_envs") == [2, 2]
    assert envs.env_is_wrapped(sb3.common.monitor.Monitor) == [False, False]


def test_masks_are_refused():
    with pytest.raises(ValueError, match="mask"):
        jaxarc.adapters.Sb3VecEnv(*jaxarc.make("007bbfb7"), 2)


@pytest.mark.parametrize("flat_actions", [True, False])
def test_maskable_ppo_takes_no_action_that_its_masks_leave_out(flat_actions):
    contrib = pytest.importorskip("sb3_contrib", reason="sb3-contrib is not installed")
    from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported

    # The grids are smaller than the canvas, so some actions cannot apply.
    rules = {"selection_format": "point", "max_grid_height": 3, "max_grid_width": 4, "allowed_operations": (1, 3, 34)}
    made = jaxarc.make(TASKS, flat_actions=flat_actions, **rules)
    for envs in (
        jaxarc.adapters.Sb3VecEnv(*made, NUM_ENVS),
        sb3.common.vec_env.DummyVecEnv([lambda: jaxarc.adapters.GymnasiumEnv(*made)] * NUM_ENVS),
    ):
        assert is_masking_supported(envs)
        model = contrib.MaskablePPO("MlpPolicy", envs, n_steps=16, batch_size=16, n_epochs=1, seed=0, device="cpu")
        model.learn(96)
        observation = envs.reset()
        for _ in range(8):
            masks = get_action_masks(envs)
            assert not masks.all()
            actions = model.predict(observation, action_masks=masks)[0]
            numbers = actions[:, None] if flat_actions else actions + np.array([0, 3, 6])
            assert np.take_along_axis(masks, numbers, axis=1).all()
            observation = envs.step(actions)[0]
