"""REINFORCE: its gradient, what its config refuses, and that it learns a task of one step."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_run import LEARNABLE

from jaxarc.agents import EditPolicy, LearnerState, TrainConfig, Trajectories, make_optimizer
from jaxarc.agents.ppo import UpdateBatch
from jaxarc.agents.reinforce import reinforce_loss, update
from jaxarc.config import (
    AgentConfig,
    AnswerConfig,
    CloningConfig,
    NetworkConfig,
    ScheduleConfig,
)

pytestmark = pytest.mark.usefixtures("standard_promotion")

ENVS, UPDATES = 64, 40
AGENT = AgentConfig(algorithm="reinforce", num_envs=ENVS, rollout_steps=1, num_minibatches=2, gae_lambda=1.0)
TRAIN_CONFIG = TrainConfig(
    AGENT, NetworkConfig(), ScheduleConfig(learning_rate=2e-2), AnswerConfig(), CloningConfig(), num_updates=UPDATES
)
RULES = LEARNABLE.with_fields(max_grid_height=1, max_grid_width=1)
OBSERVATION = {
    "working_grid": jnp.zeros((ENVS, 1, 1), jnp.int8),
    "target_grid": 1 + (jnp.arange(ENVS, dtype=jnp.int8) % 9)[:, None, None],
    "step_count": jnp.zeros(ENVS, jnp.int32),
}


def reward_of(edit):
    """1 for painting the color of the target."""
    is_right = (edit.kind == 0) & (edit.color == OBSERVATION["target_grid"][:, 0, 0])
    return is_right.astype(jnp.float32)


def make_learner():
    policy = EditPolicy.create(jax.random.key(0), RULES, NetworkConfig())
    return LearnerState(policy, make_optimizer(TRAIN_CONFIG).init(policy), jnp.int32(0))


def play(policy, key):
    """One step, with which the episode ends, in every environment."""
    output = policy.sample(key, OBSERVATION)
    ended = jnp.ones((1, ENVS), jnp.bool_)
    step = jax.tree.map(lambda x: x[None], (OBSERVATION, output.choice, output.log_prob, output.value))
    zeros = jnp.zeros((1, ENVS), jnp.float32)
    return Trajectories(*step, reward_of(output.choice)[None], ended, ~ended, zeros, zeros[0])


def test_it_learns_to_paint_the_color_of_the_target():
    optimizer = make_optimizer(TRAIN_CONFIG)

    def learn_once(learner, key):
        trajectories = play(learner.policy, key)
        learner, losses = update(learner, key, trajectories, TRAIN_CONFIG, optimizer)
        return learner, (trajectories.reward.mean(), losses)

    keys = jax.random.split(jax.random.key(1), UPDATES)
    rewards, losses = jax.jit(lambda: jax.lax.scan(learn_once, make_learner(), keys)[1])()
    assert rewards[:4].mean() < 0.3
    assert rewards[-4:].mean() > 0.8
    assert losses.approx_kl is None
    assert np.isfinite(losses.gradient_norm).all()


def test_the_gradient_is_that_of_the_log_probability_times_the_advantage():
    policy = jax.jit(make_learner)().policy
    edit = policy.greedy(OBSERVATION)
    samples = UpdateBatch(OBSERVATION, edit, jnp.zeros(ENVS), jnp.full(ENVS, 2.0), jnp.zeros(ENVS))
    zero = jnp.float32(0)
    config = AGENT.replace(value_weight=0.0)
    gradient = jax.jit(jax.grad(lambda policy: reinforce_loss(policy, samples, config, zero)[0]))(policy)
    log_prob = lambda policy: policy.evaluate(OBSERVATION, edit).log_prob.mean()
    expected = jax.tree.map(lambda x: -2 * x, jax.jit(jax.grad(log_prob))(policy))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), gradient, expected)
