import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_exam import rules

from jaxarc.agents import EditPolicy
from jaxarc.config import PPOConfig
from jaxarc.evaluation import EditAgent, Place

OBSERVATION = {
    "working_grid": jnp.array([[1, 2, -1], [3, 4, -1], [-1, -1, -1]], jnp.int8),
    "target_grid": jnp.array([[1, 2, 0], [3, 5, 0], [-1, -1, -1]], jnp.int8),
    "step_count": jnp.int32(1),
}
BATCH = jax.tree.map(lambda x: x[None], OBSERVATION)


@pytest.fixture(scope="module")
def policy():
    config = rules(reveal_target=True, include_step_count=True)
    create = jax.jit(lambda key: EditPolicy.create(key, config, PPOConfig()))
    return create(jax.random.key(0))


@eqx.filter_jit
def act(policy, attempt, key):
    agent = EditAgent(policy)
    return agent.act(key, OBSERVATION, agent.start(key, Place(attempt, attempt, attempt)))[0]


@eqx.filter_jit
def likeliest_and_drawn(policy, key):
    actions = policy.act(BATCH), policy.to_action(policy.sample(key, BATCH).edit)
    return jax.tree.map(lambda x: x[0], actions)


def same(left, right):
    return all(map(np.array_equal, jax.tree.leaves(left), jax.tree.leaves(right)))


def test_the_first_attempt_takes_the_likeliest_edit_and_the_others_draw_theirs(policy):
    drawn = []
    for key in jax.random.split(jax.random.key(1), 4):
        likeliest, other = likeliest_and_drawn(policy, key)
        assert same(act(policy, jnp.int32(0), key), likeliest)
        assert same(act(policy, jnp.int32(1), key), other)
        drawn.append(same(other, likeliest))
    assert not all(drawn)
