"""Predict the answer of a task from its demonstrations."""

from jaxarc.agents.answers.candidates import Puzzle
from jaxarc.agents.answers.predictor import AnswerPredictor

__all__ = ["AnswerPredictor", "Puzzle"]
