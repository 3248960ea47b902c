"""What a surrogate trains on: a stream of batches, a train step, and held-out examples that measure a model.

The training loop knows only :class:`SurrogateTask`. The tasks of the package are :class:`StructuralModelsTask`, with
parent sets or edges as its target, :class:`jaxarc.surrogate.lookahead_task.LookaheadTask`, and
:class:`jaxarc.surrogate.rules_task.RulesTask`.
"""

import abc
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, Protocol

import equinox as eqx
import numpy as np
import optax

from jaxarc.config import (
    GraphsConfig,
    ParentSetsConfig,
    StructuralModelConfig,
    SurrogateNetworkConfig,
    SurrogateTrainingConfig,
    TaskConfig,
)
from jaxarc.envs.params import EnvParams
from jaxarc.nn.layers import pad_rows
from jaxarc.nn.update import Metrics, predict
from jaxarc.surrogate.agreement import Agreement, GraphAccuracy, agreement, graph_accuracy
from jaxarc.surrogate.batch import GraphBatch, TrainingBatchJAX
from jaxarc.surrogate.candidate_features import CandidateSet, candidates_of
from jaxarc.surrogate.edge_scorer import EdgeScorer, predict_edges
from jaxarc.surrogate.losses import edge_loss, kl_divergence_loss_jax
from jaxarc.surrogate.scorers import CandidateScorer
from jaxarc.surrogate.structural_models import draw_graphs, draw_parent_sets
from jaxarc.surrogate.train_step import LossFunction, Model, create_adaptive_train_step
from jaxarc.types import PRNGKey
from jaxarc.unroll import Policy

HELD_OUT_SEED: Final = 2**31 - 1  # of held-out examples; SurrogateConfig allows runs only the seeds below it
# First words of the seeds of structural models, so that no two of them are equal.
_TRAIN_STREAM = 0
_EVAL_STREAM = 1
_PREDICTED_AT_ONCE: Final = 50  # held-out structural models in a batch


class EvaluationMetrics(Protocol):
    """The metrics of a task on held-out examples."""

    def numbers(self) -> dict[str, float]:
        """Return the numbers of a report, by the names of its fields."""
        ...


class ExpertBatch(NamedTuple):
    """B examples of an expert's distribution over candidates, as a pytree."""

    examples: TrainingBatchJAX
    candidates: CandidateSet


Step = Callable[[Model, optax.OptState, Any], tuple[Model, optax.OptState, Metrics]]
"""From a model, its optimizer's state and a batch to the new model, the new state and metrics of the batch."""


class SurrogateTask(abc.ABC):
    """A model and its examples, as the training loop sees them; a task of your own subclasses this."""

    metric_fields: Mapping[str, str] = MappingProxyType(
        {"total_loss": "total_loss", "top1_agreement": "batch_top1_agreement", "gradient_norm": "gradient_norm"}
    )
    """From the name of a step's metric to the field of the report that holds its mean."""
    loss_fn: LossFunction = staticmethod(kl_divergence_loss_jax)
    """Of one example."""

    @abc.abstractmethod
    def make_model(self, key: PRNGKey) -> Model:
        """Make a fresh model, an Equinox module."""

    @abc.abstractmethod
    def batch(self, seed: int, step: int) -> Any:
        """Make the batch of a step, arrays with a leading axis: an :class:`ExpertBatch`, or what the task's step takes.

        It depends on the seed and the step alone, so that a resumed run sees the batches that it would have seen.
        The prefetcher's thread calls this ahead of time, steps in order. All batches have the same shapes and static
        parts.
        """

    @abc.abstractmethod
    def evaluate(self, model: Model) -> EvaluationMetrics:
        """Measure a model on held-out examples, in every call the same ones."""

    def about(self, task: TaskConfig) -> list[str]:
        """Say which data are learned from and measured, where that is more than the expert."""
        return []

    def players(self, model: Model) -> list[tuple[str, Policy, EnvParams]]:
        """Return the model and its expert as policies, with names and the held-out pairs that they play, if they do."""
        return []

    def make_step(self, model: Model, optimizer: optax.GradientTransformation, config: SurrogateTrainingConfig) -> Step:
        """Make the step that ``config.train_step`` names; see :func:`create_adaptive_train_step`."""
        step = create_adaptive_train_step(model=model, optimizer=optimizer, loss_fn=self.loss_fn, config=config)

        def train_step(model: Model, opt_state: optax.OptState, batch: ExpertBatch | GraphBatch) -> tuple:
            # The loop hands over one batch; the step takes examples and candidates apart.
            examples, candidates = batch if isinstance(batch, ExpertBatch) else (batch, None)
            return step(model, opt_state, examples, candidates)

        return train_step


Target = Literal["parent_sets", "edges"]


class StructuralModelsTask(SurrogateTask):
    """What causes what in structural models: the exact posterior over parent sets, or the edges of drawn graphs.

    Batch i of a seed has a NumPy generator of its own, seeded with the words (0, seed, i). Of the models of a batch of
    edges those that come first have no interventions.
    """

    def __init__(
        self,
        target: Target,
        config: ParentSetsConfig | GraphsConfig,
        models: StructuralModelConfig,
        network: SurrogateNetworkConfig,
    ):
        self.target = target
        self.config = config
        self.models = models
        self.network = network
        if target == "edges":
            self.metric_fields = MappingProxyType({"total_loss": "total_loss", "gradient_norm": "gradient_norm"})
            self.loss_fn = edge_loss
        self.held_out = self._draw(config.eval_models, _EVAL_STREAM)

    def make_model(self, key: PRNGKey) -> CandidateScorer | EdgeScorer:
        """Make a fresh scorer of parent sets, whose one feature is their share of variables, or of edges."""
        if self.target == "edges":
            return eqx.filter_jit(EdgeScorer)(key, self.network, self.models.num_variables)
        return eqx.filter_jit(CandidateScorer)(key, self.network, num_features=1)

    def batch(self, seed: int, step: int) -> ExpertBatch | GraphBatch:
        """Draw models and their samples, and compute the posteriors of parent sets."""
        return self._draw(self.config.models_per_batch, _TRAIN_STREAM, seed, step)

    def evaluate(self, model: Model) -> Agreement | GraphAccuracy:
        """Compare with the exact posteriors, or the graphs, of held-out models."""
        if isinstance(self.held_out, GraphBatch):
            data, num_models = self.held_out.data, self.config.eval_models
            # Parts of one size, so that one program predicts them all: of 120 models the last part has 20 and padding.
            size = min(_PREDICTED_AT_ONCE, num_models)
            starts = range(0, num_models, size)
            parts = [pad_rows(data[start : start + size], num_models - start, size) for start in starts]
            probs = np.concatenate([np.asarray(predict_edges(model, part))[is_real] for part, is_real in parts])
            return graph_accuracy(probs, np.asarray(self.held_out.adjacency), self._num_observational(num_models))
        examples, candidates = self.held_out
        logits = predict(model, examples.observational_data, candidates)
        return agreement(np.asarray(logits), np.asarray(examples.expert_probs), np.asarray(candidates.is_real))

    def _draw(self, num_models: int, *seed_words: int) -> ExpertBatch | GraphBatch:
        # The words of the seed are (0, seed, step) for training and (1,) for held-out
        # models, so no stream meets another.
        generator = np.random.default_rng(seed_words)
        if self.target == "edges":
            return draw_graphs(generator, num_models, self.models, self._num_observational(num_models))
        examples = draw_parent_sets(generator, num_models, self.models)
        return ExpertBatch(examples, candidates_of(examples))

    def _num_observational(self, num_models: int) -> int:
        """Return how many of a number of models, those that come first, have no interventions."""
        assert isinstance(self.config, GraphsConfig)
        # With a chance of interventions of 0 they are all observational.
        share = self.config.observational_share if self.models.intervention_share else 1.0
        return round(share * num_models)
