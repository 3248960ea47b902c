"""One run of any kind: an agent's, or a surrogate's."""

from typing import TypeAlias

from rich.console import Console

from jaxarc.cli.settings import AnyExperiment
from jaxarc.cli.surrogate_run import learn_surrogate
from jaxarc.cli.training_run import learn
from jaxarc.training import AgentResult, RunFolder
from jaxarc.training.surrogates import SurrogateExperiment, SurrogateResult

AnyResult: TypeAlias = AgentResult | SurrogateResult


def learn_any(experiment: AnyExperiment, console: Console, resume: RunFolder | None = None) -> AnyResult:
    """Train what the experiment is of, in a new run folder or an old one, and tell of it.

    Raises:
        ConfigValidationError, TrainingDivergedError, OSError: and more, see the functions called.
    """
    if isinstance(experiment, SurrogateExperiment):
        return learn_surrogate(experiment, console, resume)
    return learn(experiment, console, resume)
