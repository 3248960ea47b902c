"""The envelope environment plays what ours plays, and envelope's own wrappers take it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from adapter_world import TASKS, assert_trees_equal, make_world, world_fields

import jaxarc

envelope = pytest.importorskip("envelope", reason="envelope needs Python 3.12; pip install jax-envelope")
EnvelopeEnvironment = jaxarc.adapters.EnvelopeEnvironment
KEYS = jax.random.split(jax.random.key(0), 4)


@pytest.mark.parametrize("action_format", ["point", "bbox", "mask", "flat"])
def test_it_plays_what_ours_plays(action_format):
    env, params = jaxarc.make(TASKS, flat_actions=action_format == "flat", **world_fields(action_format))
    theirs = EnvelopeEnvironment(env, params)
    state, info = theirs.init(KEYS[0])
    ours, observation = env.reset(KEYS[0], params)
    assert_trees_equal(state, ours)
    assert_trees_equal(info.obs, observation)
    step = jax.jit(theirs.step)
    for key in jax.random.split(KEYS[1], 8):
        action = theirs.action_space.sample(key)
        assert theirs.action_space.contains(action)
        state, told = step(state, action)
        assert theirs.observation_space.contains(told.obs)
        assert jax.tree.structure(told) == jax.tree.structure(info)
        if action_format == "flat":
            ours, observation, reward, _, known = env.step(ours, action, params)
            assert_trees_equal((state, told.obs, told.reward), (ours, observation, reward))
            assert (told.terminated, told.truncated) == (known["terminated"], known["truncated"])


def test_wrappers_reset_stack_and_sum_up():
    env = envelope.create("jaxarc::starter")
    env = envelope.VmapWrapper(envelope.AutoResetWrapper(envelope.EpisodeStatisticsWrapper(env)), batch_size=16)
    state, _ = env.init(KEYS[2])

    def step(state, key):
        return env.step(state, env.action_space.sample(key))

    _, infos = jax.jit(lambda state: jax.lax.scan(step, state, jax.random.split(KEYS[3], 200)))(state)
    ended = np.asarray(infos.terminated | infos.truncated)
    assert ended.any()
    assert infos.obs.shape[:2] == (200, 16)
    assert np.isfinite(infos.reward).all()


def test_an_environment_that_resets_itself_is_refused():
    env, params = make_world()
    with pytest.raises(ValueError, match="AutoReset"):
        EnvelopeEnvironment(jaxarc.wrappers.AutoReset(env), params)
    assert jnp.ndim(EnvelopeEnvironment(env, params).init(KEYS[0])[1].reward) == 0
