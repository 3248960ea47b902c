"""Predict the answer of a task from its demonstrations."""

from jaxarc.agents.answers.candidates import Puzzle
from jaxarc.agents.answers.predictor import AnswerPredictor, Predictor

__all__ = ["AnswerPredictor", "Predictor", "Puzzle"]
