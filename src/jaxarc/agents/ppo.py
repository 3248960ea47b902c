"""Proximal policy optimization, from top to bottom: collect steps, estimate advantages, the loss, the update.

What else an update of a run does stands in ``updates.py``. Another algorithm is a file like ``reinforce.py``, with an
``update`` of the same arguments, a line in ``updates.ALGORITHMS``, and a name in ``AgentConfig.algorithm``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float32, Int32, PyTree

from jaxarc.agents.policy import ActorCritic, PolicyOutput
from jaxarc.config import AgentConfig, AnswerConfig, CloningConfig, NetworkConfig, ScheduleConfig
from jaxarc.envs.params import EnvParams
from jaxarc.nn.update import entropy_weight_schedule, learning_rate_schedule
from jaxarc.parallel.mesh import UNSHARDED, DataShard
from jaxarc.types import Observation, PRNGKey
from jaxarc.unroll import Transition, unroll
from jaxarc.wrappers import EpisodeStatistics
from jaxarc.wrappers.episode_statistics import StatisticsState


@dataclass(frozen=True)
class TrainConfig:
    """Everything that the compiled part of training depends on; equal ones share a compiled program."""

    agent: AgentConfig
    network: NetworkConfig
    schedule: ScheduleConfig
    answer: AnswerConfig
    cloning: CloningConfig
    num_updates: int  # of the whole run: the schedules stretch over them
    canvases: tuple[int, ...] = ()  # minibatches on each canvas, where an update has several; the agent is of one

    @property
    def parts_of_update(self) -> int:
        """How often the policy learns in an update: once on each canvas."""
        return len(self.canvases) or 1

    @property
    def minibatches_of_update(self) -> int:
        """Minibatches on all canvases."""
        return sum(self.canvases) or self.agent.num_minibatches


class Trajectories(NamedTuple):
    """S steps of B environments."""

    observation: Observation  # before each step, leaves [S, B, ...]
    choice: Any  # leaves [S, B]
    log_prob: Float32[Array, "S B"]  # when the choice was drawn
    value: Float32[Array, "S B"]  # of the observation
    reward: Float32[Array, "S B"]
    terminated: Bool[Array, "S B"]
    truncated: Bool[Array, "S B"]
    final_value: Float32[Array, "S B"]  # of the final observation where truncated, else anything
    last_value: Float32[Array, " B"]  # of the observation after the last step


class PlayedSteps(NamedTuple):
    """The task of each step, and the endings."""

    task_index: Int32[Array, "S B"]
    ended: Bool[Array, "S B"]
    solved: Bool[Array, "S B"]  # whether the task is solved so far


class EpisodeCounts(NamedTuple):
    """Sums over the episodes that ended."""

    ended: Int32[Array, ""]
    solved: Int32[Array, ""]
    return_sum: Float32[Array, ""]
    length_sum: Int32[Array, ""]


def collect(
    policy: ActorCritic,
    env: EpisodeStatistics,
    params: EnvParams,
    states: StatisticsState,
    key: PRNGKey,
    num_steps: int,
    shard: DataShard = UNSHARDED,
) -> tuple[StatisticsState, Trajectories, PlayedSteps, EpisodeCounts]:
    """Take ``num_steps`` steps in each environment with choices drawn from the policy.

    Args:
        policy: what acts.
        env: episode statistics around an auto-reset.
        params: tasks and rules.
        states: of B environments.
        key: for the draws.
        num_steps: S, static.
        shard: of the environments that these are; the counts are of these alone.
    """
    policy = policy.on_canvas_of(env.observe(states, params))

    def act(key: PRNGKey, observation: Observation, states: StatisticsState) -> tuple[Any, PolicyOutput]:
        # The value belongs to the observation before the step. A truncated episode is over after it, and the
        # environment has begun the next one, so the value of its final observation is taken here.
        output = policy.sample(key, observation, shard)
        return policy.to_action(output.choice), output

    def record(transition: Transition[StatisticsState]) -> tuple[tuple, PlayedSteps, EpisodeCounts]:
        done = transition.done
        info = transition.info
        final_value = _value_where_needed(policy, info["final_observation"], info["truncated"])
        counts = EpisodeCounts(
            ended=done.sum(dtype=jnp.int32),
            solved=(done & info["success"]).sum(dtype=jnp.int32),
            return_sum=jnp.where(done, info["episode_return"], jnp.float32(0)).sum(),
            length_sum=jnp.where(done, info["episode_length"], jnp.int32(0)).sum(dtype=jnp.int32),
        )
        endings = info["terminated"], info["truncated"]
        learned_from = (transition.observation, transition.extras, transition.reward, *endings, final_value)
        return learned_from, PlayedSteps(info["task_index"], done, info["success"]), counts

    keys = jax.random.split(key, num_steps)
    states, (learned_from, played, counts) = unroll(env, params, act, states, keys, record)
    observation, output, reward, terminated, truncated, final_value = learned_from
    trajectories = Trajectories(
        observation=observation,
        choice=output.choice,
        log_prob=output.log_prob,
        value=output.value,
        reward=reward,
        terminated=terminated,
        truncated=truncated,
        final_value=final_value,
        last_value=policy.value(env.observe(states, params)),
    )
    return states, trajectories, played, jax.tree.map(lambda x: x.sum(axis=0, dtype=x.dtype), counts)


def _value_where_needed(
    policy: ActorCritic, observation: Observation, needed: Bool[Array, " B"]
) -> Float32[Array, " B"]:
    """Value the observations if any is needed: truncations are rare, and the network is most of a step's cost."""
    return jax.lax.cond(
        jnp.any(needed),
        lambda: policy.value(observation),
        lambda: jnp.zeros(needed.shape, jnp.float32),
    )


class UpdateBatch(NamedTuple):
    """Samples of a loss, one for each step."""

    observation: Observation
    choice: Any
    log_prob: Float32[Array, "*B"]  # when the choice was drawn
    advantage: Float32[Array, "*B"]  # of mean 0 and deviation 1 over an update, if normalized
    value_target: Float32[Array, "*B"]


def make_update_batch(trajectories: Trajectories, config: AgentConfig, shard: DataShard = UNSHARDED) -> UpdateBatch:
    """Attach to each step its advantage and the target of its value, leaves [S, B, ...].

    Advantages are normalized over the environments of all devices.
    """
    done = trajectories.terminated | trajectories.truncated
    next_values = bootstrap_values(
        trajectories.value,
        trajectories.last_value,
        trajectories.final_value,
        trajectories.terminated,
        trajectories.truncated,
    )
    # The target of the value is the advantage plus the value, which is the lambda-return; it takes the
    # advantage as estimated, not normalized.
    advantage = estimate_advantages(
        trajectories.reward, trajectories.value, next_values, done, config.gamma, config.gae_lambda
    )
    return UpdateBatch(
        observation=trajectories.observation,
        choice=trajectories.choice,
        log_prob=trajectories.log_prob,
        advantage=_normalize(advantage, shard) if config.normalize_advantages else advantage,
        value_target=advantage + trajectories.value,
    )


def estimate_advantages(
    rewards: Float32[Array, "S B"],
    values: Float32[Array, "S B"],
    next_values: Float32[Array, "S B"],
    dones: Bool[Array, "S B"],
    gamma: float,
    gae_lambda: float,
) -> Float32[Array, "S B"]:
    """Estimate advantages by GAE (Schulman et al. 2016, https://arxiv.org/abs/1506.02438).

    The scan runs from the last step to the first. Three steps of an episode that ends with the third, ``gamma=1`` and
    ``gae_lambda=0.5``:

        rewards      0     0     1
        values       0.2   0.4   0.8
        next_values  0.4   0.8   0      after the end nothing follows
        errors       0.2   0.4   0.2    reward + gamma * next value - value
        advantages   0.45  0.5   0.2    error + gamma * gae_lambda * advantage of the next step

    Args:
        rewards: of each step.
        values: expected from the observation that the step was taken on.
        next_values: expected after the step; see :func:`bootstrap_values`.
        dones: the episode ended with this step, so later rewards belong to another one.
        gamma: discount.
        gae_lambda: 0 trusts the values, 1 the rewards.
    """

    def step_back(
        next_advantage: Float32[Array, " B"], step: tuple[Float32[Array, " B"], Float32[Array, " B"]]
    ) -> tuple[Float32[Array, " B"], Float32[Array, " B"]]:
        # After an end ``continues`` is 0, so nothing of the next episode in the same environment comes through.
        error, continues = step
        advantage = error + gamma * gae_lambda * continues * next_advantage
        return advantage, advantage

    errors = rewards + gamma * next_values - values
    continues = (~dones).astype(jnp.float32)  # the next step belongs to the same episode
    _, advantages = jax.lax.scan(step_back, jnp.zeros_like(values[0]), (errors, continues), reverse=True)
    return advantages


def bootstrap_values(
    values: Float32[Array, "S B"],
    last_values: Float32[Array, " B"],
    final_values: Float32[Array, "S B"],
    terminated: Bool[Array, "S B"],
    truncated: Bool[Array, "S B"],
) -> Float32[Array, "S B"]:
    """Return the value after each step.

    It is 0 after an episode that terminated, the value of the final observation after one that was truncated, and the
    value of the next observation otherwise. With ``values=[0.2, 0.4]``, ``last_values=0.6`` and a final value of 0.9:

        step 0 terminated  [0.0, 0.6]
        step 0 truncated   [0.9, 0.6]
        neither            [0.4, 0.6]

    Args:
        values: of the observations of each step.
        last_values: of the observations after the last step.
        final_values: of the final observations; read only where an episode was truncated.
        terminated: the episode ended by its rules.
        truncated: the episode reached its step limit.
    """
    # The value of the next step is that of its own observation, which after an end is the first of a new episode; so
    # both kinds of ends replace it. Termination comes last, since no value follows it.
    following = jnp.concatenate([values[1:], last_values[None]])
    following = jnp.where(truncated, final_values, following)
    return jnp.where(terminated, jnp.float32(0), following)


def _normalize(x: Float32[Array, "S B"], shard: DataShard) -> Float32[Array, "S B"]:
    # Shards have equally many samples, so the mean of their means is the mean of all. The
    # variance is taken around it, in a second pass.
    centered = x - shard.mean(x.mean())
    deviation = jnp.sqrt(shard.mean(jnp.square(centered).mean()))
    return centered / (deviation + 1e-6)


class Losses(NamedTuple):
    """The parts of a loss, and what else describes an update; None where an algorithm has no such number."""

    policy_loss: Float32[Array, ""]
    value_loss: Float32[Array, ""]  # squared error
    entropy: Float32[Array, ""]  # in nats
    approx_kl: Float32[Array, ""] | None  # KL(old policy || new policy), estimated from the samples
    clip_fraction: Float32[Array, ""] | None  # share of samples whose ratio left the range
    gradient_norm: Float32[Array, ""]  # before it is clipped


LossFunction: TypeAlias = Callable[
    [ActorCritic, UpdateBatch, AgentConfig, Float32[Array, ""]], tuple[Float32[Array, ""], Losses]
]
"""From a policy, samples with leaves [N, ...], the config and the weight of the entropy to what is minimized."""


def ppo_loss(
    policy: ActorCritic, samples: UpdateBatch, config: AgentConfig, entropy_weight: Float32[Array, ""]
) -> tuple[Float32[Array, ""], Losses]:
    """Return the loss of proximal policy optimization (Schulman et al. 2017, https://arxiv.org/abs/1707.06347).

    It weighs the clipped policy loss, the value's squared error and the entropy.

    The ratio says how much likelier the policy makes a choice than the policy that drew it. Of the loss with the ratio
    and the loss with the clipped ratio the larger one counts, so nothing is gained beyond the range, but a step in the
    wrong direction is always taken back. With ``clip_range=0.2`` and an advantage of 1:

        ratio    clipped   policy loss   gradient
        0.5      0.8       -0.5          towards a larger ratio: the choice was good and became less likely
        1.0      1.0       -1.0          towards a larger ratio
        1.5      1.2       -1.2          none: likely enough
    """
    # The same choices under the policy as it is now: ratio = new probability / old, from the difference of logarithms.
    output = policy.evaluate(samples.observation, samples.choice)
    log_ratio = output.log_prob - samples.log_prob
    ratio = jnp.exp(log_ratio)
    clipped_ratio = jnp.clip(ratio, 1 - config.clip_range, 1 + config.clip_range)
    losses = Losses(
        policy_loss=-jnp.minimum(ratio * samples.advantage, clipped_ratio * samples.advantage).mean(),
        value_loss=jnp.square(output.value - samples.value_target).mean(),
        entropy=output.entropy.mean(),
        approx_kl=(ratio - 1 - log_ratio).mean(),  # the k3 estimator, http://joschu.net/blog/kl-approx.html
        clip_fraction=(ratio != clipped_ratio).astype(jnp.float32).mean(),
        gradient_norm=jnp.float32(0),  # filled in when the gradient is there
    )
    # The entropy is subtracted: a policy that still tries several choices has a smaller loss.
    total = losses.policy_loss + config.value_weight * losses.value_loss - entropy_weight * losses.entropy
    return total, losses


class LearnerState(eqx.Module):
    """The part of training that an update changes."""

    policy: ActorCritic
    optimizer_state: PyTree[Array]
    num_updates: Int32[Array, ""]  # so far, each canvas counted


def make_optimizer(train_config: TrainConfig) -> optax.GradientTransformation:
    """Return Adam on clipped gradients, with the learning rate of the schedule."""
    config = train_config.agent
    num_steps = train_config.num_updates * config.num_epochs * train_config.minibatches_of_update
    schedule = learning_rate_schedule(train_config.schedule, num_steps)
    adam = optax.adam(schedule, b2=config.adam_b2, eps=1e-6)
    return optax.chain(optax.clip_by_global_norm(config.max_grad_norm), adam)


def update(
    learner: LearnerState,
    key: PRNGKey,
    trajectories: Trajectories,
    train_config: TrainConfig,
    optimizer: optax.GradientTransformation,
    shard: DataShard = UNSHARDED,
    loss: LossFunction = ppo_loss,
) -> tuple[LearnerState, Losses]:
    """Take an optimizer step on each minibatch, ``num_epochs`` times over; returns the mean losses of all minibatches.

    Args:
        learner: the same on all devices.
        key: for the minibatches; the same on all devices.
        trajectories: of this device's environments.
        train_config: how to learn.
        optimizer: as :func:`make_optimizer` makes it.
        shard: the part of the environments that this device has. The devices learn from the mean of their gradients,
            so all of them reach the same learner, which is that of one device with all environments up to rounding.
        loss: of the algorithm.
    """
    config = train_config.agent
    # Advantages come from the policy that collected the steps, so they are computed once, before the first epoch.
    samples = make_update_batch(trajectories, config, shard)
    num_updates = learner.num_updates // train_config.parts_of_update
    entropy_weight: Any = entropy_weight_schedule(train_config.schedule, train_config.num_updates)(num_updates)

    def loss_of(policy: ActorCritic, samples: UpdateBatch) -> tuple[Float32[Array, ""], Losses]:
        return loss(policy.on_canvas_of(samples.observation), samples, config, entropy_weight)

    def learn_minibatch(learner: LearnerState, batch: UpdateBatch) -> tuple[LearnerState, Losses]:
        # [S, B, ...] -> [S * B, ...]: the loss takes samples one by one. All devices take the mean
        # gradient, so their policies stay equal.
        flat = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), batch)
        gradient, losses = shard.mean(jax.grad(loss_of, has_aux=True)(learner.policy, flat))
        losses = losses._replace(gradient_norm=optax.tree.norm(gradient))
        change, optimizer_state = optimizer.update(gradient, learner.optimizer_state)
        policy = eqx.apply_updates(learner.policy, change)
        return LearnerState(policy, optimizer_state, learner.num_updates), losses

    def learn_epoch(learner: LearnerState, key_epoch: PRNGKey) -> tuple[LearnerState, Losses]:
        return jax.lax.scan(learn_minibatch, learner, shuffle_into_minibatches(key_epoch, samples, config, shard))

    # Two nested scans, epochs and minibatches; losses have the leaves [epochs, minibatches].
    learner, losses = jax.lax.scan(learn_epoch, learner, jax.random.split(key, config.num_epochs))
    learner = eqx.tree_at(lambda x: x.num_updates, learner, learner.num_updates + 1)
    return learner, jax.tree.map(jnp.mean, losses)


def shuffle_into_minibatches(
    key: PRNGKey, samples: UpdateBatch, config: AgentConfig, shard: DataShard = UNSHARDED
) -> UpdateBatch:
    """Shuffle the environments and cut them into minibatches of whole trajectories, leaves [minibatch, S, B, ...].

    With 4 environments, 2 minibatches and the order 2, 0, 3, 1 the first minibatch holds the trajectories of
    environments 2 and 0, the second those of 3 and 1.
    """
    is_whole = shard == UNSHARDED
    order = jax.random.permutation(key, config.num_envs) if is_whole else _order_within(shard, key, config)

    def cut(x: Array) -> Array:
        # [S, B, ...] -> [S, minibatches, B / minibatches, ...] -> [minibatches, S, B / minibatches, ...].
        parts = x[:, order].reshape(x.shape[0], config.num_minibatches, -1, *x.shape[2:])
        return jnp.moveaxis(parts, 1, 0)

    return jax.tree.map(cut, samples)


def _order_within(shard: DataShard, key: PRNGKey, config: AgentConfig) -> Int32[Array, " B"]:
    """Deal the environments of this device out to the minibatches.

    Of any ``num_minibatches`` neighbors each minibatch gets one, at random. So each device has an equal part of each
    minibatch, no sample travels between devices, and the minibatches do not depend on the number of devices. With 2
    minibatches, environments 0 .. 3 and the draws [[1, 0], [0, 1]] the first minibatch gets 1 and 2, the other 0 and 3.
    """
    # Row r of ``neighbors`` is 0 .. count - 1, shuffled on its own; row r stands for the environments from r * count
    # on. Transposed and read line by line, the first entries of all rows come first: they make the first minibatch.
    count = config.num_minibatches
    neighbors = jnp.broadcast_to(jnp.arange(count, dtype=jnp.int32), (config.num_envs // count, count))
    draws = shard.local_slice(jax.random.permutation(key, neighbors, axis=1, independent=True))
    first = count * jnp.arange(draws.shape[0], dtype=jnp.int32)
    return (first[:, None] + draws).T.ravel()
