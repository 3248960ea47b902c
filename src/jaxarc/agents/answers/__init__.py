"""Predict the answer of a task from its demonstrations."""

from jaxarc.agents.answers.predictor import AnswerPredictor, Puzzle

__all__ = ["AnswerPredictor", "Puzzle"]
