"""A causal graph of edge probabilities: which edges it has, and its picture."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32

from jaxarc.files import write_whole
from jaxarc.render.graphs import graph_svg
from jaxarc.surrogate.columns import labels_of, read_numbers


@dataclasses.dataclass(frozen=True, eq=False)
class CausalGraph:
    """The edges whose probability is above a threshold; a notebook shows it as a picture."""

    labels: tuple[str, ...]  # d variables
    probabilities: Float32[np.ndarray, "d d"]  # [i, j]: of the edge i -> j; 0 on the diagonal
    threshold: float  # 0 .. 1

    @property
    def is_edge(self) -> Bool[np.ndarray, "d d"]:
        """[i, j]: whether the edge i -> j is in the graph."""
        return self.probabilities > self.threshold

    @property
    def edges(self) -> list[tuple[str, str, float]]:
        """Cause, effect and probability of each edge, the most probable first."""
        found = [(float(self.probabilities[i, j]), int(i), int(j)) for i, j in np.argwhere(self.is_edge)]
        ordered = sorted(found, key=lambda edge: (-edge[0], *edge[1:]))
        return [(self.labels[i], self.labels[j], probability) for probability, i, j in ordered]

    @property
    def is_acyclic(self) -> bool:
        """Whether no variable is a cause of itself."""
        return _is_acyclic(self.is_edge)

    def __repr__(self) -> str:
        return f"CausalGraph({len(self.labels)} variables, {self.is_edge.sum()} edges above {self.threshold:.3g})"

    def to_svg(self) -> str:
        """Return the picture: variables on a circle, and an arrow for each edge, the wider the more probable."""
        return graph_svg(self.labels, self.probabilities, self.is_edge)

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def save(self, path: str | Path) -> Path:
        """Write the picture as SVG, and return the path.

        Raises:
            ValueError: the file name does not end in ``.svg``.
        """
        if Path(path).suffix.lower() != ".svg":
            raise ValueError(f"a graph is written as .svg, got {Path(path).name!r}; change the ending")
        return write_whole(path, self.to_svg().encode())


def causal_graph(
    probabilities: Any, labels: Sequence[str] | None = None, threshold: float | None = None
) -> CausalGraph:
    """Return the graph of the probabilities that :func:`~jaxarc.surrogate.edge_probabilities` returns.

    Args:
        probabilities: [d, d], of the edge i -> j at [i, j]; an array or a data frame.
        labels: of the d variables; those of the data frame, or ``X0``, ``X1``, ... when left out.
        threshold: an edge is more probable than it; by default 0.5, or :func:`acyclic_threshold` where that is higher,
            so that the graph has no cycle.

    Raises:
        ValueError: the shape is not [d, d], a probability or the threshold is not in 0 .. 1, or the number of labels
            is another, or two are equal.
    """
    probs = _checked(probabilities)
    named = labels_of(probabilities) or tuple(f"X{index}" for index in range(len(probs)))
    if labels is not None:
        named = tuple(str(label) for label in labels)
    if len(named) != len(probs) or len(set(named)) < len(named):
        raise ValueError(f"labels must be {len(probs)} different names, one for each variable, got {list(named)}")
    if threshold is None:
        threshold = max(0.5, acyclic_threshold(probs))
    if not 0 <= threshold <= 1:
        raise ValueError(f"threshold must be in 0 .. 1, got {threshold}; an edge is more probable than it")
    return CausalGraph(named, probs, float(threshold))


def acyclic_threshold(probabilities: Any) -> float:
    """Return the smallest threshold above which the edges make no cycle; 0 where all of them make none.

    So the least probable edges leave, one after the other, until no cycle is left, as in "DAGs with NO TEARS" (Zheng et
    al. 2018, https://arxiv.org/abs/1803.01422).

    Args:
        probabilities: [d, d], of the edge i -> j at [i, j]; the diagonal does not count.

    Raises:
        ValueError: the shape is not [d, d], or a probability is not in 0 .. 1.
    """
    probs = _checked(probabilities)
    # The graph changes only at a probability, and what is acyclic stays so above it: so the first is found by halving.
    values = np.unique(np.append(probs, np.float32(0)))
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        if _is_acyclic(probs > values[middle]):
            high = middle
        else:
            low = middle + 1
    return float(values[low])


def _checked(probabilities: Any) -> Float32[np.ndarray, "d d"]:
    probs = read_numbers(probabilities, "probabilities").astype(np.float32)
    if probs.ndim != 2 or probs.shape[0] != probs.shape[1] or not probs.size:
        raise ValueError(f"probabilities must have the shape (d, d), got {probs.shape}; see edge_probabilities")
    if not ((probs >= 0) & (probs <= 1)).all():
        raise ValueError(f"probabilities must be in 0 .. 1, got {probs.min()} .. {probs.max()}; see edge_probabilities")
    np.fill_diagonal(probs, 0.0)
    return probs


def _is_acyclic(is_edge: Bool[np.ndarray, "d d"]) -> bool:
    """Take away variables without a cause until none is left; in a cycle each has one."""
    while len(is_edge):
        stays = is_edge.any(axis=0)
        if stays.all():
            return False
        is_edge = is_edge[stays][:, stays]
    return True
