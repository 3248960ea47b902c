"""Experts: agents that see the answer and need no learning. They give examples to imitate and a baseline.

:class:`Expert`, :class:`Painter` and :mod:`jaxarc.traces` run on the host and are imported without JAX.
"""

import importlib
from typing import TYPE_CHECKING, Any

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


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'jaxarc.experts' has no attribute {name!r}; it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
