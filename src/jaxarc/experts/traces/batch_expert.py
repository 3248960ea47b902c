"""Experts that solve many pairs in one compiled program, without a call back to Python for each."""

import abc
from collections.abc import Iterator, Sequence

from jaxarc.experts.expert import Action, ActionFormat, Pair


class BatchExpert(abc.ABC):
    """Solves pairs many at a time; see :class:`jaxarc.experts.Expert` for what it returns of each."""

    name: str
    version: int
    batch_size: int = 512  # pairs that it is given at once

    @abc.abstractmethod
    def solve_all(self, pairs: Sequence[Pair], action_format: ActionFormat) -> Iterator[tuple[int, Sequence[Action]]]:
        """Yield the place of a pair and the actions that solve it, as soon as there are any, for every pair once.

        Raises:
            ExpertError: it does not know this action format.
        """
