"""Equal keys give equal episodes and actions whatever the batch, also where JAX promises less of a generator."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxarc
from jaxarc.envs.action_space import action_space
from jaxarc.tasks.task import mock_raw_task
from jaxarc.wrappers import AutoReset

IMPLS = ("rbg", "unsafe_rbg")
SIZE = {"max_grid_height": 6, "max_grid_width": 5, "allowed_operations": (0, 34), "max_episode_steps": 1}
RULES = {
    "procedural": ("procedural/gravity", {"recolor": "all", "shuffle_demos": True}),
    "random starts": ([mock_raw_task(6, 5)], {"start_grid": "random"}),
    "partial starts": ([mock_raw_task(6, 5)], {"start_grid": "partial", "partial_probability": 0.9}),
}


def assert_alone_as_in_a_batch(play, keys):
    together = jax.jit(jax.vmap(play))(keys)
    jax.tree.map(lambda leaf: np.testing.assert_array_equal(leaf[:3], leaf[3:6]), together)  # of equal keys
    alone = jax.jit(play)(keys[1])
    jax.tree.map(lambda leaf, single: np.testing.assert_array_equal(leaf[1], single), together, alone)
    few = jax.jit(jax.vmap(play))(keys[:2])
    jax.tree.map(lambda leaf, two: np.testing.assert_array_equal(leaf[:2], two), together, few)


def repeated(impl):
    keys = jax.random.key_data(jax.random.split(jax.random.key(3, impl=impl), 3))
    return jax.random.wrap_key_data(jnp.concatenate([keys, keys, keys]), impl=impl)


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("rules", RULES)
def test_episodes_and_what_follows_them_depend_on_the_key_alone(rules, impl):
    dataset, fields = RULES[rules]
    env, params = jaxarc.make(dataset, **SIZE, **fields)
    env = AutoReset(env)

    def play(key):
        state, first = env.reset(key, params)
        return first, env.step(state, env.action_space(params).sample(key), params)

    assert_alone_as_in_a_batch(play, repeated(impl))


@pytest.mark.parametrize("impl", IMPLS)
@pytest.mark.parametrize("selection_format", ["point", "bbox", "mask"])
def test_actions_depend_on_the_key_alone(selection_format, impl):
    config = jaxarc.JaxArcConfig().with_fields(selection_format=selection_format, **SIZE)
    assert_alone_as_in_a_batch(action_space(config).sample, repeated(impl))
