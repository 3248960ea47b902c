"""Whether a surrogate earns its place: against its expert, and against an agent that learned for as long."""

import dataclasses
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Int32

from jaxarc.config import ConfigValidationError, JaxArcConfig, TaskConfig
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.evaluation import Actor, Played, play_every_task
from jaxarc.parallel.policy import Policy
from jaxarc.tasks import TaskSet
from jaxarc.training.metrics import read_metrics
from jaxarc.training.pairs import TrainingPairs, load_pairs
from jaxarc.training.run_folder import RunFolder
from jaxarc.training.saved_agent import load_agent, saved_experiment
from jaxarc.training.updates import make_params, measure
from jaxarc.types import Observation

_REPEATS: Final = 5  # timed calls of each player, in turn


@dataclass(frozen=True)
class Standings:
    """How one player did on the held-out pairs."""

    solved: float  # share of pairs, each played once from its input
    mean_steps: float | None  # on the pairs that were solved, the submit included; None where none was
    decisions_per_second: float | None = None  # None where it was not timed
    learning_seconds: float | None = None  # None where nothing was learned


def held_out_params(pairs: TrainingPairs, rules: JaxArcConfig) -> EnvParams:
    """Put the pairs that nobody learned from on the device, each a task of its own."""
    return make_params(TaskSet("held-out pairs", tuple(pairs.measured)[pairs.num_train :]), rules)


def hold_contest(
    policies: Mapping[str, Policy], task: TaskConfig, rules: JaxArcConfig, agents: Sequence[RunFolder] = ()
) -> dict[str, Standings]:
    """Let policies and trained agents play each held-out pair once, and time the decisions of the policies.

    All have the same number of steps. A policy draws other candidates at each step, by pair and step alone; an agent
    plays by the rules it learned by, its likeliest edits.

    Args:
        policies: of single observations, by name.
        task: the data sets; no agent may have learned from the one that is held out.
        rules: of the policies; observations tell the step count.
        agents: run folders.

    Raises:
        ConfigValidationError: an agent learned from what is held out, or no step count is shown.
        ValueError: its canvas is too small.
        CheckpointError: a run folder has no checkpoint that can be used.
    """
    if not rules.observation.include_step_count:
        raise ConfigValidationError(
            "a contest needs observation.include_step_count=true: each step draws other candidates"
        )
    params = held_out_params(load_pairs(task, rules.grid_shape), rules)
    speeds = time_decisions(policies, params)
    contest = {
        name: dataclasses.replace(standings(_play(policy, params)), decisions_per_second=speeds[name])
        for name, policy in policies.items()
    }
    for folder in agents:
        contest[folder.path.name] = _let_agent_play(folder, task, rules.environment.max_episode_steps)
    return contest


def standings(played: Played, learning_seconds: float | None = None) -> Standings:
    """Summarize how pairs were played."""
    solved, steps = np.asarray(played.solved), np.asarray(played.steps)
    mean_steps = float(steps[solved].mean()) if solved.any() else None
    return Standings(float(solved.mean()), mean_steps, learning_seconds=learning_seconds)


def time_decisions(policies: Mapping[str, Policy], params: EnvParams, batch_size: int = 256) -> dict[str, float]:
    """Measure how many decisions a second policies make on the same starts of episodes, in turn, medians.

    Each decision is whole: candidates are drawn, and one of them is chosen.
    """
    keys = jax.random.split(jax.random.key(0), batch_size)
    _, observations = jax.jit(jax.vmap(ArcEnvironment().reset, (0, None)))(keys, params)
    for policy in policies.values():
        jax.block_until_ready(_decide(policy, keys, observations))
    seconds: dict[str, list[float]] = {name: [] for name in policies}
    for _ in range(_REPEATS):
        for name, policy in policies.items():
            begun = time.perf_counter()
            jax.block_until_ready(_decide(policy, keys, observations))
            seconds[name].append(time.perf_counter() - begun)
    return {name: batch_size / statistics.median(times) for name, times in seconds.items()}


def _let_agent_play(folder: RunFolder, task: TaskConfig, max_steps: int) -> Standings:
    experiment = saved_experiment(folder, "best")
    if experiment.task.train_dataset == task.evaluation_dataset:
        raise ConfigValidationError(
            f"the agent of {folder.path} learned from {task.evaluation_dataset}, which is held out here"
        )
    rules = experiment.environment.with_fields(max_episode_steps=max_steps)
    params = held_out_params(load_pairs(task, rules.grid_shape), rules)
    agent = load_agent(folder, "best", rules=rules)
    played = measure(jax.tree.map(lambda leaf: leaf[None], agent), params)
    learned = read_metrics(folder.metrics)[-1].seconds
    return standings(jax.tree.map(lambda leaf: leaf[0], played), learned)


@eqx.filter_jit
def _play(policy: Policy, params: EnvParams) -> Played:
    return play_every_task(_actor_of(policy), params)


def _actor_of(policy: Policy) -> Actor:
    def choose(observation: Observation, task_index: Int32[Array, ""]) -> StructuredAction:
        key = jax.random.fold_in(jax.random.key(0), task_index)
        return policy(jax.random.fold_in(key, observation["step_count"]), observation)

    return jax.vmap(choose)


@eqx.filter_jit
def _decide(policy: Policy, keys: Array, observations: Observation) -> StructuredAction:
    return jax.vmap(policy)(keys, observations)
