"""What an expert on the host is: it is given a pair and says which actions turn its input into its output."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol, TypeAlias

import numpy as np
from jaxtyping import Int8

ActionFormat: TypeAlias = Literal["point", "bbox", "mask"]

Action: TypeAlias = tuple[int, ...]
"""Operation, then row and column of a point, ``r1, c1, r2, c2`` of a box, or row and column of every cell of a mask."""


class Pair(NamedTuple):
    """An input and the output that it should become, without padding."""

    input: Int8[np.ndarray, "h w"]  # 0 .. 9
    output: Int8[np.ndarray, "h2 w2"]  # 0 .. 9


class Expert(Protocol):
    """Solves pairs, in plain Python or whatever Python can call."""

    name: str  # who it is; one word of the identity of its traces
    version: int  # raise it when the actions change: traces of other versions are recorded anew

    def solve(self, pair: Pair, action_format: ActionFormat) -> Sequence[Action]:
        """Return actions that turn the pair's input into its output, the last of them a submit.

        Args:
            pair: what to solve; editing starts from its input.
            action_format: how selections are given.

        Raises:
            CannotSolveError: this expert knows no way, with the reason.
        """
        ...


class ExpertError(ValueError):
    """An expert did not do what it should."""


class CannotSolveError(ExpertError):
    """An expert knows no way to solve a pair."""


class InvalidActionError(ExpertError):
    """An action is not one of its format, or of the canvas."""


class NotSolvedError(ExpertError):
    """The actions do not end in the pair's output."""
