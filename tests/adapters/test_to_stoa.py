"""The Stoa environment plays what ours plays, resets itself and keeps its params."""

import jax
import jax.numpy as jnp
import pytest
from adapter_world import (
    CANVAS,
    FORMATS,
    OPERATIONS,
    SHOWN,
    SUBMIT_PLACE,
    assert_trees_equal,
    make_world,
)

from jaxarc.envs import PointAction
from jaxarc.envs.action_masks import flat_action_mask
from jaxarc.wrappers import AutoReset

stoa = pytest.importorskip("stoa", reason="stoa-env is not installed; pip install stoa-env")
from stoa.core_wrappers.vmap import VmapWrapper  # noqa: E402
from stoa.utility_wrappers.flatten_obs import FlattenObservationWrapper  # noqa: E402

from jaxarc.adapters import StoaEnvironment  # noqa: E402

KEY = jax.random.key(0)
PAINT, HAND_IN = jnp.array([0, 1, 1], jnp.int32), jnp.array([SUBMIT_PLACE, 0, 0], jnp.int32)
FIRST, MID, TERMINATED, TRUNCATED = range(4)


@pytest.fixture(scope="module")
def world():
    return make_world()


@pytest.mark.parametrize("auto_reset", [True, False])
def test_its_episodes_are_those_of_our_environment(world, auto_reset):
    env, params = world
    ours, theirs = AutoReset(env), StoaEnvironment(env, params, auto_reset=auto_reset)
    reset, step = jax.jit(lambda key: theirs.reset(key)), jax.jit(lambda state, action: theirs.step(state, action))
    state, expected = ours.reset(KEY, params)
    stoa_state, first = reset(KEY)
    assert_trees_equal((stoa_state, first.observation), (state, expected))
    assert (int(first.step_type), float(first.reward), float(first.discount)) == (FIRST, 0, 1)
    kinds = []
    for action in (PAINT, HAND_IN, PAINT, PAINT, PAINT, PAINT):
        point = PointAction(OPERATIONS[int(action[0])], action[1], action[2])
        state, expected, reward, done, told = ours.step(state, point, params)
        stoa_state, shown = step(stoa_state, action)
        last = told.pop("final_observation")
        extras = dict(shown.extras)
        assert_trees_equal(shown.observation, expected if auto_reset else last)
        if auto_reset:
            assert_trees_equal(extras.pop("next_obs"), last)
        assert_trees_equal((shown.reward, shown.done(), extras), (reward, done, told))
        assert jax.tree.structure(shown) == jax.tree.structure(first)
        kinds.append((int(shown.step_type), float(shown.discount)))
        if done and not auto_reset:
            stoa_state = state  # what our auto-reset went on with
    assert kinds == [(MID, 1), (TERMINATED, 0), (MID, 1), (MID, 1), (MID, 1), (TRUNCATED, 1)]


@pytest.mark.usefixtures("standard_promotion")
def test_params_are_kept_over_auto_resets_and_under_the_wrappers_of_stoa(world):
    env, params = world
    vector = VmapWrapper(stoa.RecordEpisodeMetrics(FlattenObservationWrapper(StoaEnvironment(env, params))))
    only = params.only(task_index=2)

    def step(states, _):
        states, shown = vector.step(states, jnp.tile(HAND_IN, (3, 1)), only)
        return states, shown

    states, first = vector.reset(jax.random.split(KEY, 3), only)
    shown = jax.jit(lambda states: jax.lax.scan(step, states, None, 5)[1])(states)
    assert first.observation.shape == (3, CANVAS[0] * CANVAS[1])
    assert (shown.extras["task_index"] == 2).all()
    assert shown.extras["episode_metrics"]["is_terminal_step"].all()
    assert (shown.extras["episode_metrics"]["episode_length"] == 1).all()


@pytest.mark.usefixtures("standard_promotion")
@pytest.mark.parametrize("action_format", FORMATS)
def test_every_action_of_the_space_is_taken(action_format):
    shown = SHOWN if action_format == "point" else {}
    env = StoaEnvironment(*make_world(action_format, **shown))
    space = env.action_space()

    def step(state, key):
        action = space.sample(key)
        state, shown = env.step(state, action)
        return state, (action, shown)

    state, first = env.reset(KEY)
    _, (actions, shown) = jax.jit(lambda state: jax.lax.scan(step, state, jax.random.split(KEY, 50)))(state)
    assert not shown.extras["invalid_action"].any()
    for place in range(5):
        action, time_step = jax.tree.map(lambda leaf, place=place: leaf[place], (actions, shown))
        assert env.environment_space().contains(time_step, action)
    if action_format == "mask":
        assert 0.4 < actions["selection"].mean() < 0.6
    shapes = {name: (part.shape, part.dtype) for name, part in env.state_space().spaces.items()}
    assert len(shapes) == len(jax.tree.leaves(state))
    assert shapes["canvas.grid"] == ((12,), jnp.int8)
    assert env.environment_space().contains(first)


@pytest.mark.usefixtures("standard_promotion")
def test_the_mask_wrapper_of_stoa_finds_the_mask_of_what_is_shown():
    env, params = make_world("flat", mask_in_info=True)
    masked = stoa.AddActionMaskWrapper(StoaEnvironment(env, params))
    step = jax.jit(lambda state, action: masked.step(state, action))
    state, shown = masked.reset(KEY)
    for action in (0, env.action_space(params).n - 1, 0):  # the second ends the episode
        assert_trees_equal(shown.observation["action_mask"], flat_action_mask(state, params.config))
        state, shown = step(state, jnp.int32(action))
    assert shown.observation["action_mask"].shape == (env.action_space(params).n,)


def test_a_wrapper_that_ends_episodes_by_a_count_of_its_own_goes_around_one_that_does_not_reset_itself(world):
    limited = stoa.EpisodeStepLimitWrapper(StoaEnvironment(*world), 2)
    state = limited.reset(KEY)[0]
    with pytest.raises(TypeError, match=r"EpisodeStepLimitWrapper.*max_episode_steps.*auto_reset=False"):
        limited.step(state, PAINT)
    inner = stoa.EpisodeStepLimitWrapper(StoaEnvironment(*world, auto_reset=False), 2)
    env = stoa.AutoResetWrapper(stoa.AddRNGKey(inner), next_obs_in_extras=True)
    state = env.reset(KEY)[0]
    kinds = []
    for _ in range(4):
        state, shown = env.step(state, PAINT)
        kinds.append(int(shown.step_type))
    assert kinds == [MID, TRUNCATED, MID, TRUNCATED]
