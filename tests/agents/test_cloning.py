"""What one update of cloning does to a policy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.agents import EditPolicy
from jaxarc.agents.cloning import CloningExamples, clone, cloning_loss, make_cloning_optimizer, start_cloning
from jaxarc.config import AgentConfig, CloningConfig, JaxArcConfig, NetworkConfig
from jaxarc.envs import BboxAction

COUNT, SIDE, NUM_UPDATES = 12, 3, 30
AGENT = AgentConfig(num_minibatches=3, num_envs=12)
OPTIMIZER = make_cloning_optimizer(CloningConfig(num_updates=NUM_UPDATES, learning_rate=2e-2), AGENT)
losses_of = jax.jit(lambda policy, examples: cloning_loss(policy, examples, AGENT)[1])
clone_once = jax.jit(lambda learner, key, examples: clone(learner, key, examples, AGENT, OPTIMIZER))

pytestmark = pytest.mark.usefixtures("standard_promotion")


@pytest.fixture(scope="module")
def policy():
    config = JaxArcConfig().with_fields(
        selection_format="bbox", max_grid_height=SIDE, max_grid_width=SIDE, reveal_target=True, include_step_count=True
    )
    return jax.jit(lambda key: EditPolicy.create(key, config, NetworkConfig()))(jax.random.key(0))


@pytest.fixture(scope="module")
def examples(policy):
    """Grids of the wrong color everywhere: the expert paints all; what it is worth grows with the color."""
    colors = jnp.arange(COUNT, dtype=jnp.int8) % 9 + 1
    zeros = jnp.zeros(COUNT, jnp.int32)
    corner = zeros + SIDE - 1
    target = jnp.broadcast_to(colors[:, None, None], (COUNT, SIDE, SIDE))
    observation = {"working_grid": jnp.zeros_like(target), "target_grid": target, "step_count": zeros}
    paint = BboxAction(colors.astype(jnp.int32), zeros, zeros, corner, corner)
    return CloningExamples(observation, policy.from_action(paint), colors.astype(jnp.float32) / 10)


@pytest.fixture(scope="module")
def cloned(policy, examples):
    """The learner after all updates that its optimizer is made for."""
    learner = start_cloning(policy, OPTIMIZER)
    with jax.numpy_dtype_promotion("standard"):
        for key in jax.random.split(jax.random.key(1), NUM_UPDATES):
            learner, _ = clone_once(learner, key, examples)
    return learner


def test_cloning_makes_the_experts_edits_likely_and_the_values_right(policy, examples, cloned):
    first, last = losses_of(policy, examples), losses_of(cloned.policy, examples)
    assert cloned.num_updates == NUM_UPDATES
    assert last.cloning_loss < 0.5 * first.cloning_loss
    assert last.value_loss < 0.5 * first.value_loss
    action = jax.jit(lambda policy: policy.act(examples.observation))(cloned.policy)
    assert (action.operation == examples.observation["target_grid"][:, 0, 0]).all()


def test_an_update_looks_at_every_example_once(examples, cloned):
    """The learning rate has fallen to 0, so minibatches average to what all examples give together."""
    after, losses = clone_once(cloned, jax.random.key(2), examples)
    whole = losses_of(cloned.policy, examples)
    np.testing.assert_allclose(losses.cloning_loss, whole.cloning_loss, rtol=1e-5)
    np.testing.assert_allclose(losses.value_loss, whole.value_loss, rtol=1e-5)
    assert losses.gradient_norm > 0
    for before, now in zip(jax.tree.leaves(cloned.policy), jax.tree.leaves(after.policy), strict=True):
        np.testing.assert_allclose(before, now, rtol=0, atol=1e-9)  # with 64-bit types the rate is 0 but for rounding
