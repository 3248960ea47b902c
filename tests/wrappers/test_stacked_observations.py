"""The observation as one array of channels."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxarc
from jaxarc.wrappers import AutoReset, StackedObservations

RULES = {"selection_format": "point", "max_grid_height": 4, "max_grid_width": 3, "max_episode_steps": 5}
KEY = jax.random.key(0)
GRIDS = "procedural/random"


def channels_of(grid):
    return np.stack([np.asarray(grid) == color for color in (*range(10), -1)], axis=-1)


@pytest.mark.parametrize("grid_format", ["planes", "one_hot"])
def test_grids_become_channels_in_the_order_of_their_names(grid_format):
    env, params = jaxarc.make(GRIDS, **RULES, reveal_target=True, include_input=True, grid_format=grid_format)
    state, shown = env.reset(KEY, params)
    _, stacked = StackedObservations(env).reset(KEY, params)
    input_grid = shown["input_grid"] if grid_format == "planes" else None
    expected = [channels_of(state.target_grid), channels_of(state.working_grid)]
    assert stacked.shape == (4, 3, 33)
    assert stacked.dtype == jnp.float32
    np.testing.assert_array_equal(stacked[..., 11:], np.concatenate(expected, axis=-1))
    if input_grid is not None:
        np.testing.assert_array_equal(stacked[..., :11], channels_of(input_grid))


def test_masks_numbers_and_demonstrations_become_channels_too():
    env, params = jaxarc.make(
        GRIDS, **RULES, include_step_count=True, include_selection=True, include_operations=True,
        include_demonstrations=True,
    )  # fmt: skip
    stacked = StackedObservations(env)
    state, observation = stacked.reset(KEY, params)
    assert stacked.observation_space(params).contains(observation)
    demonstrations = params.tasks.num_slots
    sizes = [1, demonstrations * 11, demonstrations, demonstrations * 11, 42, 1, 1, 11]
    assert observation.shape == (4, 3, sum(sizes))
    action = env.action_space(params).sample(KEY)
    _, observation, *_ = stacked.step(state, action, params)
    np.testing.assert_allclose(observation[..., -12], 1 / 5, rtol=1e-6)


def test_every_way_to_an_observation_gives_the_same_one():
    env, params = jaxarc.make(GRIDS, **RULES, reveal_target=True)
    stacked = AutoReset(StackedObservations(env))
    state, observation = stacked.reset(KEY, params)
    for _ in range(6):
        np.testing.assert_array_equal(observation, stacked.observe(state, params))
        before = state
        state, observation, _, done, info = stacked.step(state, env.action_space(params).sample(KEY), params)
        if not done:
            np.testing.assert_array_equal(observation, info["final_observation"])
        else:
            _, first = stacked.reset_next(before, params)
            np.testing.assert_array_equal(observation, first)


def test_tokens_are_refused():
    env, params = jaxarc.make(GRIDS, **RULES, grid_format="tokens")
    with pytest.raises(ValueError, match="tokens"):
        StackedObservations(env).observation_space(params)
