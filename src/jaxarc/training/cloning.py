"""Let a policy imitate an expert in a batch of environments, before it learns by itself."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float32

from jaxarc.agents import EditPolicy, LearnerState
from jaxarc.agents.advantages import bootstrap_values, estimate_advantages
from jaxarc.agents.cloning import CloningExamples, CloningLosses, clone, make_cloning_optimizer, start_cloning
from jaxarc.config import AgentConfig, CloningConfig
from jaxarc.envs.params import EnvParams
from jaxarc.envs.structured_actions import BboxAction
from jaxarc.types import Observation, PRNGKey
from jaxarc.wrappers import EpisodeStatistics
from jaxarc.wrappers.episode_statistics import StatisticsState

Expert = Callable[[Observation], BboxAction]
"""From ``working_grid`` and ``target_grid``, int8[B, H, W], to the actions of a batch of environments."""


def clone_expert(
    policy: EditPolicy,
    expert: Expert,
    env: EpisodeStatistics,
    params: EnvParams,
    states: StatisticsState,
    key: PRNGKey,
    cloning: CloningConfig,
    agent: AgentConfig,
) -> tuple[EditPolicy, StatisticsState, CloningLosses]:
    """Take steps and imitate the expert on them, ``cloning.num_updates`` times.

    Some environments are played by the expert, the others by the policy, so that it also learns what to do where its
    own edits lead (DAgger, Ross et al. 2011, https://arxiv.org/abs/1011.0686). The expert always sees the answer,
    whether or not the policy does.

    Args:
        policy: starts the imitation.
        expert: acts in the operations that the policy knows.
        env: episode statistics around an auto-reset.
        params: tasks and rules.
        states: of ``agent.num_envs`` environments.
        key: for draws and minibatches.
        cloning: how long and how fast.
        agent: how many steps and minibatches make an update, discounts and weights.

    Returns:
        The policy, the states where the environments are now, and the losses with leaves [num_updates].
    """
    optimizer = make_cloning_optimizer(cloning, agent)

    def once(
        carry: tuple[LearnerState, StatisticsState], key_update: PRNGKey
    ) -> tuple[tuple[LearnerState, StatisticsState], CloningLosses]:
        learner, states = carry
        key_play, key_learn = jax.random.split(key_update)
        states, examples = collect_examples(
            learner.policy, expert, env, params, states, key_play, cloning.learner_share, agent
        )
        learner, losses = clone(learner, key_learn, examples, agent, optimizer)
        return (learner, states), losses

    start = (start_cloning(policy, optimizer), states)
    (learner, states), losses = jax.lax.scan(once, start, jax.random.split(key, cloning.num_updates))
    return learner.policy, states, losses


def clone_examples(
    policy: EditPolicy, examples: CloningExamples, key: PRNGKey, cloning: CloningConfig, agent: AgentConfig
) -> EditPolicy:
    """Imitate examples that are there already, ``cloning.num_updates`` times as many as make an update.

    Args:
        policy: starts the imitation.
        examples: leaves [N, ...], each as likely as any other in each draw.
        key: for draws and minibatches.
        cloning: how long and how fast.
        agent: how many samples and minibatches make an update.
    """
    optimizer = make_cloning_optimizer(cloning, agent)

    def once(learner: LearnerState, key_update: PRNGKey) -> tuple[LearnerState, None]:
        key_draw, key_learn = jax.random.split(key_update)
        drawn = jax.random.randint(key_draw, (agent.samples_per_update,), 0, examples.value_target.shape[0], jnp.int32)
        batch = jax.tree.map(lambda x: x[drawn], examples)
        return clone(learner, key_learn, batch, agent, optimizer)[0], None

    learner, _ = jax.lax.scan(once, start_cloning(policy, optimizer), jax.random.split(key, cloning.num_updates))
    return learner.policy


def collect_examples(
    policy: EditPolicy,
    expert: Expert,
    env: EpisodeStatistics,
    params: EnvParams,
    states: StatisticsState,
    key: PRNGKey,
    learner_share: float,
    agent: AgentConfig,
) -> tuple[StatisticsState, CloningExamples]:
    """Take ``agent.rollout_steps`` steps in each environment, and ask the expert before each of them.

    The first environments, as many as ``learner_share`` says, are played by the policy, the others by the expert.
    """
    take_steps = jax.vmap(env.step, (0, 0, None))
    is_learners = jnp.arange(agent.num_envs, dtype=jnp.int32) < round(learner_share * agent.num_envs)

    def step(states: StatisticsState, key_edit: PRNGKey) -> tuple[StatisticsState, tuple]:
        observation, inside = env.observe(states, params), states.env_state
        told = policy.from_action(expert({"working_grid": inside.working_grid, "target_grid": inside.target_grid}))
        own = policy.sample(key_edit, observation)
        played = jax.tree.map(lambda mine, other: jnp.where(is_learners, mine, other), own.edit, told)
        states, _, reward, done, _ = take_steps(states, policy.to_action(played), params)
        return states, (observation, told, reward, own.value, done)

    states, (observation, told, reward, value, done) = jax.lax.scan(
        step, states, jax.random.split(key, agent.rollout_steps)
    )
    last_value = policy.value(env.observe(states, params))
    examples = CloningExamples(observation, told, _value_targets(reward, value, last_value, done, agent))
    return states, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), examples)


def _value_targets(
    reward: Array, value: Array, last_value: Array, done: Array, agent: AgentConfig
) -> Float32[Array, "S B"]:
    """Estimate what each step was worth.

    Time that runs out counts as the end: an expert needs less, and who imitates it and is stuck gains nothing more.
    """
    following = bootstrap_values(value, last_value, value, done, jnp.zeros_like(done))
    return value + estimate_advantages(reward, value, following, done, agent.gamma, agent.gae_lambda)
