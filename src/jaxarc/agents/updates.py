"""One compiled call of training: a few updates, each a rollout and the steps of the optimizer on it."""

import dataclasses
import functools
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float32, Int8, Int32, Key, UInt32

from jaxarc.agents import ppo, reinforce
from jaxarc.agents.cloning import CloningExamples, clone_examples, clone_expert
from jaxarc.agents.own_parts import rewarded
from jaxarc.agents.policy import ActorCritic, EditPolicy
from jaxarc.agents.ppo import (
    EpisodeCounts,
    LearnerState,
    Losses,
    TrainConfig,
    Trajectories,
    collect,
    make_optimizer,
    make_update_batch,
)
from jaxarc.agents.predictor import (
    Predictor,
    PredictorState,
    answer_shown_config,
    learn_answers,
    puzzle_of,
    with_answer,
)
from jaxarc.config import AgentConfig, CurriculumConfig, JaxArcConfig
from jaxarc.datasets import TaskSet
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.evaluation import TaskResults, play_every_task
from jaxarc.evaluation.solve_rate import first_state
from jaxarc.experts import GreedyPainter
from jaxarc.fusion import compiles_for_cpu
from jaxarc.nn.layers import products_in
from jaxarc.parallel.mesh import DATA, REPLICATED, SPLIT, UNSHARDED, DataShard, place
from jaxarc.tasks import uniform_weights
from jaxarc.tasks.buffer import TaskGenerator
from jaxarc.tasks.curriculum import (
    Curriculum,
    apply_counts,
    count_episodes,
    count_played_tasks,
    curriculum_weights,
    effective_task_count,
    start_curriculum,
)
from jaxarc.types import Observation
from jaxarc.unroll import BatchPolicy
from jaxarc.wrappers import AutoReset, EpisodeStatistics
from jaxarc.wrappers.episode_statistics import StatisticsState

Tree = TypeVar("Tree")
Result = TypeVar("Result")
ALGORITHMS: Final = MappingProxyType({"ppo": ppo.update, "reinforce": reinforce.update})
"""What improves a policy on its trajectories, by ``agent.algorithm``."""


class TrainingState(eqx.Module):
    """Everything that training changes; in a run of K seeds every leaf has a leading axis K.

    Of a run on several canvases, ``env_states`` and ``curriculum`` are tuples with one of each canvas.
    """

    learner: LearnerState
    predictor_state: PredictorState | None  # None where the answer is shown
    env_states: StatisticsState  # of B environments
    curriculum: Curriculum  # of the training tasks
    key: UInt32[Array, "words"]  # for the next update; never used before

    @property
    def players(self) -> tuple[ActorCritic, Predictor | None]:
        """The policy that is evaluated, and what predicts its targets."""
        return self.learner.policy, None if self.predictor_state is None else self.predictor_state.predictor


class Progress(NamedTuple):
    """The metrics of a compiled call: sums over its episodes, means of its losses, and the state of the curriculum."""

    episodes: EpisodeCounts
    losses: Losses
    answer_loss: Float32[Array, ""] | None  # of the predictor of answers, in nats a cell; None where there is none
    tasks_played: Int32[Array, ""]  # since training began
    effective_tasks: Float32[Array, ""]  # that the next episodes are drawn from; see effective_task_count


@functools.partial(jax.jit, static_argnames=("train_config", "curriculum"))
def start_training(
    keys: Key[Array, " K"],
    params: EnvParams,
    train_config: TrainConfig,
    curriculum: CurriculumConfig,
    examples: CloningExamples | None = None,
    policies: ActorCritic | None = None,
) -> TrainingState:
    """Make a fresh state for each seed; its policy starts with what there is to imitate, from the examples if given.

    Args:
        keys: of each seed.
        params: tasks and rules.
        train_config: how to learn.
        curriculum: of the tasks.
        examples: what policies imitate in place of the expert.
        policies: that go on here, leaves [K, ...]; fresh ones by default.
    """
    start = lambda given, params: start_seed(given[0], params, train_config, curriculum, examples, given[1])
    return _each_seed(start, (keys, policies), params, None)


def start_seed(
    key: Array,
    params: EnvParams,
    train_config: TrainConfig,
    curriculum: CurriculumConfig,
    examples: CloningExamples | None = None,
    policy: ActorCritic | None = None,
) -> TrainingState:
    """Make a fresh policy if none is given, its optimizer, first states of the environments and a curriculum."""
    key_policy, key_envs, key_state, key_predictor, key_clone = jax.random.split(key, 5)
    shown = answer_shown_params(params, train_config)
    policy = make_policy(shown, key_policy, train_config) if policy is None else policy
    optimizer_state = make_optimizer(train_config).init(eqx.filter(policy, eqx.is_array))
    env = environment_of(params, train_config.agent)
    env_states, _ = jax.vmap(env.reset, (0, None))(jax.random.split(key_envs, train_config.agent.num_envs), shown)
    if examples is not None:
        policy = clone_examples(policy, examples, key_clone, train_config.cloning, train_config.agent)
    elif train_config.cloning.num_updates:
        policy, env_states, _ = clone_expert(
            policy, GreedyPainter().act, env, shown, env_states, key_clone, train_config.cloning, train_config.agent
        )
    return TrainingState(
        learner=LearnerState(policy, optimizer_state, jnp.int32(0)),
        predictor_state=PredictorState.create(key_predictor, train_config) if train_config.answer.is_hidden else None,
        env_states=env_states,
        curriculum=start_curriculum(params.weights, curriculum),
        key=jax.random.key_data(key_state),
    )


# What plays a run's episodes and chooses in them, by the class of its params; that of levels is agents/games/levels.py.
@functools.singledispatch
def environment_of(params: EnvParams, agent: AgentConfig) -> EpisodeStatistics:
    """Return the environment that plays one episode after the other, and rewards the agent."""
    return EpisodeStatistics(AutoReset(rewarded(agent.reward, params)))


@functools.singledispatch
def make_policy(params: EnvParams, key: Array, train_config: TrainConfig) -> ActorCritic:
    """Make a fresh policy for these tasks, with the answer shown."""
    return EditPolicy.create(key, params.config, train_config.network)


@functools.singledispatch
def play_all(params: EnvParams, policy: BatchPolicy, shard: DataShard) -> TaskResults:
    """Play every task once from its start."""
    return play_every_task(policy, params, shard=shard)


@functools.singledispatch
def make_params(task_set: TaskSet | TaskGenerator, config: JaxArcConfig) -> Any:
    """Put the tasks on the device, each as likely as any other.

    Raises:
        ValueError: a task does not fit the canvas.
    """
    if isinstance(task_set, TaskGenerator):
        return EnvParams(task_set, uniform_weights(task_set.num_tasks), config)
    buffer = task_set.buffer(config.grid_shape).with_symmetries(config.augmentation.num_symmetries)
    return EnvParams(buffer, uniform_weights(len(task_set)), config)


@functools.partial(jax.jit, static_argnames=("train_config", "length", "mesh", "over"))
def run_updates(
    state: TrainingState,
    params: EnvParams,
    train_config: TrainConfig,
    length: int,
    mesh: Mesh | None = None,
    over: str = "seeds",
) -> tuple[TrainingState, Progress]:
    """Collect and learn ``length`` times with every seed; all leaves of the progress have a leading axis K.

    Args:
        state: see :func:`place_state`.
        params: on all devices of the mesh.
        train_config: how to learn.
        length: number of updates.
        mesh: whose devices along the axis ``"data"`` share the work; one device when left out.
        over: what is split over them. ``"seeds"``: each device has agents of its own, and in one process the results
            are the same bit for bit on any number of devices. ``"environments"``: each has a part of every agent's
            environments, the gradients are averaged, and the results are the same but for rounding.
    """
    shard = _data_shard(mesh, over)
    specs = state_specs(over)
    each = lambda state, params: run_seed(state, params, train_config, length, shard=shard)
    with products_in(train_config.network.precision):
        return _each_seed(each, state, params, mesh, specs, (specs, _split_of(over)))


def run_seed(
    state: TrainingState,
    params: EnvParams,
    train_config: TrainConfig,
    length: int,
    env: EpisodeStatistics | None = None,
    shard: DataShard = UNSHARDED,
) -> tuple[TrainingState, Progress]:
    """Collect and learn ``length`` times with one seed, of the updates of the train_config.

    Episodes are drawn by the weights of the state's curriculum, not those of the params. The environments of the state
    are this device's share of all.
    """
    env = env or environment_of(params, train_config.agent)
    optimizer = make_optimizer(train_config)
    update = ALGORITHMS[train_config.agent.algorithm]
    shown = answer_shown_params(params, train_config)

    def once(state: TrainingState, _: None) -> tuple[TrainingState, tuple]:
        keys = jax.random.split(jax.random.wrap_key_data(state.key), 4)
        key_rollout, key_update, key_state, key_answers = keys
        weights = curriculum_weights(state.curriculum)
        # Play, learn, count, and draw the next tasks by the new counts: every update
        # sees the weights of those before it.
        drawn = dataclasses.replace(shown, weights=weights)
        env_states, trajectories, played, counts = collect(
            state.learner.policy, env, drawn, state.env_states, key_rollout, train_config.agent.rollout_steps, shard
        )
        learner, losses = update(state.learner, key_update, trajectories, train_config, optimizer, shard)
        score = _value_errors(trajectories, train_config.agent) if state.curriculum.config.kind == "replay" else None
        by_task = count_episodes(state.curriculum.base_weights.shape[-1], *played, score)
        curriculum = apply_counts(state.curriculum, shard.sum(by_task))
        predictor_state = state.predictor_state
        answer_loss = None
        if predictor_state is not None and train_config.answer.source == "predicted":  # a search learns nothing
            puzzles = dataclasses.replace(params, weights=weights)
            predictor_state, answer_loss = learn_answers(predictor_state, key_answers, puzzles, train_config, shard)
        state = TrainingState(learner, predictor_state, env_states, curriculum, jax.random.key_data(key_state))
        return state, (counts, losses, answer_loss)

    state, (counts, losses, answer_losses) = jax.lax.scan(once, state, None, length)
    return state, Progress(
        episodes=shard.sum(jax.tree.map(lambda x: x.sum(axis=0, dtype=x.dtype), counts)),
        losses=jax.tree.map(jnp.mean, losses),
        answer_loss=None if answer_losses is None else answer_losses.mean(),
        tasks_played=count_played_tasks(state.curriculum),
        effective_tasks=effective_task_count(curriculum_weights(state.curriculum)),
    )


@functools.partial(jax.jit, static_argnames=("mesh", "over"))
def measure(
    players: tuple[ActorCritic, Predictor | None], params: EnvParams, mesh: Mesh | None = None, over: str = "seeds"
) -> TaskResults:
    """Play every task with the greedy policy of each seed; leaves [K, T].

    ``players`` are policies, and what predicts their targets where the answer is hidden, leaves [K, ...]. With a mesh
    the seeds are split over it, or, where training splits the environments, the tasks.
    """
    shard = _data_shard(mesh, over)
    spec = _split_of(over)

    def play(players: tuple[ActorCritic, Predictor | None], params: EnvParams) -> TaskResults:
        return play_all(params, _greedy(players, params), shard)

    return _each_seed(play, players, params, mesh, spec, spec)


def place_state(state: TrainingState, mesh: Mesh, over: str) -> TrainingState:
    """Put each part of a state on the devices that work on it; see :func:`run_updates`."""
    return jax.tree.map(lambda spec, part: place(part, mesh, spec), state_specs(over), state)


def state_specs(over: str) -> Any:
    """Return the placement of a state on a mesh: a state with a ``PartitionSpec`` for every part."""
    shared = SPLIT if over == "seeds" else REPLICATED
    environments = SPLIT if over == "seeds" else PartitionSpec(None, DATA)  # behind the axis of seeds
    parts: dict[str, Any] = {field.name: shared for field in dataclasses.fields(TrainingState)}
    return TrainingState(**{**parts, "env_states": environments})


def answer_shown_params(params: EnvParams, train_config: TrainConfig) -> EnvParams:
    """Return the params in which the policy learns to edit: those of the run, with the answer shown."""
    if not train_config.answer.is_hidden:
        return params
    return dataclasses.replace(params, config=answer_shown_config(params.config))


def _greedy(players: tuple[ActorCritic, Predictor | None], params: EnvParams) -> BatchPolicy:
    policy, predictor = players
    answers = None if predictor is None else _predict_all(predictor, params.without_augmentation())

    def act(task_index: Array, observation: Observation, states: Any) -> tuple[Any, None]:
        shown = observation if answers is None else with_answer(observation, answers[task_index])
        return policy.on_canvas_of(shown).act(shown), None

    return act


def _predict_all(predictor: Predictor, params: EnvParams) -> Int8[Array, "T H W"]:
    """Predict the answer of each task once, and not in each of its steps."""
    env = ArcEnvironment()
    observe = lambda task_index: env.observe(first_state(params, task_index), params)
    return predictor.predict(puzzle_of(jax.vmap(observe)(jnp.arange(params.tasks.num_tasks, dtype=jnp.int32))))


def _data_shard(mesh: Mesh | None, over: str) -> DataShard:
    """Return the part of an agent's environments that a device has."""
    return UNSHARDED if mesh is None or over == "seeds" else DataShard(DATA, mesh.shape[DATA])


def _split_of(over: str) -> PartitionSpec:
    """Return the placement on a mesh of results that every seed has."""
    return SPLIT if over == "seeds" else REPLICATED


def _each_seed(
    function: Callable[[Tree, EnvParams], Result],
    states: Tree,
    params: EnvParams,
    mesh: Mesh | None,
    in_specs: Any = SPLIT,
    out_specs: Any = SPLIT,
) -> Result:
    """Apply a function to each seed: on accelerators side by side, on a CPU one after the other.

    A CPU gains nothing from products of many small matrices at a time, and what runs only where it is needed, such as
    the values of truncated episodes, would run everywhere.
    """

    def on_a_device(states: Tree, params: EnvParams) -> Result:
        if compiles_for_cpu():
            return jax.lax.map(lambda state: function(state, params), states)
        return jax.vmap(function, (0, None))(states, params)

    if mesh is None:
        return on_a_device(states, params)
    # Seeds share nothing. Environments do, by collectives; JAX cannot know that these make all devices equal.
    specs = (in_specs, REPLICATED)
    spread = jax.shard_map(on_a_device, mesh=mesh, in_specs=specs, out_specs=out_specs, check_vma=False)
    return spread(states, params)


def _value_errors(trajectories: Trajectories, config: AgentConfig) -> Float32[Array, "S B"]:
    """Return the distance of each step's value from its target, the score of prioritized level replay."""
    samples = make_update_batch(trajectories, config.replace(normalize_advantages=False))
    return jnp.abs(samples.value_target - trajectories.value)
