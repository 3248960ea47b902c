"""Evaluate a trained surrogate: on held-out examples, in open loop, and as a policy that plays held-out pairs."""

import dataclasses
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Int32, Key

from jaxarc.agents import EditPolicy
from jaxarc.agents.experiment import Experiment, read_metrics
from jaxarc.agents.predictor import Predictor
from jaxarc.agents.saved_agent import load_policy, saved_experiment
from jaxarc.agents.updates import make_params, measure
from jaxarc.config import ConfigValidationError, JaxArcConfig, TaskConfig
from jaxarc.datasets import TaskSet
from jaxarc.envs.environment import ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.structured_actions import StructuredAction
from jaxarc.evaluation import TaskResults, play_every_task
from jaxarc.experts.lookahead import LookaheadAgent
from jaxarc.files import write_whole
from jaxarc.runs.checkpoint import load_checkpoint
from jaxarc.runs.folder import RunFolder
from jaxarc.runs.state import WhichCheckpoint, chosen_checkpoint
from jaxarc.surrogate.agent import SurrogateAgent
from jaxarc.surrogate.train_step import Model
from jaxarc.training.pairs import load_pairs
from jaxarc.training.seen_pairs import pairs_seen_by, without_seen
from jaxarc.training.surrogates.agreement import Agreement
from jaxarc.training.surrogates.dynamics import OpenLoopError, StepAccuracy, TransitionDataset
from jaxarc.training.surrogates.experiment import CANDIDATES, SurrogateExperiment
from jaxarc.training.surrogates.graphs import GraphAccuracy
from jaxarc.training.surrogates.task import SurrogateTask
from jaxarc.types import Observation
from jaxarc.unroll import BatchPolicy, Policy

_EPISODES_AT_ONCE: Final = 16  # few: while the last episodes end, the others' places compute for nothing
_REPEATS: Final = 5  # timed calls of each policy, interleaved


@dataclass(frozen=True)
class EvalResult:
    """The results of one policy on the held-out pairs, each played once from its input."""

    solved: float  # share of pairs
    mean_steps: float | None  # on the solved pairs, the submit included; None where none was solved
    decisions_per_second: float | None = None  # None where it was not timed
    learning_seconds: float | None = None  # None where nothing was learned


@dataclass(frozen=True)
class SurrogateEvaluation:
    """All measurements of a surrogate; None or empty where something was not measured."""

    checkpoint: int  # the update whose models were evaluated
    agreement: Agreement | None = None
    steps: StepAccuracy | None = None
    graphs: GraphAccuracy | None = None
    open_loop_errors: tuple[OpenLoopError, ...] = ()
    policies: Mapping[str, EvalResult] = dataclasses.field(default_factory=dict)  # by name of the policy
    num_left_out: int = 0  # held-out pairs that were not played, because a baseline learned from them
    precision: str = "float32"  # of the models' weights and products
    overrides: tuple[str, ...] = ()  # of the run's experiment, with which it was evaluated

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        agreement = None
        if self.agreement is not None:
            bins = [each._asdict() for each in self.agreement.calibration]
            agreement = self.agreement._asdict() | {"calibration": bins}
        graphs = None
        if self.graphs is not None:
            by_samples = {name: each._asdict() for name, each in self.graphs.by_samples.items()}
            bins = [each._asdict() for each in self.graphs.calibration]
            graphs = {"overall": self.graphs.overall._asdict(), "by_samples": by_samples, "calibration": bins}
        return {
            "checkpoint": self.checkpoint,
            "agreement": agreement,
            "graphs": graphs,
            "steps": None if self.steps is None else self.steps._asdict(),
            "open_loop_errors": [each._asdict() for each in self.open_loop_errors],
            "policies": {name: dataclasses.asdict(result) for name, result in self.policies.items()},
            "num_left_out": self.num_left_out,
            "precision": self.precision,
            "overrides": list(self.overrides),
        }


class Baseline(NamedTuple):
    """A trained agent that plays by the rules it learned by, its likeliest edits."""

    path: Path  # of its run folder
    agent: tuple[EditPolicy, Predictor | None]  # and what predicts its targets where answers are hidden
    params: EnvParams  # the held-out pairs, and its own rules
    learning_seconds: float


class HeldOutPairs(NamedTuple):
    """Pairs that neither the surrogate nor any baseline learned from, and the baselines that play them."""

    pairs: TaskSet  # each pair is a task
    params: EnvParams  # the pairs, and the rules of the policies
    baselines: tuple[Baseline, ...]
    num_left_out: int  # pairs of the held-out data set that a baseline learned from


def load_models(
    folder: RunFolder, tasks: Mapping[str, SurrogateTask], which: WhichCheckpoint = "best"
) -> dict[str, Model]:
    """Load the model of each task out of a run folder, without the optimizers.

    Args:
        folder: of the run.
        tasks: of its experiment.
        which: the checkpoint that agrees best with the expert, or the newest.

    Warns:
        DamagedCheckpointWarning: the checkpoint is damaged, and another one is used.

    Raises:
        CheckpointError: the folder has no checkpoint that can be used.
    """
    record = chosen_checkpoint(folder, which)
    models = {}
    for name, task in tasks.items():
        fresh = task.make_model(jax.random.key(0))
        # A fresh model gives structure and static fields; only the arrays come from the checkpoint.
        arrays, rest = eqx.partition(fresh, eqx.is_array)
        saved = load_checkpoint(folder.checkpoints.at(record.update), arrays, within=f"models.{name}")
        models[name] = eqx.combine(saved, rest)
    return models


def evaluate_models(
    tasks: Mapping[str, SurrogateTask], models: Mapping[str, Model], checkpoint: int
) -> SurrogateEvaluation:
    """Measure each model on the held-out examples of its task; the checkpoint is the update that made the models."""
    evaluation = SurrogateEvaluation(checkpoint)
    for name, task in tasks.items():
        measured = task.evaluate(models[name])
        if isinstance(measured, Agreement):
            evaluation = dataclasses.replace(evaluation, agreement=measured)
        elif isinstance(measured, StepAccuracy):
            evaluation = dataclasses.replace(evaluation, steps=measured)
        elif isinstance(measured, GraphAccuracy):
            evaluation = dataclasses.replace(evaluation, graphs=measured)
    return evaluation


def evaluate_surrogate(
    experiment: SurrogateExperiment,
    tasks: Mapping[str, SurrogateTask],
    models: Mapping[str, Model],
    checkpoint: int,
    agents: Sequence[RunFolder] = (),
    learning_seconds: float | None = None,
) -> SurrogateEvaluation:
    """Do what :func:`evaluate_models` does, add open-loop errors, and let a lookahead surrogate play held-out pairs.

    Args:
        experiment: of the surrogate.
        tasks: of the experiment, by name.
        models: of the tasks.
        checkpoint: the update that made the models.
        agents: run folders, whose agents play too; all are checked before anything is measured.
        learning_seconds: of the surrogate, to be reported beside those of the agents.

    Raises:
        ConfigValidationError, UnknownDatasetError, ValueError, CheckpointError: see :func:`load_held_out_pairs`.
    """
    plays = experiment.surrogate.problem == "lookahead" and CANDIDATES in tasks
    # All agents are loaded first: one that does not fit is named before minutes of measuring.
    held_out = load_held_out_pairs(experiment.task, experiment.environment, agents) if plays else None
    evaluation = evaluate_models(tasks, models, checkpoint)
    for name, task in tasks.items():
        if isinstance(task, TransitionDataset):
            errors = tuple(task.open_loop_errors(models[name]))
            evaluation = dataclasses.replace(evaluation, open_loop_errors=errors)
    if held_out is None:
        return evaluation
    rules = experiment.environment
    num_candidates = experiment.lookahead.num_candidates
    policies = {
        "surrogate": SurrogateAgent(models[CANDIDATES], rules, num_candidates),
        "expert": LookaheadAgent(rules, num_candidates),
    }
    results = compare_policies(policies, held_out)
    results["surrogate"] = dataclasses.replace(results["surrogate"], learning_seconds=learning_seconds)
    return dataclasses.replace(evaluation, policies=results, num_left_out=held_out.num_left_out)


def write_evaluation(folder: RunFolder, evaluation: SurrogateEvaluation) -> None:
    """Write it into a run folder, as JSON."""
    write_whole(folder.evaluation, (json.dumps(evaluation.as_dict(), indent=2) + "\n").encode())


def load_held_out_pairs(task: TaskConfig, rules: JaxArcConfig, agents: Sequence[RunFolder] = ()) -> HeldOutPairs:
    """Load the held-out pairs and the agents that play them beside the policies.

    All have the same number of steps. Pairs that any of them learned from are left out for all; pairs that rules made
    for an agent as it learned are not known any more, and not left out.

    Args:
        task: the data sets of the policies.
        rules: of the policies; observations show the step count.
        agents: run folders; one that is given twice plays once.

    Raises:
        ConfigValidationError: an agent learned from every held-out pair, no step count is shown, or a run folder
            holds no agent.
        UnknownDatasetError: the data set that an agent learned from is gone.
        ValueError: an agent's canvas is too small.
        CheckpointError: a run folder has no checkpoint that can be used.
    """
    if not rules.observation.include_step_count:
        raise ConfigValidationError(
            "to compare policies observation.include_step_count=true is needed: each step draws other candidates"
        )
    # By its real path each folder counts once, however it was spelled.
    folders = list({folder.path.resolve(): folder for folder in agents}.values())
    experiments = [_experiment_of(folder) for folder in folders]
    pairs, num_left_out = _pairs_without_training(task, rules, dict(zip(folders, experiments, strict=True)))
    max_steps = rules.environment.max_episode_steps
    baselines = [
        _load_baseline(folder, experiment, pairs, max_steps)
        for folder, experiment in zip(folders, experiments, strict=True)
    ]
    return HeldOutPairs(pairs, make_params(pairs, rules), tuple(baselines), num_left_out)


def compare_policies(policies: Mapping[str, Policy], held_out: HeldOutPairs) -> dict[str, EvalResult]:
    """Play each held-out pair once with each policy and each baseline, and time the decisions of the policies.

    A policy gets another key at each step, which depends on the pair and the step alone.

    Args:
        policies: of single observations, by name.
        held_out: see :func:`load_held_out_pairs`.

    Returns:
        By name; a baseline has that of its run folder, or the whole path where that name is taken.
    """
    speeds = time_decisions(policies, held_out.params)
    results = {}
    for name, policy in policies.items():
        played = summarize(_play(policy, held_out.params))
        results[name] = dataclasses.replace(played, decisions_per_second=speeds[name])
    names = [baseline.path.name for baseline in held_out.baselines]
    for name, baseline in zip(names, held_out.baselines, strict=True):
        is_taken = name in policies or names.count(name) > 1
        results[str(baseline.path) if is_taken else name] = _play_baseline(baseline)
    return results


def summarize(played: TaskResults, learning_seconds: float | None = None) -> EvalResult:
    """Summarize how pairs were played."""
    solved = np.asarray(played.solved)
    # Steps count on solved pairs only: an unsolved one lasts until its limit, whatever the policy is like.
    steps = np.asarray(played.steps)
    mean_steps = float(steps[solved].mean()) if solved.any() else None
    return EvalResult(float(solved.mean()), mean_steps, learning_seconds=learning_seconds)


def time_decisions(policies: Mapping[str, Policy], params: EnvParams, batch_size: int = 64) -> dict[str, float]:
    """Return decisions per second of each policy, the median over interleaved calls, on the same starts of episodes.

    A decision is whole: candidates are drawn, and one of them is chosen.
    """
    keys = jax.random.split(jax.random.key(0), batch_size)
    _, observations = jax.jit(jax.vmap(ArcEnvironment().reset, (0, None)))(keys, params)
    # One call of each compiles it. The timed calls then take turns, so that a slow moment of the machine falls on all.
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


def _load_baseline(folder: RunFolder, experiment: Experiment, pairs: TaskSet, max_steps: int) -> Baseline:
    rules = experiment.environment.with_fields(max_episode_steps=max_steps)
    agent = load_policy(folder, "best", rules=rules)
    seconds = read_metrics(folder.metrics)[-1].seconds
    return Baseline(folder.path.resolve(), agent, make_params(pairs, rules), seconds)


def _pairs_without_training(
    task: TaskConfig, rules: JaxArcConfig, agents: Mapping[RunFolder, Experiment]
) -> tuple[TaskSet, int]:
    """Return the held-out pairs that no policy learned from, and the number of the others."""
    pairs = load_pairs(task, rules.grid_shape, augmentation=rules.augmentation)
    held_out = TaskSet("held-out pairs", tuple(pairs.eval)[pairs.num_train :])
    unseen = tuple(held_out)
    for folder, experiment in agents.items():
        seen = pairs_seen_by(experiment.task, experiment.environment.augmentation)
        if not without_seen(held_out, seen):
            raise ConfigValidationError(
                f"the agent of {folder.path} learned from {experiment.task.train_dataset}, which holds every pair of "
                f"{task.evaluation_dataset}, which is held out here; leave that agent out"
            )
        # A pair that any of the agents learned from is left out for all.
        unseen = without_seen(unseen, seen)
    if not unseen:
        raise ConfigValidationError(
            f"the policies learned from all {len(held_out)} pairs of {task.evaluation_dataset}, which is held out "
            "here; leave some of the agents out"
        )
    return TaskSet("held-out pairs", unseen), pairs.num_left_out + len(held_out) - len(unseen)


def _play_baseline(baseline: Baseline) -> EvalResult:
    # ``measure`` plays the policies of several seeds side by side; this is a batch of one.
    one_seed = jax.tree.map(lambda leaf: leaf[None], baseline.agent)
    played = measure(one_seed, baseline.params)
    return summarize(jax.tree.map(lambda leaf: leaf[0], played), baseline.learning_seconds)


@eqx.filter_jit
def _play(policy: Policy, params: EnvParams) -> TaskResults:
    return play_every_task(_batch_policy_of(policy), params, _EPISODES_AT_ONCE)


def _batch_policy_of(policy: Policy) -> BatchPolicy:
    def choose(observation: Observation, task_index: Int32[Array, ""]) -> StructuredAction:
        # Task and step alone make the key, so a policy draws the same candidates
        # however many pairs are played together.
        key = jax.random.fold_in(jax.random.key(0), task_index)
        return policy(jax.random.fold_in(key, observation["step_count"]), observation)

    return lambda task_index, observation, states: (jax.vmap(choose)(observation, task_index), None)


@eqx.filter_jit
def _decide(policy: Policy, keys: Key[Array, " B"], observations: Observation) -> StructuredAction:
    return jax.vmap(policy)(keys, observations)
