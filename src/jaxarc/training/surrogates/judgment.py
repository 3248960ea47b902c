"""All that is told of a finished surrogate, and the file that keeps it."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxarc.evaluation.surrogate_agent import SurrogateAgent
from jaxarc.experts.lookahead import LookaheadAgent
from jaxarc.io.atomic import write_whole
from jaxarc.surrogate.train_step import Model
from jaxarc.training.run_folder import RunFolder
from jaxarc.training.surrogates.agreement import Agreement
from jaxarc.training.surrogates.contest import Standings, hold_contest
from jaxarc.training.surrogates.drift import Drift
from jaxarc.training.surrogates.experiment import SurrogateExperiment
from jaxarc.training.surrogates.lesson import Lesson, TransitionLesson
from jaxarc.training.surrogates.transitions import StepAccuracy


@dataclass(frozen=True)
class Judgment:
    """What was measured on held-out examples and pairs; None or empty where it was not."""

    agreement: Agreement | None = None
    steps: StepAccuracy | None = None
    drift: tuple[Drift, ...] = ()
    contest: Mapping[str, Standings] = dataclasses.field(default_factory=dict)  # by player

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        named = lambda part: None if part is None else part._asdict()
        agreement = named(self.agreement)
        if agreement is not None:
            agreement["calibration"] = [each._asdict() for each in agreement["calibration"]]
        return {
            "agreement": agreement,
            "steps": named(self.steps),
            "drift": [each._asdict() for each in self.drift],
            "contest": {name: dataclasses.asdict(each) for name, each in self.contest.items()},
        }


def judge_models(lessons: Mapping[str, Lesson], models: Mapping[str, Model]) -> Judgment:
    """Measure each model on its own held-out examples."""
    judgment = Judgment()
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
    agents: Sequence[RunFolder] = (),
    learning_seconds: float | None = None,
) -> Judgment:
    """Do what :func:`judge_models` does, measure drift, and let a surrogate of the lookahead expert play pairs.

    Args:
        experiment: of the surrogate.
        lessons: of the experiment, by name.
        models: of the lessons.
        agents: run folders, whose agents play too.
        learning_seconds: of the surrogate, to be told beside those of the agents.

    Raises:
        ConfigValidationError, ValueError, CheckpointError: see :func:`hold_contest`.
    """
    judgment = judge_models(lessons, models)
    for name, lesson in lessons.items():
        if isinstance(lesson, TransitionLesson):
            drift = lesson.drift(models[name])
            judgment = dataclasses.replace(judgment, drift=tuple(drift))
        elif experiment.surrogate.problem == "lookahead":
            rules, count = experiment.environment, experiment.lookahead.num_candidates
            players = {
                "surrogate": SurrogateAgent(models[name], rules, count),
                "expert": LookaheadAgent(rules, count),
            }
            contest = hold_contest(players, experiment.task, rules, agents)
            mine = dataclasses.replace(contest["surrogate"], learning_seconds=learning_seconds)
            judgment = dataclasses.replace(judgment, contest={**contest, "surrogate": mine})
    return judgment


def write_judgment(folder: RunFolder, judgment: Judgment) -> None:
    """Write it into a run folder."""
    write_whole(folder.surrogate, (json.dumps(judgment.as_dict(), indent=2) + "\n").encode())
