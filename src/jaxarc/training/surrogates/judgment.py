"""All that is told of a finished surrogate, and the file that keeps it."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxarc.evaluation.builtin_agents import SurrogateAgent
from jaxarc.experts.lookahead import LookaheadAgent
from jaxarc.files import write_whole
from jaxarc.surrogate.train_step import Model
from jaxarc.training.run_folder import RunFolder
from jaxarc.training.surrogates.agreement import Agreement
from jaxarc.training.surrogates.contest import Contest, Standings
from jaxarc.training.surrogates.drift import Drift
from jaxarc.training.surrogates.experiment import SurrogateExperiment
from jaxarc.training.surrogates.lesson import Lesson, TransitionLesson
from jaxarc.training.surrogates.lessons import CANDIDATES
from jaxarc.training.surrogates.transitions import StepAccuracy


@dataclass(frozen=True)
class Judgment:
    """What was measured on held-out examples and pairs; None or empty where it was not."""

    checkpoint: int  # the update whose models were judged
    agreement: Agreement | None = None
    steps: StepAccuracy | None = None
    drift: tuple[Drift, ...] = ()
    contest: Mapping[str, Standings] = dataclasses.field(default_factory=dict)  # by player
    num_left_out: int = 0  # held-out pairs that the contest is not about, because somebody learned from them

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        named = lambda part: None if part is None else part._asdict()
        agreement = named(self.agreement)
        if agreement is not None:
            agreement["calibration"] = [each._asdict() for each in agreement["calibration"]]
        return {
            "checkpoint": self.checkpoint,
            "agreement": agreement,
            "steps": named(self.steps),
            "drift": [each._asdict() for each in self.drift],
            "contest": {name: dataclasses.asdict(each) for name, each in self.contest.items()},
            "num_left_out": self.num_left_out,
        }


def judge_models(lessons: Mapping[str, Lesson], models: Mapping[str, Model], checkpoint: int) -> Judgment:
    """Measure each model on its own held-out examples; the checkpoint is the update that made them."""
    judgment = Judgment(checkpoint)
    for name, lesson in lessons.items():
        measured = lesson.measure(models[name])
        if isinstance(measured, Agreement):
            judgment = dataclasses.replace(judgment, agreement=measured)
        else:
            judgment = dataclasses.replace(judgment, steps=measured)
    return judgment


def judge_everything(
    experiment: SurrogateExperiment,
    lessons: Mapping[str, Lesson],
    models: Mapping[str, Model],
    checkpoint: int,
    agents: Sequence[RunFolder] = (),
    learning_seconds: float | None = None,
) -> Judgment:
    """Do what :func:`judge_models` does, measure drift, and let a surrogate of the lookahead expert play pairs.

    Args:
        experiment: of the surrogate.
        lessons: of the experiment, by name.
        models: of the lessons.
        checkpoint: the update that made the models.
        agents: run folders, whose agents play too; those that may not are refused before anything is measured.
        learning_seconds: of the surrogate, to be told beside those of the agents.

    Raises:
        ConfigValidationError, UnknownDatasetError, ValueError, CheckpointError: see :class:`Contest`.
    """
    plays = experiment.surrogate.problem == "lookahead" and CANDIDATES in lessons
    contest = Contest(experiment.task, experiment.environment, agents) if plays else None
    judgment = judge_models(lessons, models, checkpoint)
    for name, lesson in lessons.items():
        if isinstance(lesson, TransitionLesson):
            judgment = dataclasses.replace(judgment, drift=tuple(lesson.drift(models[name])))
    if contest is None:
        return judgment
    rules, count = experiment.environment, experiment.lookahead.num_candidates
    players = {
        "surrogate": SurrogateAgent(models[CANDIDATES], rules, count),
        "expert": LookaheadAgent(rules, count),
    }
    held = contest.hold(players)
    mine = dataclasses.replace(held["surrogate"], learning_seconds=learning_seconds)
    return dataclasses.replace(judgment, contest={**held, "surrogate": mine}, num_left_out=contest.num_left_out)


def write_judgment(folder: RunFolder, judgment: Judgment) -> None:
    """Write it into a run folder."""
    write_whole(folder.surrogate, (json.dumps(judgment.as_dict(), indent=2) + "\n").encode())
