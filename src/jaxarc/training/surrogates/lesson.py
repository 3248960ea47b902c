"""One model of a surrogate, and what it learns from: the same to the loop, whatever it is."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TypeAlias

import optax

from jaxarc.surrogate import (
    SurrogateTrainingConfig,
    create_jax_surrogate_train_step,
    kl_divergence_loss_jax,
)
from jaxarc.surrogate.train_step import Metrics, Model
from jaxarc.surrogate.transition_model import create_transition_train_step
from jaxarc.training.surrogates.agreement import Agreement
from jaxarc.training.surrogates.drift import Drift, measure_drift
from jaxarc.training.surrogates.problem import ExpertBatch, SurrogateProblem
from jaxarc.training.surrogates.transitions import StepAccuracy, TransitionProblem, measure_steps
from jaxarc.types import PRNGKey

Step: TypeAlias = Callable[[Model, optax.OptState, Any], tuple[Model, optax.OptState, Metrics]]
"""From a model, its optimizer's state and a batch to both afterwards, and numbers about the batch; what goes in is
donated."""


class Lesson(Protocol):
    """What the loop asks of a model and its examples."""

    fields: ClassVar[Mapping[str, str]]
    """From what a step tells to the fields of a report."""

    def make_model(self, key: PRNGKey) -> Model: ...

    def training(self, config: SurrogateTrainingConfig) -> SurrogateTrainingConfig:
        """Return how this model is trained in a run of this config."""
        ...

    def make_step(self, model: Model, optimizer: optax.GradientTransformation, config: SurrogateTrainingConfig) -> Step:
        """Make the step that learns from the batches; see :func:`create_jax_surrogate_train_step`."""
        ...

    def batch(self, seed: int, step: int) -> Any:
        """Make the batch of a step; it depends on the seed and the step alone."""
        ...

    def measure(self, model: Model) -> Agreement | StepAccuracy:
        """Measure a model on held-out examples; its numbers are fields of a report."""
        ...


class CandidateLesson:
    """Learns an expert's opinion of candidates."""

    fields: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"total_loss": "total_loss", "top1_agreement": "batch_top1_agreement", "gradient_norm": "gradient_norm"}
    )

    def __init__(self, problem: SurrogateProblem):
        self.problem = problem
        self.make_model, self.batch = problem.make_model, problem.batch

    def training(self, config: SurrogateTrainingConfig) -> SurrogateTrainingConfig:
        return config

    def make_step(self, model: Model, optimizer: optax.GradientTransformation, config: SurrogateTrainingConfig) -> Step:
        step = create_jax_surrogate_train_step(model, optimizer, kl_divergence_loss_jax, config)

        def learn(model: Model, opt_state: optax.OptState, batch: ExpertBatch) -> tuple:
            return step(model, opt_state, batch.examples, batch.candidates)

        return learn

    def measure(self, model: Model) -> Agreement:
        return self.problem.measure(model)


class TransitionLesson:
    """Learns what an action does."""

    fields: ClassVar[Mapping[str, str]] = MappingProxyType(
        {name: f"transition_{name}" for name in ("total_loss", "exact_grids", "gradient_norm")}
    )

    def __init__(self, problem: TransitionProblem):
        self.problem = problem
        self.make_model, self.batch = problem.make_model, problem.batch

    def training(self, config: SurrogateTrainingConfig) -> SurrogateTrainingConfig:
        mine = self.problem.config
        return config.replace(learning_rate=mine.learning_rate, final_learning_rate=mine.final_learning_rate)

    def make_step(self, model: Model, optimizer: optax.GradientTransformation, config: SurrogateTrainingConfig) -> Step:
        return create_transition_train_step(model, optimizer, config)

    def measure(self, model: Model) -> StepAccuracy:
        return measure_steps(model, self.problem.held_out())

    def drift(self, model: Model) -> list[Drift]:
        """Let a model go on from its own predictions on held-out pairs."""
        return [measure_drift(model, walks) for walks in self.problem.walks()]
