"""Evaluate a trained surrogate: on held-out examples, and as a policy that plays held-out pairs beside its expert."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Int32

from jaxarc.config.agent_training import WhichCheckpoint
from jaxarc.envs.environment import Action
from jaxarc.envs.params import EnvParams
from jaxarc.envs.state import ArcEnvState
from jaxarc.evaluation import TaskResults, play_every_task
from jaxarc.files import locate_run, write_whole
from jaxarc.runs.checkpoint import Checkpoint
from jaxarc.runs.folder import RunFolder, open_run_folder
from jaxarc.runs.kind import SavedRun
from jaxarc.surrogate.agreement import Agreement, GraphAccuracy
from jaxarc.surrogate.rules_task import SolvedShares, make_predictor
from jaxarc.surrogate.surrogate_experiment import make_task
from jaxarc.surrogate.surrogate_task import SurrogateTask
from jaxarc.surrogate.train_step import Model
from jaxarc.types import Observation
from jaxarc.unroll import Policy

_EPISODES_AT_ONCE: Final = 16  # few: while the last episodes end, the others' places compute for nothing


@dataclass(frozen=True)
class PlayedPairs:
    """The results of one policy on the held-out pairs, each played once from its input."""

    solved: float  # share of pairs
    mean_steps: float | None  # on the solved pairs, the submit included; None where none was solved


@dataclass(frozen=True)
class SurrogateEvaluation:
    """All measurements of a surrogate; None or empty where something was not measured."""

    checkpoint: int  # the update whose model was evaluated
    agreement: Agreement | None = None
    graphs: GraphAccuracy | None = None
    rules: SolvedShares | None = None
    policies: Mapping[str, PlayedPairs] = dataclasses.field(default_factory=dict)  # by name of the policy
    precision: str = "float32"  # of the model's weights and products
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
            "rules": None if self.rules is None else self.rules.by_set,
            "policies": {name: dataclasses.asdict(result) for name, result in self.policies.items()},
            "precision": self.precision,
            "overrides": list(self.overrides),
        }


def load_surrogate(run: str | Path, *, checkpoint: WhichCheckpoint = "best") -> Model:
    """Load the model of a surrogate from the folder of a run.

    ``edge_probabilities(jaxarc.load_surrogate("runs/NAME"), samples)`` asks a run of ``jaxarc train surrogate=graphs``.

    Args:
        run: the folder.
        checkpoint: the one that agrees best with the expert, or the newest.

    Returns:
        An :class:`EdgeScorer`, a :class:`CandidateScorer` or :class:`CountingScorer` of candidates, or an
        :class:`AnswerPredictor`.

    Raises:
        NotARunError: it is not the folder of a run.
        CheckpointError: there is no model that can be used, or the run trained an agent.
    """
    saved = SavedRun.open(open_run_folder(locate_run(Path(run))), checkpoint).require("surrogate")
    key, experiment = jax.random.key(0), saved.experiment
    predicts_answers = experiment.surrogate.problem == "rules"  # which its tasks need not be here for
    fresh = make_predictor(key, experiment.rules) if predicts_answers else make_task(experiment).make_model(key)
    return load_model(saved.checkpoint, fresh)


def load_model(checkpoint: Checkpoint, fresh: Model) -> Model:
    """Take the model out of a checkpoint of a run, without the optimizer.

    Args:
        checkpoint: of the run.
        fresh: a model of its task.

    Raises:
        CheckpointError: it is a checkpoint of another task.
    """
    # A fresh model gives structure and static fields; only the arrays come from the checkpoint.
    arrays, rest = eqx.partition(fresh, eqx.is_array)
    return eqx.combine(checkpoint.load(arrays, within="model"), rest)


def evaluate_model(task: SurrogateTask, model: Model, checkpoint: int) -> SurrogateEvaluation:
    """Measure a model on the held-out examples of its task; the checkpoint is the update that made the model."""
    measured = task.evaluate(model)
    if isinstance(measured, GraphAccuracy):
        return SurrogateEvaluation(checkpoint, graphs=measured)
    if isinstance(measured, SolvedShares):
        return SurrogateEvaluation(checkpoint, rules=measured)
    return SurrogateEvaluation(checkpoint, agreement=measured if isinstance(measured, Agreement) else None)


def evaluate_surrogate(task: SurrogateTask, model: Model, checkpoint: int) -> SurrogateEvaluation:
    """Do what :func:`evaluate_model` does, and let a lookahead surrogate and its expert play the held-out pairs."""
    evaluation = evaluate_model(task, model, checkpoint)
    played = {name: play_held_out(policy, pairs) for name, policy, pairs in task.players(model)}
    return dataclasses.replace(evaluation, policies=played)


def write_evaluation(folder: RunFolder, evaluation: SurrogateEvaluation) -> None:
    """Write it into a run folder, as JSON."""
    write_whole(folder.evaluation, (json.dumps(evaluation.as_dict(), indent=2) + "\n").encode())


def play_held_out(policy: Policy, params: EnvParams) -> PlayedPairs:
    """Play each pair once from its input; pair and step alone make the policy's keys."""
    played = _play(policy, params)
    solved = np.asarray(played.solved)
    # Steps count on solved pairs only: an unsolved one lasts until its limit, whatever the policy is like.
    steps = np.asarray(played.steps)
    return PlayedPairs(float(solved.mean()), float(steps[solved].mean()) if solved.any() else None)


@eqx.filter_jit
def _play(policy: Policy, params: EnvParams) -> TaskResults:
    def choose(task_index: Int32[Array, ""], observation: Observation, step_count: Int32[Array, ""]) -> Action:
        # Task and step alone make the key, so a policy draws the same candidates
        # however many pairs are played together.
        key = jax.random.fold_in(jax.random.key(0), task_index)
        return policy(jax.random.fold_in(key, step_count), observation)

    def act(task_index: Int32[Array, " B"], observation: Observation, states: ArcEnvState) -> tuple[Any, None]:
        return jax.vmap(choose)(task_index, observation, states.step_count), None

    return play_every_task(act, params, _EPISODES_AT_ONCE)
