"""Calls that people make by accident or on purpose: empty batches, gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiling import EXECUTORS

import jaxarc
from jaxarc import PointAction
from jaxarc.wrappers import AutoReset

DRESSES = {"plain": lambda env: env, "auto-reset": AutoReset}


def made(executor="auto"):
    env, params = jaxarc.make("starter", flat_actions=False, executor=executor)
    return env, params, env.reset(jax.random.key(0), params)[0]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_empty_batch_is_refused_by_name(executor):
    env, params, state = made(executor)
    none = jax.tree.map(lambda x: jnp.zeros((0, *x.shape), x.dtype), (state, PointAction(1, 0, 0)))
    with pytest.raises(ValueError, match="size 0"):
        jax.vmap(env.reset, (0, None))(jax.random.split(jax.random.key(0), 0), params)
    for dress in DRESSES.values():
        with pytest.raises(ValueError, match="size 0"):
            jax.vmap(dress(env).step, (0, 0, None))(*none, params)


@pytest.mark.parametrize(
    ("dress", "executor"),
    [(DRESSES["plain"], EXECUTORS[0]), (DRESSES["auto-reset"], "xla")],
    ids=["plain-native", "auto-reset-xla"],
)
def test_a_reward_has_its_gradient_by_the_similarity_before(dress, executor):
    env, params, state = made(executor)

    def reward(similarity):
        before = state.replace(similarity_score=similarity)
        return dress(env).step(before, PointAction(1, 0, 0), params)[2]

    expected = -params.config.reward.similarity_weight
    assert jax.grad(reward)(jnp.float32(0.25)) == expected
    np.testing.assert_array_equal(jax.vmap(jax.jacfwd(reward))(jnp.float32([0.25, 0.5])), [expected] * 2)


def test_leak_checks_are_refused_in_a_line_and_run_without_checks_of_actions():
    """Equinox's errors look like leaks to JAX, which ends in an IndexError of its own."""
    env, params = jaxarc.make("starter", flat_actions=False, invalid_action_policy="raise")
    quiet = params.replace(invalid_action_policy="noop")
    action = PointAction(1, 0, 0)
    with jax.checking_leaks():
        state, _ = env.reset(jax.random.key(0), params)
        with pytest.raises(jaxarc.errors.JaxarcError, match=r"JAX_CHECK_TRACER_LEAKS.*noop"):
            env.step(state, action, params)
        assert env.step(state, action, quiet)[0].step_count == 1
