"""From an experiment to the lessons of a surrogate."""

from jaxarc.training.surrogates.edit_steps import EditSteps
from jaxarc.training.surrogates.experiment import SurrogateExperiment
from jaxarc.training.surrogates.lesson import CandidateLesson, Lesson, TransitionLesson
from jaxarc.training.surrogates.lookahead_problem import LookaheadProblem
from jaxarc.training.surrogates.parent_sets_problem import ParentSetsProblem
from jaxarc.training.surrogates.problem import SurrogateProblem

CANDIDATES, TRANSITION = "candidates", "transition"


def make_lessons(experiment: SurrogateExperiment) -> dict[str, Lesson]:
    """Make the lessons that ``surrogate.model`` names, with what they are measured on.

    Raises:
        UnknownDatasetError, TaskFormatError: see :func:`jaxarc.datasets.load_tasks`.
        ValueError: no task is small enough.
    """
    wanted, lessons = experiment.surrogate.model, dict[str, Lesson]()
    if wanted in (CANDIDATES, "both"):
        lessons[CANDIDATES] = CandidateLesson(make_problem(experiment))
    if wanted in (TRANSITION, "both"):
        lessons[TRANSITION] = TransitionLesson(make_edit_steps(experiment))
    return lessons


def make_problem(experiment: SurrogateExperiment) -> SurrogateProblem:
    """Make the expert's part of an experiment; raises as :func:`make_lessons`."""
    if experiment.surrogate.problem == "parent_sets":
        return ParentSetsProblem(experiment.parent_sets, experiment.structural_models, experiment.surrogate_network)
    return LookaheadProblem.load(
        experiment.task, experiment.environment, experiment.lookahead, experiment.surrogate_network
    )


def make_edit_steps(experiment: SurrogateExperiment) -> EditSteps:
    """Make the environment's part of an experiment; raises as :func:`make_lessons`."""
    return EditSteps.load(experiment.task, experiment.environment, experiment.edit_steps, experiment.surrogate_network)
