"""Training of surrogates: their experiment, their tasks, the loop, and their evaluation."""

from jaxarc.training.surrogates.experiment import SurrogateExperiment, SurrogateReport, make_task
from jaxarc.training.surrogates.loop import SurrogateResult, SurrogateState, train_surrogate
from jaxarc.training.surrogates.task import CandidateTask, SurrogateTask

__all__ = [
    "CandidateTask",
    "SurrogateExperiment",
    "SurrogateReport",
    "SurrogateResult",
    "SurrogateState",
    "SurrogateTask",
    "make_task",
    "train_surrogate",
]
