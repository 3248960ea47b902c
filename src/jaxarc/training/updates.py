"""What a compiled call does: a few updates, each of a rollout and what is learned from it."""

import dataclasses
import functools
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float32, Int32, UInt32

from jaxarc.agents import EditPolicy, Learner, Trajectories, make_optimizer, update
from jaxarc.agents.ppo import Losses, make_samples
from jaxarc.agents.recipe import Recipe
from jaxarc.config import AgentConfig, CurriculumConfig, JaxArcConfig
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.evaluation import play_every_task
from jaxarc.tasks import TaskSet, uniform_weights
from jaxarc.tasks.curriculum import (
    Curriculum,
    count_played_tasks,
    curriculum_weights,
    effective_task_count,
    record,
    start_curriculum,
)
from jaxarc.training.rollout import EpisodeCounts, collect
from jaxarc.wrappers import AutoReset, EpisodeStatistics
from jaxarc.wrappers.episode_statistics import StatisticsState

_ENV = EpisodeStatistics(AutoReset(ArcEnvironment()))


class TrainingState(eqx.Module):
    """Everything that training changes."""

    learner: Learner
    env_states: StatisticsState  # of B environments
    curriculum: Curriculum  # of the learned tasks
    key: UInt32[Array, "words"]  # for the next update; never used before


class Progress(NamedTuple):
    """What a compiled call tells: sums of its updates' episodes, means of their losses, and how the tasks stand."""

    episodes: EpisodeCounts
    losses: Losses
    tasks_played: Int32[Array, ""]  # since training began
    effective_tasks: Float32[Array, ""]  # that the next episodes are drawn from; see effective_task_count


@functools.partial(jax.jit, static_argnames=("recipe", "curriculum"))
def start_training(key: Array, params: EnvParams, recipe: Recipe, curriculum: CurriculumConfig) -> TrainingState:
    """Make a fresh policy, its optimizer, the first states of the environments and a curriculum of unseen tasks."""
    key_policy, key_envs, key_state = jax.random.split(key, 3)
    policy = EditPolicy.create(key_policy, params.config, recipe.network)
    optimizer_state = make_optimizer(recipe).init(eqx.filter(policy, eqx.is_array))
    env_states, _ = jax.vmap(_ENV.reset, (0, None))(jax.random.split(key_envs, recipe.agent.num_envs), params)
    return TrainingState(
        learner=Learner(policy, optimizer_state, jnp.int32(0)),
        env_states=env_states,
        curriculum=start_curriculum(params.weights, curriculum),
        key=jax.random.key_data(key_state),
    )


@functools.partial(jax.jit, static_argnames=("recipe", "length"))
def run_updates(state: TrainingState, params: EnvParams, recipe: Recipe, length: int) -> tuple[TrainingState, Progress]:
    """Collect and learn ``length`` times, of the updates of the recipe.

    Episodes are drawn by the weights of the state's curriculum, not those of the params.
    """
    optimizer = make_optimizer(recipe)

    def once(state: TrainingState, _: None) -> tuple[TrainingState, tuple[EpisodeCounts, Losses]]:
        key_rollout, key_update, key_state = jax.random.split(jax.random.wrap_key_data(state.key), 3)
        drawn = dataclasses.replace(params, weights=curriculum_weights(state.curriculum))
        env_states, trajectories, played, counts = collect(
            state.learner.policy, _ENV, drawn, state.env_states, key_rollout, recipe.agent.rollout_steps
        )
        learner, losses = update(state.learner, key_update, trajectories, recipe, optimizer)
        score = _value_errors(trajectories, recipe.agent) if state.curriculum.config.kind == "replay" else None
        curriculum = record(state.curriculum, *played, score)
        return TrainingState(learner, env_states, curriculum, jax.random.key_data(key_state)), (counts, losses)

    state, (counts, losses) = jax.lax.scan(once, state, None, length)
    return state, Progress(
        episodes=jax.tree.map(lambda x: x.sum(axis=0, dtype=x.dtype), counts),
        losses=jax.tree.map(jnp.mean, losses),
        tasks_played=count_played_tasks(state.curriculum),
        effective_tasks=effective_task_count(curriculum_weights(state.curriculum)),
    )


@jax.jit
def measure(policy: EditPolicy, params: EnvParams) -> Bool[Array, " T"]:
    """Which pairs the greedy policy solves."""
    return play_every_task(policy.act, params)


def make_params(task_set: TaskSet, config: JaxArcConfig) -> EnvParams:
    """Put the tasks on the device, each as likely as any other.

    Raises:
        ValueError: a task does not fit the canvas.
    """
    buffer = task_set.buffer(config.grid_shape).with_symmetries(config.augmentation.num_symmetries)
    return EnvParams(buffer, uniform_weights(len(task_set)), config)


def _value_errors(trajectories: Trajectories, config: AgentConfig) -> Float32[Array, "S B"]:
    """How far each step's value was from what came, the score of prioritized level replay."""
    return jnp.abs(make_samples(trajectories, config).value_target - trajectories.value)
