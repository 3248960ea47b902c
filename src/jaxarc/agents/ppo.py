"""Proximal policy optimization (Schulman et al. 2017, https://arxiv.org/abs/1707.06347)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float32, PyTree

from jaxarc.agents.advantages import bootstrap_values, estimate_advantages
from jaxarc.agents.policy import Edit, EditPolicy
from jaxarc.config import PPOConfig
from jaxarc.types import Observation, PRNGKey


class Trajectories(NamedTuple):
    """What a batch of environments went through."""

    observation: Observation  # before each step, leaves [S, B, ...]
    edit: Edit  # leaves [S, B]
    log_prob: Float32[Array, "S B"]  # when the edit was drawn
    value: Float32[Array, "S B"]  # of the observation
    reward: Float32[Array, "S B"]
    terminated: Bool[Array, "S B"]
    truncated: Bool[Array, "S B"]
    final_value: Float32[Array, "S B"]  # of the final observation where truncated, else anything
    last_value: Float32[Array, " B"]  # of the observation after the last step


class Samples(NamedTuple):
    """What the loss reads of a step."""

    observation: Observation
    edit: Edit
    log_prob: Float32[Array, "*B"]
    advantage: Float32[Array, "*B"]  # of mean 0 and deviation 1 over an update
    value_target: Float32[Array, "*B"]


class Losses(NamedTuple):
    policy_loss: Float32[Array, ""]
    value_loss: Float32[Array, ""]
    entropy: Float32[Array, ""]
    divergence: Float32[Array, ""]  # of the old policy from the new, estimated from the samples
    clipped: Float32[Array, ""]  # share of samples whose ratio left the range


class Learner(eqx.Module):
    """The part of training that an update changes."""

    policy: EditPolicy
    optimizer_state: PyTree[Array]


def make_optimizer(config: PPOConfig, num_updates: int) -> optax.GradientTransformation:
    """Adam with clipped gradients and a learning rate that falls in a straight line over ``num_updates``."""
    steps = num_updates * config.num_epochs * config.num_minibatches
    schedule = optax.linear_schedule(config.learning_rate, config.final_learning_rate, steps)
    adam = optax.adam(schedule, b2=config.adam_b2, eps=1e-6)
    return optax.chain(optax.clip_by_global_norm(config.max_grad_norm), adam)


def update(
    learner: Learner,
    key: PRNGKey,
    trajectories: Trajectories,
    config: PPOConfig,
    optimizer: optax.GradientTransformation,
) -> tuple[Learner, Losses]:
    """Improve the policy on what it just went through; returns the losses averaged over all minibatches."""
    samples = make_samples(trajectories, config)

    def learn_minibatch(learner: Learner, batch: Samples) -> tuple[Learner, Losses]:
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch)
        gradient, losses = jax.grad(loss, has_aux=True)(learner.policy, flat, config)
        change, optimizer_state = optimizer.update(gradient, learner.optimizer_state)
        return Learner(eqx.apply_updates(learner.policy, change), optimizer_state), losses

    def learn_epoch(learner: Learner, key_epoch: PRNGKey) -> tuple[Learner, Losses]:
        return jax.lax.scan(learn_minibatch, learner, _minibatches(key_epoch, samples, config))

    learner, losses = jax.lax.scan(learn_epoch, learner, jax.random.split(key, config.num_epochs))
    return learner, jax.tree.map(jnp.mean, losses)


def make_samples(trajectories: Trajectories, config: PPOConfig) -> Samples:
    """Attach to each step how much better it went than expected, leaves [S, B, ...]."""
    ends = trajectories.terminated, trajectories.truncated
    following = bootstrap_values(trajectories.value, trajectories.last_value, trajectories.final_value, *ends)
    done = ends[0] | ends[1]
    advantage = estimate_advantages(
        trajectories.reward, trajectories.value, following, done, config.gamma, config.gae_lambda
    )
    return Samples(
        observation=trajectories.observation,
        edit=trajectories.edit,
        log_prob=trajectories.log_prob,
        advantage=(advantage - advantage.mean()) / (advantage.std() + 1e-6),
        value_target=advantage + trajectories.value,
    )


def loss(policy: EditPolicy, samples: Samples, config: PPOConfig) -> tuple[Float32[Array, ""], Losses]:
    """Weigh the clipped policy loss, the value's squared error and the entropy."""
    decision = policy.evaluate(samples.observation, samples.edit)
    log_ratio = decision.log_prob - samples.log_prob
    ratio = jnp.exp(log_ratio)
    bounded = jnp.clip(ratio, 1 - config.clip_range, 1 + config.clip_range)
    losses = Losses(
        policy_loss=-jnp.minimum(ratio * samples.advantage, bounded * samples.advantage).mean(),
        value_loss=jnp.square(decision.value - samples.value_target).mean(),
        entropy=decision.entropy.mean(),
        divergence=(ratio - 1 - log_ratio).mean(),
        clipped=(ratio != bounded).astype(jnp.float32).mean(),
    )
    return losses.policy_loss + config.value_weight * losses.value_loss - config.entropy_weight * losses.entropy, losses


def _minibatches(key: PRNGKey, samples: Samples, config: PPOConfig) -> Samples:
    """Shuffle the environments and cut them into minibatches of whole trajectories, leaves [minibatch, S, B, ...]."""
    order = jax.random.permutation(key, config.num_envs)

    def cut(x: Array) -> Array:
        parts = x[:, order].reshape(x.shape[0], config.num_minibatches, -1, *x.shape[2:])
        return jnp.moveaxis(parts, 1, 0)

    return jax.tree.map(cut, samples)
