"""The task of learning graphs: structural models that are drawn for each batch, and accuracies on held-out ones.

Three variables, for example, with the one edge X0 -> X1. A model that gives this edge the probability 0.8, X1 -> X0 0.2
and the four others 0 has an expected structural Hamming distance of 0.2 + 0.2 = 0.4 and an AUROC of 1: the edge ranks
above all other pairs.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar, Final, NamedTuple

import equinox as eqx
import numpy as np
import optax
from jaxtyping import Bool, Float

from jaxarc.config import GraphsConfig
from jaxarc.surrogate import (
    EdgeScorer,
    StructuralModelConfig,
    SurrogateNetworkConfig,
    SurrogateTrainingConfig,
    create_edge_train_step,
    draw_graphs,
)
from jaxarc.surrogate.edge_scorer import predict_edges
from jaxarc.surrogate.structural_models import GraphBatch
from jaxarc.surrogate.train_step import Model, Step
from jaxarc.training.surrogates.agreement import CalibrationBin, calibration_bins
from jaxarc.types import PRNGKey

# First words of the seeds, so that no two of them are equal.
_TRAIN_STREAM = 0
_EVAL_STREAM = 1
_PREDICTED_AT_ONCE: Final = 50  # held-out models in a batch


class EdgeAccuracy(NamedTuple):
    """Accuracies of predicted edges, over the ordered pairs of different variables of some models."""

    num_models: int
    auroc: float | None  # 0 .. 1, mean over the models that have edges and pairs without; None without such models
    expected_shd: float  # structural Hamming distance: the sum of |probability - edge| over the pairs, mean over models
    edge_accuracy: float  # share of pairs that are right at the threshold 0.5
    calibration_error: float  # mean distance of the probability and the share of edges, over bins of pairs


class GraphAccuracy(NamedTuple):
    """Accuracies on held-out models."""

    overall: EdgeAccuracy
    by_samples: dict[str, EdgeAccuracy]  # "observational", "interventional"
    calibration: tuple[CalibrationBin, ...]  # equal ranges of the probability; "expected" is the share of edges

    def numbers(self) -> dict[str, float]:
        """Return the numbers of a report, by the names of its fields."""
        return {name: value for name, value in self.overall._asdict().items() if isinstance(value, float)}


class GraphsTask:
    """Which variables of a structural model are parents of which; a :class:`SurrogateTask`.

    Batch i of a seed has a NumPy generator of its own, seeded with the words (0, seed, i). The models of a batch that
    come first have no interventions.
    """

    metric_fields: ClassVar[Mapping[str, str]] = MappingProxyType(
        {"total_loss": "total_loss", "gradient_norm": "gradient_norm"}
    )

    def __init__(self, config: GraphsConfig, models: StructuralModelConfig, network: SurrogateNetworkConfig):
        self.config = config
        self.models = models
        self.network = network
        self.held_out = self._draw(config.eval_models, _EVAL_STREAM)

    def make_model(self, key: PRNGKey) -> EdgeScorer:
        """Make a fresh scorer of edges."""
        return eqx.filter_jit(EdgeScorer)(key, self.network, self.models.num_variables)

    def make_step(self, model: Model, optimizer: optax.GradientTransformation, config: SurrogateTrainingConfig) -> Step:
        """Make a step that minimizes the cross-entropy against the drawn graphs."""
        return create_edge_train_step(model, optimizer, config)

    def batch(self, seed: int, step: int) -> GraphBatch:
        """Draw graphs and samples."""
        return self._draw(self.config.models_per_batch, _TRAIN_STREAM, seed, step)

    def evaluate(self, model: Model) -> GraphAccuracy:
        """Compare with the graphs of held-out models."""
        data = self.held_out.data
        num_models = self.config.eval_models
        parts = [data[start : start + _PREDICTED_AT_ONCE] for start in range(0, num_models, _PREDICTED_AT_ONCE)]
        probs = np.concatenate([np.asarray(predict_edges(model, part)) for part in parts])
        return graph_accuracy(probs, np.asarray(self.held_out.adjacency), self.num_observational(num_models))

    def num_observational(self, num_models: int) -> int:
        """Return how many of a number of models, those that come first, have no interventions."""
        # With a chance of interventions of 0 they are all observational.
        share = self.config.observational_share if self.models.intervention_share else 1.0
        return round(share * num_models)

    def _draw(self, num_models: int, *seed_words: int) -> GraphBatch:
        generator = np.random.default_rng(seed_words)
        return draw_graphs(generator, num_models, self.models, self.num_observational(num_models))


def graph_accuracy(
    probs: Float[np.ndarray, "M d d"], adjacency: Bool[np.ndarray, "M d d"], num_observational: int
) -> GraphAccuracy:
    """Compare probabilities of edges with graphs, on the host.

    Args:
        probs: of each edge i -> j; the diagonal is left out.
        adjacency: the true graphs.
        num_observational: of the models, those that come first, have no interventions.
    """
    is_pair = ~np.eye(probs.shape[-1], dtype=np.bool_)
    # [M, d, d] -> [M, d (d - 1)]: the ordered pairs of different variables.
    predicted = probs[:, is_pair].astype(np.float64)
    edges = adjacency[:, is_pair]
    parts = {"observational": slice(num_observational), "interventional": slice(num_observational, None)}
    by_samples = {
        name: edge_accuracy(predicted[part], edges[part]) for name, part in parts.items() if len(predicted[part])
    }
    return GraphAccuracy(
        edge_accuracy(predicted, edges), by_samples, calibration_bins(predicted.ravel(), edges.ravel())
    )


def edge_accuracy(predicted: Float[np.ndarray, "M P"], edges: Bool[np.ndarray, "M P"]) -> EdgeAccuracy:
    """Compare the probabilities of P pairs of each of M models with the edges."""
    has_both = edges.any(axis=1) & ~edges.all(axis=1)
    areas = [area_under_roc(predicted[model], edges[model]) for model in np.flatnonzero(has_both)]
    bins = calibration_bins(predicted.ravel(), edges.ravel())
    return EdgeAccuracy(
        num_models=len(predicted),
        auroc=float(np.mean(areas)) if areas else None,
        expected_shd=float(np.abs(predicted - edges).sum(axis=1).mean()),
        edge_accuracy=float(((predicted > 0.5) == edges).mean()),
        calibration_error=sum(each.size * abs(each.predicted - each.expected) for each in bins) / predicted.size,
    )


def area_under_roc(predicted: Float[np.ndarray, " P"], edges: Bool[np.ndarray, " P"]) -> float:
    """Return the chance that an edge has a higher probability than a pair without one; a tie counts one half."""
    # Edges of 0.8 and 0.5 against others of 0.5 and 0.1: three comparisons are won and one is a tie, 3.5 of 4.
    margins = predicted[edges][:, None] - predicted[~edges]
    return float((margins > 0).mean() + 0.5 * (margins == 0).mean())
