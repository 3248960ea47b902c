"""Agents that need no learning, because they see the answer: examples to learn from, and a bar to measure against."""

from jaxarc.experts.greedy_painter import GreedyPainter, missing_for_painting

__all__ = ["GreedyPainter", "missing_for_painting"]
