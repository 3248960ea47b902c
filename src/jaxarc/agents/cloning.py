"""Behavior cloning from an expert that plays along, or from recorded traces, before a policy learns by itself."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float32, Int32

from jaxarc import constants as c
from jaxarc.agents.edits import Edit, from_action, kinds_of
from jaxarc.agents.own_parts import rewarded
from jaxarc.agents.policy import ActorCritic, EditPolicy
from jaxarc.agents.ppo import LearnerState, bootstrap_values, estimate_advantages
from jaxarc.config import AgentConfig, CloningConfig
from jaxarc.datasets import TaskSet
from jaxarc.envs.params import EnvParams
from jaxarc.envs.structured_actions import BboxAction, StructuredAction
from jaxarc.errors import JaxarcError
from jaxarc.evaluation.solve_rate import first_state
from jaxarc.experts.host_canvas import check_action
from jaxarc.tasks import UnknownTaskError
from jaxarc.traces.trace_files import PairFinder, TraceLine, read_trace_file
from jaxarc.types import Observation, PRNGKey
from jaxarc.unroll import replay_actions, unroll
from jaxarc.wrappers import EpisodeStatistics
from jaxarc.wrappers.episode_statistics import StatisticsState

Chooser = Callable[[Observation], BboxAction]
"""From ``working_grid`` and ``target_grid``, int8[B, H, W], to the actions of a batch of environments."""

_TOGETHER: Final = 256  # traces that are replayed side by side
_FORMAT: Final = "bbox"  # of the actions that policies know


class CloningExamples(NamedTuple):
    """Examples to clone: N observations, each with the edit of an expert and the value to expect."""

    observation: Observation  # leaves [N, ...]
    edit: Edit  # of the expert, leaves [N]
    value_target: Float32[Array, " N"]  # the discounted reward from there on, or an estimate of it


class CloningLosses(NamedTuple):
    cloning_loss: Float32[Array, ""]  # minus the log-probability of the expert's edit
    value_loss: Float32[Array, ""]
    gradient_norm: Float32[Array, ""]  # before it is clipped


def clone_expert(
    policy: ActorCritic,
    expert: Chooser,
    env: EpisodeStatistics,
    params: EnvParams,
    states: StatisticsState,
    key: PRNGKey,
    cloning: CloningConfig,
    agent: AgentConfig,
) -> tuple[ActorCritic, StatisticsState, CloningLosses]:
    """Take steps and imitate the expert on them, ``cloning.num_updates`` times.

    Some environments are played by the expert, the others by the policy, so that it also learns what to do where its
    own edits lead (DAgger, Ross et al. 2011, https://arxiv.org/abs/1011.0686). The expert always sees the answer,
    whether or not the policy does.

    Returns:
        The policy, the states where the environments are now, and the losses with leaves [num_updates].
    """
    optimizer = make_cloning_optimizer(cloning, agent)

    def once(
        carry: tuple[LearnerState, StatisticsState], key_update: PRNGKey
    ) -> tuple[tuple[LearnerState, StatisticsState], CloningLosses]:
        # Each update plays with the newest policy, so the expert also answers in the
        # situations that this policy gets into.
        learner, states = carry
        key_play, key_learn = jax.random.split(key_update)
        states, examples = collect_examples(
            cast(EditPolicy, learner.policy), expert, env, params, states, key_play, cloning.learner_share, agent
        )
        learner, losses = clone(learner, key_learn, examples, agent, optimizer)
        return (learner, states), losses

    start = (start_cloning(policy, optimizer), states)
    (learner, states), losses = jax.lax.scan(once, start, jax.random.split(key, cloning.num_updates))
    return learner.policy, states, losses


def clone_examples(
    policy: ActorCritic, examples: CloningExamples, key: PRNGKey, cloning: CloningConfig, agent: AgentConfig
) -> ActorCritic:
    """Imitate examples that are there already, ``cloning.num_updates`` times as many as make an update."""
    optimizer = make_cloning_optimizer(cloning, agent)

    def once(learner: LearnerState, key_update: PRNGKey) -> tuple[LearnerState, None]:
        key_draw, key_learn = jax.random.split(key_update)
        # Draws with replacement: each of the N examples is as likely as any other in each of the S * B rows.
        drawn = jax.random.randint(key_draw, (agent.samples_per_update,), 0, examples.value_target.shape[0], jnp.int32)
        batch = jax.tree.map(lambda x: x[drawn], examples)
        return clone(learner, key_learn, batch, agent, optimizer)[0], None

    learner, _ = jax.lax.scan(once, start_cloning(policy, optimizer), jax.random.split(key, cloning.num_updates))
    return learner.policy


def collect_examples(
    policy: EditPolicy,
    expert: Chooser,
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
    policy = policy.on_canvas_of(env.observe(states, params))
    # With 8 environments and a share of 0.25, environments 0 and 1 are played by the policy.
    is_learners = jnp.arange(agent.num_envs, dtype=jnp.int32) < round(learner_share * agent.num_envs)

    def act(
        key: PRNGKey, observation: Observation, states: StatisticsState
    ) -> tuple[StructuredAction, tuple[Edit, Float32[Array, " B"]]]:
        # The expert reads the grids from the state, not from the observation: the policy may not be shown the answer.
        # Its edit is what is learned in every environment, whichever policy plays there.
        inside = states.env_state
        expert_edit = policy.from_action(
            expert({"working_grid": inside.working_grid, "target_grid": inside.target_grid})
        )
        output = policy.sample(key, observation)
        played = jax.tree.map(lambda mine, other: jnp.where(is_learners, mine, other), output.choice, expert_edit)
        return policy.to_action(played), (expert_edit, output.value)

    keys = jax.random.split(key, agent.rollout_steps)
    record = lambda taken: (taken.observation, *taken.extras, taken.reward, taken.done)
    states, recorded = unroll(env, params, act, states, keys, record)
    observation, expert_edit, value, reward, done = recorded
    last_value = policy.value(env.observe(states, params))
    examples = CloningExamples(observation, expert_edit, _value_targets(reward, value, last_value, done, agent))
    return states, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), examples)


def _value_targets(
    reward: Array, value: Array, last_value: Array, done: Array, agent: AgentConfig
) -> Float32[Array, "S B"]:
    """Estimate what each step was worth.

    Time that runs out counts as the end: an expert needs less, and who imitates it and is stuck gains nothing more.
    """
    # ``done`` as the ends and no truncation, so no final value is read; the third argument only fills the place.
    following = bootstrap_values(value, last_value, value, done, jnp.zeros_like(done))
    return value + estimate_advantages(reward, value, following, done, agent.gamma, agent.gae_lambda)


def make_cloning_optimizer(config: CloningConfig, agent: AgentConfig) -> optax.GradientTransformation:
    """Adam as the agent has it, with the learning rate of cloning."""
    schedule = optax.linear_schedule(config.learning_rate, 0.0, max(config.num_updates * agent.num_minibatches, 1))
    adam = optax.adam(schedule, b2=agent.adam_b2, eps=1e-6)
    return optax.chain(optax.clip_by_global_norm(agent.max_grad_norm), adam)


def start_cloning(policy: ActorCritic, optimizer: optax.GradientTransformation) -> LearnerState:
    """Make a learner that starts from a policy and whose optimizer knows nothing yet."""
    return LearnerState(policy, optimizer.init(eqx.filter(policy, eqx.is_array)), jnp.int32(0))


def clone(
    learner: LearnerState,
    key: PRNGKey,
    examples: CloningExamples,
    agent: AgentConfig,
    optimizer: optax.GradientTransformation,
) -> tuple[LearnerState, CloningLosses]:
    """Learn from each example once, in shuffled minibatches of one size; returns the losses averaged over them."""

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
    policy: ActorCritic, examples: CloningExamples, agent: AgentConfig
) -> tuple[Float32[Array, ""], CloningLosses]:
    """Weigh how unlikely the expert's edits are and the value's squared error."""
    output = policy.on_canvas_of(examples.observation).evaluate(examples.observation, examples.edit)
    losses = CloningLosses(
        cloning_loss=-output.log_prob.mean(),
        value_loss=jnp.square(output.value - examples.value_target).mean(),
        gradient_norm=jnp.float32(0),  # not known yet
    )
    return losses.cloning_loss + agent.value_weight * losses.value_loss, losses


class TraceExampleError(JaxarcError, ValueError):
    """The traces of a file cannot be imitated in a run."""


class _Replayed(NamedTuple):
    observation: Observation  # before each action, leaves [S, B, ...]
    reward: Float32[Array, "S B"]
    solved: Bool[Array, " B"]  # at the end


def load_examples(
    path: str | Path, tasks: TaskSet, train: TaskSet, params: EnvParams, gamma: float, reward: str = ""
) -> CloningExamples:
    """Read a file of traces and replay those of the training pairs by the rules of a run.

    Raises:
        TraceExampleError: a trace is of another format or solves nothing, or none is of a training pair. Names the
            line.
        InvalidActionError: an action is not one of the rules.
        TraceFileError: a line cannot be read.
        OSError: the file cannot be read.
    """
    # Pairs are compared by their grids: a training task is a pair with a name of its own, which no trace has.
    index_of = {_content(task.pairs[0]): index for index, task in enumerate(train)}
    finder = PairFinder(tasks)
    found = [
        (index_of[content], line)
        for line in read_trace_file(path)
        if (content := _content(_pair_of(line, tasks, finder))) in index_of
    ]
    if not found:
        raise TraceExampleError(
            f"{path} has no trace of the {len(train)} pairs that are learned from; export those "
            f"of {tasks.name}, demonstrations included: jaxarc traces export --pairs all"
        )
    for _, line in found:
        _check(line, params)
    # Traces of like length side by side waste fewer steps: 3, 4 and 60 actions in one batch all take 60 steps.
    by_length = sorted(found, key=lambda item: len(item[1].actions))
    parts = [
        _replay_some(by_length[i : i + _TOGETHER], params, gamma, reward) for i in range(0, len(by_length), _TOGETHER)
    ]
    return jax.tree.map(lambda *leaves: jnp.asarray(np.concatenate(leaves)), *parts)


def _content(pair: tuple[np.ndarray, np.ndarray]) -> tuple[Any, ...]:
    return tuple((grid.shape, grid.tobytes()) for grid in pair)


def _pair_of(line: TraceLine, tasks: TaskSet, finder: PairFinder) -> tuple[np.ndarray, np.ndarray]:
    pair_id = finder.find(line)
    try:
        return tasks.raw_task(pair_id.task_id).pair(pair_id.split, pair_id.pair_index)
    except (UnknownTaskError, IndexError) as error:
        raise TraceExampleError(f"{line.where}: {error}") from error


def _check(line: TraceLine, params: EnvParams) -> None:
    if line.spec.action_format != _FORMAT:
        raise TraceExampleError(
            f"{line.where}: actions in format {line.spec.action_format!r}, but policies act in {_FORMAT!r}; record "
            f"with --format {_FORMAT}"
        )
    config = params.config
    for index, action in enumerate(line.actions):
        where = f"{line.where}, action {index}"
        check_action(action, where, _FORMAT, config.grid_shape, config.legal_operations)


def _replay_some(
    found: Sequence[tuple[int, TraceLine]], params: EnvParams, gamma: float, reward: str
) -> CloningExamples:
    """Replay some traces side by side; returns an example for each action, on the host."""
    lengths = np.array([len(line.actions) for _, line in found])
    # [S, B, 5], operation and corners; behind its own actions a trace has submits, which an ended episode ignores.
    actions = np.zeros((lengths.max(), len(found), 5), np.int32)
    actions[..., 0] = c.SUBMIT
    for column, (_, line) in enumerate(found):
        actions[: len(line.actions), column] = line.actions
    boxes = BboxAction(*(jnp.asarray(part) for part in np.moveaxis(actions, -1, 0)))
    indices = jnp.array([index for index, _ in found], jnp.int32)
    # One compiled replay for all traces of the part; a solved end proves that the rules of this run allow the trace.
    replayed: _Replayed = jax.device_get(_replay(rewarded(reward), params.without_augmentation(), indices, boxes))
    for (_, line), solved in zip(found, replayed.solved, strict=True):
        if not solved:
            raise TraceExampleError(
                f"{line.where}: by the rules of this run the trace does not solve its pair; allow more steps than "
                f"environment.max_episode_steps={params.config.environment.max_episode_steps}, or record it again"
            )
    edit = from_action(boxes, kinds_of(params.config), params.config.grid_shape[1])
    # The sums come last step first, and are turned around: rewards 0 0 1 with gamma 0.5 are worth 0.25 0.5 1.
    returns = np.stack(list(_returns(np.asarray(replayed.reward), gamma))[::-1])
    # [S, B]: true for a trace's own actions. The padding drops out, and the rest becomes one list of examples.
    is_played = np.arange(len(actions))[:, None] < lengths[None]
    take = lambda leaf: np.asarray(leaf)[is_played]
    return jax.tree.map(take, CloningExamples(replayed.observation, edit, jnp.asarray(returns)))


def _returns(reward: np.ndarray, gamma: float) -> Iterator[np.ndarray]:
    """The discounted rewards from each step on, the last step first; an episode that has ended adds nothing."""
    following = np.zeros_like(reward[0])
    for now in reward[::-1]:
        following = (now + np.float32(gamma) * following).astype(np.float32)
        yield following


@jax.jit
def _replay(env: Any, params: EnvParams, indices: Int32[Array, " B"], actions: BboxAction) -> _Replayed:
    states = jax.vmap(first_state, (None, 0))(params, indices)
    record = lambda taken: (taken.observation, taken.reward)
    states, (observation, reward) = unroll(env, params, replay_actions, states, actions, record)
    return _Replayed(observation, reward, states.is_solved)
