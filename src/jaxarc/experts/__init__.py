"""Experts: agents that see the answer and need no learning. They give examples to imitate and a baseline.

:class:`Expert`, :class:`Painter` and :mod:`jaxarc.traces` run on the host and are imported without JAX.
"""

from typing import TYPE_CHECKING

from jaxarc.experts.expert import (
    Action,
    ActionFormat,
    CannotSolveError,
    Expert,
    ExpertError,
    HiddenAnswerExpert,
    InvalidActionError,
    NotSolvedError,
    Pair,
)
from jaxarc.lazy import lazy

if TYPE_CHECKING:
    from jaxarc.experts.candidates import candidate_actions
    from jaxarc.experts.greedy_painter import GreedyPainter, missing_for_painting
    from jaxarc.experts.lookahead import LookaheadAgent, look_ahead, missing_for_lookahead, soft_choice
    from jaxarc.experts.painter import Painter
    from jaxarc.experts.search_painter import SearchPainter

_HOMES = {
    **dict.fromkeys(["GreedyPainter", "missing_for_painting"], "jaxarc.experts.greedy_painter"),
    **dict.fromkeys(
        ["LookaheadAgent", "look_ahead", "missing_for_lookahead", "soft_choice"], "jaxarc.experts.lookahead"
    ),
    "Painter": "jaxarc.experts.painter",
    "SearchPainter": "jaxarc.experts.search_painter",
    "candidate_actions": "jaxarc.experts.candidates",
}

__all__ = [
    "Action",
    "ActionFormat",
    "CannotSolveError",
    "Expert",
    "ExpertError",
    "GreedyPainter",
    "HiddenAnswerExpert",
    "InvalidActionError",
    "LookaheadAgent",
    "NotSolvedError",
    "Painter",
    "Pair",
    "SearchPainter",
    "candidate_actions",
    "look_ahead",
    "missing_for_lookahead",
    "missing_for_painting",
    "soft_choice",
]

__getattr__, __dir__ = lazy(__name__, _HOMES)
