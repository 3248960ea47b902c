"""An observation as one array: entries as channels, or one after the other in a vector."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxarc
from jaxarc.constants import COPY, PASTE
from jaxarc.envs.action_masks import flat_action_mask
from jaxarc.wrappers import AutoReset, EpisodeStatistics, FlatActions, Trials

RULES = {"selection_format": "point", "max_grid_height": 4, "max_grid_width": 3, "max_episode_steps": 5}
KEY = jax.random.key(0)
GRIDS = "procedural/random"
SHOWN = dict.fromkeys(
    ("include_step_count", "include_selection", "include_operations", "include_demonstrations", "reveal_target"), True
)


def channels_of(grid):
    return np.stack([np.asarray(grid) == color for color in (*range(10), -1)], axis=-1)


@pytest.mark.parametrize("grid_format", ["planes", "one_hot"])
def test_grids_become_channels_in_the_order_of_their_names(grid_format):
    rules = {**RULES, "reveal_target": True, "include_input": True}
    env, params = jaxarc.make(GRIDS, **rules)
    _, shown = env.reset(KEY, params)
    env, params = jaxarc.make(GRIDS, **rules, grid_format=grid_format, layout="stacked")
    _, stacked = env.reset(KEY, params)
    expected = [channels_of(shown[name]) for name in ("input_grid", "target_grid", "working_grid")]
    assert stacked.shape == (4, 3, 33)
    assert stacked.dtype == jnp.float32
    np.testing.assert_array_equal(stacked, np.concatenate(expected, axis=-1))


def test_masks_numbers_and_demonstrations_become_channels_too():
    env, params = jaxarc.make(GRIDS, **RULES, **SHOWN, layout="stacked")
    state, observation = env.reset(KEY, params)
    assert env.observation_space(params).contains(observation)
    slots = params.tasks.num_slots
    sizes = [1, slots * 11, slots, slots * 11, 42, 1, 1, 11, 11]
    assert observation.shape == (4, 3, sum(sizes))
    _, observation, *_ = env.step(state, env.action_space(params).sample(KEY), params)
    np.testing.assert_allclose(observation[..., -23], 1 / 5, rtol=1e-6)


@pytest.mark.parametrize("grid_format", ["one_hot", "tokens"])
def test_a_flat_observation_has_the_entries_one_after_the_other(grid_format):
    env, params = jaxarc.make(GRIDS, **RULES, **SHOWN, grid_format=grid_format)
    state, _ = env.reset(KEY, params)
    action = env.action_space(params).sample(KEY)
    entries = env.step(state, action, params)[1]
    flat, flat_params = jaxarc.make(GRIDS, **RULES, **SHOWN, grid_format=grid_format, layout="flat")
    observation = flat.step(flat.reset(KEY, flat_params)[0], action, flat_params)[1]
    assert flat.observation_space(flat_params).contains(observation)
    assert observation.dtype == jnp.float32
    if grid_format == "one_hot":
        entries["step_count"] = entries["step_count"] / 5
        entries["demonstrations"]["count"] = entries["demonstrations"]["count"] / params.tasks.num_slots
    expected = np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(entries)]).astype(np.float32)
    np.testing.assert_allclose(observation, expected, rtol=1e-6)


@pytest.mark.parametrize("shuffle_demos", [False, True])
@pytest.mark.parametrize(("mode", "held_out"), [("train", 1), ("test", 0)])
def test_demonstrations_fill_as_many_slots_as_asked_for_whatever_the_tasks_have(mode, held_out, shuffle_demos):
    rules = {"mode": mode, "include_demonstrations": True, "shuffle_demos": shuffle_demos, "layout": "flat"}
    shapes = set()
    for name, count in (("arc-agi-1/training/007bbfb7", 5), ("arc-agi-1/training/d037b0a7", 3)):
        for slots in (4, 9):
            env, params = jaxarc.make(name, max_grid_height=9, max_grid_width=9, **rules, max_demonstrations=slots)
            state, observation = env.reset(KEY, params, pair_index=0)
            assert env.observation_space(params).contains(observation)
            mask = state.demonstrations.inputs[:, 0] >= 0
            assert mask.tolist() == [held_out <= slot < count for slot in range(slots)]
            shapes.add((slots, observation.shape))
    assert len(shapes) == 2


@pytest.mark.parametrize("layout", ["stacked", "flat"])
def test_every_way_to_an_observation_gives_the_same_one(layout):
    env, params = jaxarc.make(GRIDS, **RULES, **SHOWN, layout=layout)
    env = AutoReset(env)
    state, observation = env.reset(KEY, params)
    for _ in range(6):
        np.testing.assert_array_equal(observation, env.observe(state, params))
        before = state
        state, observation, _, done, info = env.step(state, env.action_space(params).sample(KEY), params)
        if not done:
            np.testing.assert_array_equal(observation, info["final_observation"])
        else:
            np.testing.assert_array_equal(observation, env.reset_next(before, params)[1])
    states, observations = jax.vmap(env.reset, (0, None))(jax.random.split(KEY, 3), params)
    np.testing.assert_array_equal(observations, env.observe(states, params))  # of a batch, without vmap


@pytest.mark.parametrize("layout", ["stacked", "flat"])
def test_trials_add_the_trial_at_the_end(layout):
    rules = {**RULES, "mode": "trials", "num_trials": 2, "max_episode_steps": 1, "layout": layout}
    env, params = jaxarc.make(GRIDS, **rules)
    trials = AutoReset(Trials(env))
    state, observation = trials.reset(KEY, params)
    shown = []
    for _ in range(4):
        assert trials.observation_space(params).contains(observation)
        shown.append(float(np.unique(observation[..., -1]).item()))
        state, observation, *_ = trials.step(state, env.action_space(params).sample(KEY), params)
    assert shown == [0, 0.5, 1, 0]


def test_the_mask_in_info_is_of_the_observation_that_is_returned():
    """A paste can do something only while the clipboard holds a copy, and a new episode begins with an empty one."""
    copy, paste = COPY, PASTE
    rules = {**RULES, "allowed_operations": (copy, paste), "max_episode_steps": 2, "mask_in_info": True}
    env, params = jaxarc.make(GRIDS, **rules)
    env = EpisodeStatistics(AutoReset(FlatActions(env)))
    state, _ = env.reset(KEY, params)
    cells = 12
    masks = [env.info(state, params)["action_mask"]]
    for _ in range(2):
        state, _, _, _, info = env.step(state, 0, params)
        masks.append(info["action_mask"])
        chex.assert_trees_all_equal(info["action_mask"], flat_action_mask(state.env_state, params.config))
    assert masks[0].shape == (env.action_space(params).n,)
    assert [bool(mask[cells:].any()) for mask in masks] == [False, True, False]
