import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.agents.policy import Edit, EditPolicy
from jaxarc.agents.ppo import Learner, Trajectories, _minibatches, loss, make_optimizer, make_samples, update
from jaxarc.config import ConfigValidationError, JaxArcConfig, PPOConfig

STEPS, ENVS = 4, 6
PPO = PPOConfig(num_envs=ENVS, rollout_steps=STEPS, num_minibatches=3, num_epochs=2, learning_rate=1e-2)
losses_of = jax.jit(lambda policy, samples: loss(policy, samples, PPO)[1])


@pytest.fixture(scope="module")
def policy():
    config = JaxArcConfig().with_fields(
        selection_format="bbox", max_grid_height=3, max_grid_width=3, reveal_target=True, include_step_count=True
    )
    return jax.jit(lambda key: EditPolicy.create(key, config, PPO))(jax.random.key(0))


@pytest.fixture(scope="module")
def trajectories(policy):
    """Every environment plays its own target; choosing its color pays 1."""
    keys = jax.random.split(jax.random.key(1), STEPS)
    observation = {
        "working_grid": jnp.zeros((STEPS, ENVS, 3, 3), jnp.int8),
        "target_grid": jnp.broadcast_to(jnp.arange(ENVS, dtype=jnp.int8)[:, None, None], (STEPS, ENVS, 3, 3)),
        "step_count": jnp.zeros((STEPS, ENVS), jnp.int32),
    }
    decision = jax.jit(jax.vmap(policy.sample))(keys, observation)
    nothing = jnp.zeros((STEPS, ENVS), jnp.bool_)
    return Trajectories(
        observation=observation,
        edit=decision.edit,
        log_prob=decision.log_prob,
        value=decision.value,
        reward=(decision.edit.color == jnp.arange(ENVS)[None]).astype(jnp.float32),
        terminated=~nothing,
        truncated=nothing,
        final_value=jnp.zeros((STEPS, ENVS)),
        last_value=jnp.zeros(ENVS),
    )


def test_minibatches_hold_whole_trajectories_and_every_environment_once(trajectories):
    batches = jax.jit(lambda key, x: _minibatches(key, make_samples(x, PPO), PPO))(jax.random.key(0), trajectories)
    targets = np.asarray(batches.observation["target_grid"])
    assert targets.shape == (3, STEPS, 2, 3, 3)
    assert (targets == targets[:, :1]).all()
    np.testing.assert_array_equal(np.sort(targets[:, 0, :, 0, 0].reshape(-1)), np.arange(ENVS))


def test_the_first_loss_is_made_of_ratios_of_one(policy, trajectories):
    samples = jax.jit(lambda x: make_samples(x, PPO))(trajectories)
    samples = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), samples)
    losses = losses_of(policy, samples)
    np.testing.assert_allclose(losses.policy_loss, 0.0, atol=1e-5)  # minus the mean advantage, which is 0
    np.testing.assert_allclose(losses.divergence, 0.0, atol=1e-5)
    assert losses.clipped == 0


@pytest.mark.usefixtures("standard_promotion")
def test_an_update_makes_better_edits_likelier_and_values_closer(policy, trajectories):
    optimizer = make_optimizer(PPO, 10)
    learner = Learner(policy, optimizer.init(policy))
    samples = jax.jit(lambda x: make_samples(x, PPO))(trajectories)
    flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), samples)
    after, losses = jax.jit(lambda learner, key: update(learner, key, trajectories, PPO, optimizer))(
        learner, jax.random.key(2)
    )
    change = jax.jit(EditPolicy.evaluate)(after.policy, flat.observation, flat.edit).log_prob - flat.log_prob
    assert np.corrcoef(change, flat.advantage)[0, 1] > 0.5
    assert losses_of(after.policy, flat).value_loss < losses_of(policy, flat).value_loss
    assert all(np.isfinite(part) for part in losses)


@pytest.mark.usefixtures("standard_promotion")
def test_an_update_keeps_every_type_so_that_a_loop_compiles_once(policy, trajectories):
    optimizer = make_optimizer(PPO, 10)
    learner = jax.jit(lambda: Learner(policy, optimizer.init(policy)))()
    after = jax.eval_shape(lambda x: update(x, jax.random.key(2), trajectories, PPO, optimizer)[0], learner)
    describe = lambda x: (x.shape, x.dtype, x.weak_type)
    assert jax.tree.map(describe, after) == jax.tree.map(describe, learner)


def test_edits_of_a_kind_that_needs_no_color_do_not_teach_the_color_head(policy):
    observation = {
        "working_grid": jnp.zeros((1, 3, 3), jnp.int8),
        "target_grid": jnp.ones((1, 3, 3), jnp.int8),
        "step_count": jnp.zeros(1, jnp.int32),
    }
    submit = Edit(*(jnp.array([part], jnp.int32) for part in (2, 0, 0, 0)))
    gradient = jax.jit(jax.grad(lambda policy: policy.evaluate(observation, submit).log_prob.sum()))(policy)
    assert not any(x.any() for x in jax.tree.leaves(gradient.network.color_layers))
    assert any(x.any() for x in jax.tree.leaves(gradient.network.kind_layers))


def test_a_batch_that_cannot_be_split_is_refused():
    with pytest.raises(ConfigValidationError, match=r"num_minibatches must divide num_envs.*got 5 and 6"):
        PPOConfig(num_envs=6, num_minibatches=5)
    with pytest.raises(ConfigValidationError, match="rollout_steps must be at least 1, got 0"):
        PPOConfig(rollout_steps=0)
