"""Whether a surrogate earns its place: against its expert, and against an agent that learned for as long."""

import dataclasses
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Int32

from jaxarc.agents import EditPolicy
from jaxarc.agents.answer_predicting_policy import AnswerPredictingPolicy
from jaxarc.config import ConfigValidationError, JaxArcConfig, TaskConfig
from jaxarc.datasets import TaskSet
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.evaluation import BatchPolicy, TaskResults, play_every_task
from jaxarc.parallel.policy import Policy
from jaxarc.training.experiment import Experiment
from jaxarc.training.metrics import read_metrics
from jaxarc.training.pairs import TrainingPairs, contents_of, load_pairs, train_pair_contents
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


class Contest:
    """Held-out pairs, which policies and trained agents play once each; who may not play is refused at the start.

    All have the same number of steps. A policy draws other candidates at each step, by pair and step alone; an agent
    plays by the rules it learned by, its likeliest edits. Pairs that somebody learned from are left out for all; what
    rules made for an agent as it learned is not known any more, and not left out.

    Attributes:
        pairs: what is played, each a task of its own.
        num_left_out: pairs of the held-out data set that are not played.
    """

    def __init__(self, task: TaskConfig, rules: JaxArcConfig, agents: Sequence[RunFolder] = ()):
        """Load the pairs and the agents.

        Args:
            task: the data sets of the policies; of the one that is held out no agent may have learned everything.
            rules: of the policies; observations tell the step count.
            agents: run folders; one that is given twice plays once.

        Raises:
            ConfigValidationError: an agent learned from all that is held out, no step count is shown, or a run folder
                holds no agent.
            UnknownDatasetError: the data set that an agent learned from is gone.
            ValueError: an agent's canvas is too small.
            CheckpointError: a run folder has no checkpoint that can be used.
        """
        if not rules.observation.include_step_count:
            raise ConfigValidationError(
                "a contest needs observation.include_step_count=true: each step draws other candidates"
            )
        folders = list({folder.path.resolve(): folder for folder in agents}.values())
        experiments = [_experiment_of(folder) for folder in folders]
        self.pairs, self.num_left_out = _unseen_by_all(task, rules, dict(zip(folders, experiments, strict=True)))
        self._params, limit = make_params(self.pairs, rules), rules.environment.max_episode_steps
        self._rivals = [self._rival(*each, limit) for each in zip(folders, experiments, strict=True)]

    def hold(self, policies: Mapping[str, Policy]) -> dict[str, Standings]:
        """Let all play, and time the decisions of the policies.

        Args:
            policies: of single observations, by name.

        Returns:
            By name; an agent has that of its run folder, or the whole path where that name is taken.
        """
        speeds = time_decisions(policies, self._params)
        contest = {
            name: dataclasses.replace(standings(_play(policy, self._params)), decisions_per_second=speeds[name])
            for name, policy in policies.items()
        }
        names = [rival.path.name for rival in self._rivals]
        for name, rival in zip(names, self._rivals, strict=True):
            is_taken = name in policies or names.count(name) > 1
            contest[str(rival.path) if is_taken else name] = _let_play(rival)
        return contest

    def _rival(self, folder: RunFolder, experiment: Experiment, max_steps: int) -> "_Rival":
        rules = experiment.environment.with_fields(max_episode_steps=max_steps)
        agent, seconds = load_agent(folder, "best", rules=rules), read_metrics(folder.metrics)[-1].seconds
        return _Rival(folder.path.resolve(), agent, make_params(self.pairs, rules), seconds)


class _Rival(NamedTuple):
    """A trained agent that is ready to play."""

    path: Path  # of its run folder
    agent: EditPolicy | AnswerPredictingPolicy
    params: EnvParams  # the held-out pairs, and its own rules
    learning_seconds: float


def standings(played: TaskResults, learning_seconds: float | None = None) -> Standings:
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


def _experiment_of(folder: RunFolder) -> Experiment:
    try:
        return saved_experiment(folder, "best")
    except ConfigValidationError as error:
        raise ConfigValidationError(f"{folder.path} holds no agent of this version: {error}") from error


def _unseen_by_all(
    task: TaskConfig, rules: JaxArcConfig, agents: Mapping[RunFolder, Experiment]
) -> tuple[TaskSet, int]:
    """Return the held-out pairs that nobody learned from, and how many there are beside them."""
    pairs, learned = load_pairs(task, rules.grid_shape), set(train_pair_contents(task))
    held_out = tuple(pairs.measured)[pairs.num_train :]
    for folder, experiment in agents.items():
        mine = train_pair_contents(experiment.task)
        if all(contents_of(pair) <= mine for pair in held_out):
            raise ConfigValidationError(
                f"the agent of {folder.path} learned from {experiment.task.train_dataset}, which holds every pair of "
                f"{task.evaluation_dataset}, which is held out here; leave that agent out"
            )
        learned |= mine
    unseen = tuple(pair for pair in held_out if not contents_of(pair) <= learned)
    if not unseen:
        raise ConfigValidationError(
            f"the players learned from all {len(held_out)} pairs of {task.evaluation_dataset}, which is held out here; "
            "leave some of the agents out"
        )
    return TaskSet("held-out pairs", unseen), len(held_out) - len(unseen)


def _let_play(rival: _Rival) -> Standings:
    played = measure(jax.tree.map(lambda leaf: leaf[None], rival.agent), rival.params)
    return standings(jax.tree.map(lambda leaf: leaf[0], played), rival.learning_seconds)


@eqx.filter_jit
def _play(policy: Policy, params: EnvParams) -> TaskResults:
    return play_every_task(_batch_policy_of(policy), params)


def _batch_policy_of(policy: Policy) -> BatchPolicy:
    def choose(observation: Observation, task_index: Int32[Array, ""]) -> StructuredAction:
        key = jax.random.fold_in(jax.random.key(0), task_index)
        return policy(jax.random.fold_in(key, observation["step_count"]), observation)

    return jax.vmap(choose)


@eqx.filter_jit
def _decide(policy: Policy, keys: Array, observations: Observation) -> StructuredAction:
    return jax.vmap(policy)(keys, observations)
