"""Training surrogates of an expert: what they learn from, the loop, and how well they agree with the expert."""

from jaxarc.training.surrogates.experiment import SurrogateExperiment
from jaxarc.training.surrogates.lessons import make_lessons, make_problem
from jaxarc.training.surrogates.loop import SurrogateResult, SurrogateState, train_surrogate
from jaxarc.training.surrogates.report import SurrogateReport

__all__ = [
    "SurrogateExperiment",
    "SurrogateReport",
    "SurrogateResult",
    "SurrogateState",
    "make_lessons",
    "make_problem",
    "train_surrogate",
]
