"""What a surrogate of an expert is trained on: examples without end, and others that it is measured on."""

from typing import NamedTuple, Protocol

from jaxarc.surrogate import CandidateSet, TrainingBatchJAX
from jaxarc.surrogate.train_step import Model
from jaxarc.training.surrogates.agreement import Agreement
from jaxarc.types import PRNGKey


class ExpertBatch(NamedTuple):
    """B examples of an expert's opinion, as a pytree."""

    examples: TrainingBatchJAX
    candidates: CandidateSet


class SurrogateProblem(Protocol):
    """An expert, and the situations in which it is asked."""

    def make_model(self, key: PRNGKey) -> Model:
        """Make a fresh model, an Equinox module such as a :class:`CandidateScorer`, to be called as that one is."""
        ...

    def batch(self, seed: int, step: int) -> ExpertBatch:
        """Make the batch of a step.

        It depends on the seed and the step alone, so that a run that goes on learns from what it would have learned
        from. Another thread calls it ahead of time, steps in order. All batches have the same shapes and static parts.
        """
        ...

    def measure(self, model: Model) -> Agreement:
        """Measure a model on held-out examples, in every call the same ones."""
        ...
