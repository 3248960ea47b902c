"""Actions that a sequence reaches its end without."""

from collections.abc import Sequence
from typing import Final

import numpy as np

from jaxarc.experts.expert import Action, ActionFormat, Pair
from jaxarc.experts.host_canvas import play_on_host

_LONGEST: Final = 60  # actions; the work grows with the square, and long sequences have few needless ones


def prune(pair: Pair, actions: Sequence[Action], action_format: ActionFormat) -> tuple[Action, ...]:
    """Drop, from the first on, every action without which the grid still becomes the output.

    A fill that later fills cover is one, and the copy of what is never pasted. Sequences of more than 60 actions stay
    as they are.
    """
    kept = tuple(actions)
    place = 0
    while place < len(kept) <= _LONGEST:
        fewer = kept[:place] + kept[place + 1 :]
        if np.array_equal(play_on_host(pair, fewer, action_format), pair.output):
            kept = fewer
        else:
            place += 1
    return kept
