"""How well a surrogate does on held-out examples: agreement with an expert, and accuracies of predicted edges.

Two candidates, for example, with the expert's probabilities (0.7, 0.3) and scores (1.0, 0.4). A surrogate that says
(0.4, 0.6) chooses the second: its regret is 1.0 - 0.4 = 0.6, and its KL divergence is
0.7 log(0.7 / 0.4) + 0.3 log(0.3 / 0.6) = 0.18 nats. Its calibration error is the mean distance of the two
probabilities, for a candidate that it draws.

Of edges, three variables with the one edge X0 -> X1. A model that gives this edge the probability 0.8, X1 -> X0 0.2
and the four others 0 has an expected structural Hamming distance of 0.2 + 0.2 = 0.4 and an AUROC of 1: the edge ranks
above all other pairs.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

NUM_BINS: Final = 10  # of the calibration
_NEAR: Final = 1e-6  # probabilities this close count as equal: they are float32


class CalibrationBin(NamedTuple):
    """Candidates to which the surrogate gives about the same probability."""

    size: int
    predicted: float  # mean probability by the surrogate
    expected: float  # mean probability by the expert


class Agreement(NamedTuple):
    """Means over examples."""

    kl: float  # KL(expert || surrogate), in nats
    top1_agreement: float  # share of examples whose first choice is one that the expert likes best
    top5_agreement: float  # share in which such a candidate is among the first five choices
    top10_mass: float  # the expert's probability of the first ten choices together
    calibration_error: float  # of a candidate drawn by the surrogate: mean distance of the two probabilities of its bin
    regret: float | None  # score of the expert's best minus score of the first choice; None where scores are unknown
    calibration: tuple[CalibrationBin, ...]  # equal ranges of the surrogate's probability, 0 .. 1
    num_examples: int
    top1_by_group: dict[str, tuple[int, float]]  # of the examples whose best candidates are all of one group

    def numbers(self) -> dict[str, float]:
        """Return the numbers of a report, by the names of its fields."""
        return {name: value for name, value in self._asdict().items() if isinstance(value, float)}


def agreement(
    logits: Float[np.ndarray, "B k"],
    probs: Float[np.ndarray, "B k"],
    is_real: Bool[np.ndarray, "B k"],
    scores: Float[np.ndarray, "B k"] | None = None,
    groups: Int[np.ndarray, "B k"] | None = None,
    group_names: Sequence[str] = (),
) -> Agreement:
    """Compare logits with an expert's distribution, on the host.

    Args:
        logits: of the candidates, by the surrogate.
        probs: of the candidates, by the expert; 0 for padding.
        is_real: false for padding, which is never chosen.
        scores: the expert's score of each candidate, such as a similarity of 0 .. 1; ignored in padding.
        groups: of each candidate the index of its group, such as the floods; ignored in padding.
        group_names: of all groups.
    """
    # Padding gets minus infinity, so its probability is exactly 0 and it ranks last.
    log_predicted = _log_softmax(np.where(is_real, logits, -np.inf))
    predicted = np.where(is_real, np.exp(log_predicted), 0.0)
    counts = (probs > 0) & is_real
    surprise = np.log(np.where(counts, probs, 1.0)) - np.where(counts, log_predicted, 0.0)
    order = np.argsort(-log_predicted, axis=-1, kind="stable")
    # Several candidates may share the expert's highest probability. Sorted by the surrogate's ranking, column 0 says
    # whether its first choice is one of them, columns 0 .. 4 whether one is among its first five.
    is_best = probs >= probs.max(axis=-1, keepdims=True) - _NEAR
    ranked = np.take_along_axis(is_best & is_real, order, axis=-1)
    bins = calibration_bins(predicted[is_real], probs[is_real])
    # Each bin weighs as much as the surrogate's probability in it: a bin of 100 candidates at 0.001 weighs 0.1, one
    # candidate at 0.9 weighs 0.9. So the many unlikely candidates do not hide errors in the likely ones.
    mass = sum(each.size * each.predicted for each in bins)
    error = sum(each.size * each.predicted * abs(each.predicted - each.expected) for each in bins) / mass
    return Agreement(
        kl=float((np.where(counts, probs, 0.0) * surprise).sum(axis=-1).mean()),
        top1_agreement=float(ranked[:, 0].mean()),
        top5_agreement=float(ranked[:, :5].any(axis=-1).mean()),
        top10_mass=float(np.take_along_axis(probs, order[:, :10], axis=-1).sum(axis=-1).mean()),
        calibration_error=float(error),
        regret=None if scores is None else _regret(order[:, 0], scores, is_real),
        calibration=bins,
        num_examples=len(logits),
        top1_by_group={} if groups is None else _top1_by_group(ranked[:, 0], is_best & is_real, groups, group_names),
    )


def _top1_by_group(
    is_right: Bool[np.ndarray, " B"],
    is_best: Bool[np.ndarray, "B k"],
    groups: Int[np.ndarray, "B k"],
    names: Sequence[str],
) -> dict[str, tuple[int, float]]:
    # Where a fill is as good as the best flood, a first choice that is right does not show that floods are understood.
    found = {}
    for index, name in enumerate(names):
        only = (~is_best | (groups == index)).all(axis=-1)
        if only.any():
            found[name] = int(only.sum()), float(is_right[only].mean())
    return found


def _log_softmax(logits: Float[np.ndarray, "B k"]) -> Float[np.ndarray, "B k"]:
    """Return log-probabilities in float64."""
    wide = logits.astype(np.float64)
    shifted = wide - wide.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _regret(first: Int[np.ndarray, " B"], scores: Float[np.ndarray, "B k"], is_real: Bool[np.ndarray, "B k"]) -> float:
    # The expert's best is 1.0 and the surrogate chooses a candidate of score 0.7: a regret of 0.3.
    best = np.where(is_real, scores, -np.inf).max(axis=-1)
    chosen = np.take_along_axis(scores, first[:, None], axis=-1)[:, 0]
    return float((best - chosen).mean())


def calibration_bins(
    predicted: Float[np.ndarray, " n"], expected: Float[np.ndarray, " n"] | Bool[np.ndarray, " n"]
) -> tuple[CalibrationBin, ...]:
    """Group candidates by the surrogate's probability; empty bins are left out."""
    # The range 0 .. 1 is cut evenly; a probability of exactly 1 belongs to the last bin.
    bin_index = np.minimum((predicted * NUM_BINS).astype(np.int64), NUM_BINS - 1)
    rows = []
    for number in range(NUM_BINS):
        inside = bin_index == number
        if inside.any():
            mean_predicted = float(predicted[inside].mean())
            mean_expected = float(expected[inside].mean())
            rows.append(CalibrationBin(int(inside.sum()), mean_predicted, mean_expected))
    return tuple(rows)


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
