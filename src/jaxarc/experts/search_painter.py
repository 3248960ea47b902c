"""An expert that finds the answer by a program search, and paints it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int8

from jaxarc.config import SearchConfig
from jaxarc.experts.expert import Action, ActionFormat, CannotSolveError, HiddenAnswerExpert, Pair
from jaxarc.experts.painter import Painter
from jaxarc.search import solve
from jaxarc.search.search_library import search_library


@dataclass(frozen=True)
class SearchPainter(HiddenAnswerExpert):
    """Searches programs that explain the demonstrations, and paints the best answer as :class:`Painter` does.

    It never has the output, so it solves only pairs whose answer the search finds. See :mod:`jaxarc.search`.
    """

    max_cost: int = SearchConfig.max_cost
    seconds: float = 600.0  # of a search: more than one takes, so that no clock decides

    name = "search"
    version = 2

    def prepare(self) -> None:
        """Build the library of the search, so that no time limit of a pair counts it."""
        search_library()

    def solve_hidden(
        self, demonstrations: Sequence[Pair], grid: Int8[np.ndarray, "h w"], action_format: ActionFormat
    ) -> tuple[Action, ...]:
        """Return actions that paint the best answer; see :meth:`HiddenAnswerExpert.solve_hidden`.

        Raises:
            CannotSolveError: there is no demonstration, or no program that explains anything.
        """
        if not demonstrations:
            raise CannotSolveError("the search needs a demonstration, got none; play a pair of a task with two")
        found = solve(demonstrations, grid, SearchConfig(max_cost=self.max_cost, seconds=self.seconds, answers=1))
        best = found.answers[0]
        if best.program is None:
            raise CannotSolveError(f"no program among {found.num_states} states explains any of the demonstrations")
        return Painter().solve(Pair(grid, best.answer), action_format)
