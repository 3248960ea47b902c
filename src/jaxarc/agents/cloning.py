"""Behavior cloning: make the edits of an expert likelier, wherever they come from."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float32

from jaxarc.agents.edits import Edit
from jaxarc.agents.learner import LearnerState
from jaxarc.agents.policy import EditPolicy
from jaxarc.config import AgentConfig, CloningConfig
from jaxarc.types import Observation, PRNGKey


class CloningExamples(NamedTuple):
    """Examples to clone: N observations, each with the edit of an expert and the value to expect."""

    observation: Observation  # leaves [N, ...]
    edit: Edit  # of the expert, leaves [N]
    value_target: Float32[Array, " N"]  # the discounted reward from there on, or an estimate of it


class CloningLosses(NamedTuple):
    cloning_loss: Float32[Array, ""]  # minus the log-probability of the expert's edit
    value_loss: Float32[Array, ""]
    gradient_norm: Float32[Array, ""]  # before it is clipped


def make_cloning_optimizer(config: CloningConfig, agent: AgentConfig) -> optax.GradientTransformation:
    """Adam as the agent has it, with the learning rate of cloning."""
    schedule = optax.linear_schedule(config.learning_rate, 0.0, max(config.num_updates * agent.num_minibatches, 1))
    adam = optax.adam(schedule, b2=agent.adam_b2, eps=1e-6)
    return optax.chain(optax.clip_by_global_norm(agent.max_grad_norm), adam)


def start_cloning(policy: EditPolicy, optimizer: optax.GradientTransformation) -> LearnerState:
    """Make a learner that starts from a policy and whose optimizer knows nothing yet."""
    return LearnerState(policy, optimizer.init(eqx.filter(policy, eqx.is_array)), jnp.int32(0))


def clone(
    learner: LearnerState,
    key: PRNGKey,
    examples: CloningExamples,
    agent: AgentConfig,
    optimizer: optax.GradientTransformation,
) -> tuple[LearnerState, CloningLosses]:
    """Learn from each example once, in shuffled minibatches; returns the losses averaged over them.

    Args:
        learner: with the state of ``optimizer``; see :func:`start_cloning`.
        key: for the order.
        examples: as many as ``agent.num_minibatches`` divides.
        agent: says how many minibatches, and how much the value counts.
        optimizer: as :func:`make_cloning_optimizer` makes it.
    """

    def learn_minibatch(learner: LearnerState, batch: CloningExamples) -> tuple[LearnerState, CloningLosses]:
        gradient, losses = jax.grad(cloning_loss, has_aux=True)(learner.policy, batch, agent)
        losses = losses._replace(gradient_norm=optax.tree.norm(gradient))
        change, optimizer_state = optimizer.update(gradient, learner.optimizer_state)
        return LearnerState(eqx.apply_updates(learner.policy, change), optimizer_state, learner.num_updates), losses

    # [N, ...] -> [minibatches, N / minibatches, ...], in one random order for all leaves.
    order = jax.random.permutation(key, examples.value_target.shape[0])
    cut = lambda x: x[order].reshape(agent.num_minibatches, -1, *x.shape[1:])
    learner, losses = jax.lax.scan(learn_minibatch, learner, jax.tree.map(cut, examples))
    learner = eqx.tree_at(lambda x: x.num_updates, learner, learner.num_updates + 1)
    return learner, jax.tree.map(jnp.mean, losses)


def cloning_loss(
    policy: EditPolicy, examples: CloningExamples, agent: AgentConfig
) -> tuple[Float32[Array, ""], CloningLosses]:
    """Weigh how unlikely the expert's edits are and the value's squared error."""
    output = policy.evaluate(examples.observation, examples.edit)
    losses = CloningLosses(
        cloning_loss=-output.log_prob.mean(),
        value_loss=jnp.square(output.value - examples.value_target).mean(),
        gradient_norm=jnp.float32(0),  # not known yet
    )
    return losses.cloning_loss + agent.value_weight * losses.value_loss, losses
