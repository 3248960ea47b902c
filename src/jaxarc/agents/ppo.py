"""Proximal policy optimization (Schulman et al. 2017, https://arxiv.org/abs/1707.06347)."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float32, Int8, Int32, PyTree

from jaxarc.agents.advantages import bootstrap_values, estimate_advantages
from jaxarc.agents.auxiliary import AuxiliaryLosses, Outcome, weigh
from jaxarc.agents.edits import Edit
from jaxarc.agents.policy import EditPolicy
from jaxarc.agents.train_config import TrainConfig
from jaxarc.config import AgentConfig
from jaxarc.nn.optimizers import entropy_weight_schedule, learning_rate_schedule
from jaxarc.parallel.shards import UNSHARDED, DataShard
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
    next_grid: Int8[Array, "S B H W"] | None  # the working grid after each step; None where nothing predicts it


class UpdateBatch(NamedTuple):
    """What the loss reads of a step."""

    observation: Observation
    edit: Edit
    log_prob: Float32[Array, "*B"]
    advantage: Float32[Array, "*B"]  # of mean 0 and deviation 1 over an update, if normalized
    value_target: Float32[Array, "*B"]
    outcome: Outcome | None  # for the auxiliary heads


class Losses(NamedTuple):
    policy_loss: Float32[Array, ""]
    value_loss: Float32[Array, ""]
    entropy: Float32[Array, ""]
    approx_kl: Float32[Array, ""]  # of the old policy from the new, estimated from the samples
    clip_fraction: Float32[Array, ""]  # share of samples whose ratio left the range
    gradient_norm: Float32[Array, ""]  # before it is clipped
    auxiliary: AuxiliaryLosses | None  # None without auxiliary heads


class LearnerState(eqx.Module):
    """The part of training that an update changes."""

    policy: EditPolicy
    optimizer_state: PyTree[Array]
    num_updates: Int32[Array, ""]  # so far


def make_optimizer(train_config: TrainConfig) -> optax.GradientTransformation:
    """Adam with clipped gradients and the learning rate of the train_config's schedule."""
    config = train_config.agent
    schedule = learning_rate_schedule(
        train_config.schedule, train_config.num_updates * config.num_epochs * config.num_minibatches
    )
    adam = optax.adam(schedule, b2=config.adam_b2, eps=1e-6)
    return optax.chain(optax.clip_by_global_norm(config.max_grad_norm), adam)


def update(
    learner: LearnerState,
    key: PRNGKey,
    trajectories: Trajectories,
    train_config: TrainConfig,
    optimizer: optax.GradientTransformation,
    shard: DataShard = UNSHARDED,
) -> tuple[LearnerState, Losses]:
    """Improve the policy on what it just went through; returns the losses averaged over all minibatches.

    Args:
        learner: the same on all devices.
        key: for the minibatches; the same on all devices.
        trajectories: of this device's environments.
        train_config: how to learn.
        optimizer: as :func:`make_optimizer` makes it.
        shard: which environments these are. The devices learn from the mean of their gradients, so all of them come
            to the same learner, which is that of one device with all environments, but for rounding.
    """
    config = train_config.agent
    samples = make_samples(trajectories, config, shard)
    entropy_weight = entropy_weight_schedule(train_config.schedule, train_config.num_updates)(learner.num_updates)

    def learn_minibatch(learner: LearnerState, batch: UpdateBatch) -> tuple[LearnerState, Losses]:
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch)
        gradient, losses = shard.mean(jax.grad(loss, has_aux=True)(learner.policy, flat, config, entropy_weight))
        losses = losses._replace(gradient_norm=optax.tree.norm(gradient))
        change, optimizer_state = optimizer.update(gradient, learner.optimizer_state)
        policy = eqx.apply_updates(learner.policy, change)
        return LearnerState(policy, optimizer_state, learner.num_updates), losses

    def learn_epoch(learner: LearnerState, key_epoch: PRNGKey) -> tuple[LearnerState, Losses]:
        return jax.lax.scan(learn_minibatch, learner, _minibatches(key_epoch, samples, config, shard))

    learner, losses = jax.lax.scan(learn_epoch, learner, jax.random.split(key, config.num_epochs))
    learner = eqx.tree_at(lambda x: x.num_updates, learner, learner.num_updates + 1)
    return learner, jax.tree.map(jnp.mean, losses)


def make_samples(trajectories: Trajectories, config: AgentConfig, shard: DataShard = UNSHARDED) -> UpdateBatch:
    """Attach to each step how much better it went than expected, leaves [S, B, ...].

    Advantages are normalized over all devices' environments, of which ``shard`` says that the trajectories are a part.
    """
    ends = trajectories.terminated, trajectories.truncated
    following = bootstrap_values(trajectories.value, trajectories.last_value, trajectories.final_value, *ends)
    done = ends[0] | ends[1]
    advantage = estimate_advantages(
        trajectories.reward, trajectories.value, following, done, config.gamma, config.gae_lambda
    )
    return UpdateBatch(
        observation=trajectories.observation,
        edit=trajectories.edit,
        log_prob=trajectories.log_prob,
        advantage=_normalized(advantage, shard) if config.normalize_advantages else advantage,
        value_target=advantage + trajectories.value,
        outcome=_outcome_of(trajectories, done),
    )


def loss(
    policy: EditPolicy, samples: UpdateBatch, config: AgentConfig, entropy_weight: Float32[Array, ""]
) -> tuple[Float32[Array, ""], Losses]:
    """Weigh the clipped policy loss, the value's squared error and the entropy."""
    output = policy.evaluate(samples.observation, samples.edit)
    log_ratio = output.log_prob - samples.log_prob
    ratio = jnp.exp(log_ratio)
    bounded = jnp.clip(ratio, 1 - config.clip_range, 1 + config.clip_range)
    losses = Losses(
        policy_loss=-jnp.minimum(ratio * samples.advantage, bounded * samples.advantage).mean(),
        value_loss=jnp.square(output.value - samples.value_target).mean(),
        entropy=output.entropy.mean(),
        approx_kl=(ratio - 1 - log_ratio).mean(),
        clip_fraction=(ratio != bounded).astype(jnp.float32).mean(),
        gradient_norm=jnp.float32(0),  # not known yet
        auxiliary=None
        if samples.outcome is None
        else policy.auxiliary_losses(samples.observation, samples.edit, samples.outcome),
    )
    total = losses.policy_loss + config.value_weight * losses.value_loss - entropy_weight * losses.entropy
    if losses.auxiliary is not None:
        total = total + weigh(losses.auxiliary, config)
    return total, losses


def _outcome_of(trajectories: Trajectories, done: Bool[Array, "S B"]) -> Outcome | None:
    """What the auxiliary heads are to predict; nothing is known before the first step of the trajectories."""
    if trajectories.next_grid is None:
        return None
    before = lambda x, first: jnp.concatenate([jnp.full_like(x[:1], first), x[:-1]])
    reward = trajectories.reward
    return Outcome(before(reward, 0), ~before(done, True), reward, trajectories.next_grid)


def _normalized(x: Float32[Array, "S B"], shard: DataShard) -> Float32[Array, "S B"]:
    centered = x - shard.mean(x.mean())
    deviation = jnp.sqrt(shard.mean(jnp.square(centered).mean()))
    return centered / (deviation + 1e-6)


def _minibatches(key: PRNGKey, samples: UpdateBatch, config: AgentConfig, shard: DataShard = UNSHARDED) -> UpdateBatch:
    """Shuffle the environments and cut them into minibatches of whole trajectories, leaves [minibatch, S, B, ...]."""
    order = jax.random.permutation(key, config.num_envs) if shard == UNSHARDED else _order_within(shard, key, config)

    def cut(x: Array) -> Array:
        parts = x[:, order].reshape(x.shape[0], config.num_minibatches, -1, *x.shape[2:])
        return jnp.moveaxis(parts, 1, 0)

    return jax.tree.map(cut, samples)


def _order_within(shard: DataShard, key: PRNGKey, config: AgentConfig) -> Int32[Array, " B"]:
    """Deal the environments of this device out to the minibatches.

    Of any ``num_minibatches`` neighbors each minibatch gets one, by lot. So each device has its equal part of each
    minibatch, no sample travels, and which environments make a minibatch does not depend on the number of devices.
    """
    count = config.num_minibatches
    neighbors = jnp.broadcast_to(jnp.arange(count, dtype=jnp.int32), (config.num_envs // count, count))
    lots = shard.local_slice(jax.random.permutation(key, neighbors, axis=1, independent=True))
    first = count * jnp.arange(lots.shape[0], dtype=jnp.int32)
    return (first[:, None] + lots).T.ravel()
