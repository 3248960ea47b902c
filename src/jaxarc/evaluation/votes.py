"""Of many grids for one test input, the few that are handed in."""

from collections.abc import Sequence

import numpy as np


def majority_vote(grids: Sequence[np.ndarray], count: int) -> list[np.ndarray]:
    """Return the most frequent distinct grids, the more frequent first, and of equally frequent ones the first seen.

    Where there are fewer distinct grids than asked for, the first one fills the rest.

    Args:
        grids: candidates ``int8[h, w]`` of any sizes, at least one.
        count: how many to return.
    """
    votes: dict[tuple[tuple[int, ...], bytes], int] = {}
    first_seen: dict[tuple[tuple[int, ...], bytes], np.ndarray] = {}
    for grid in grids:
        ballot = (grid.shape, grid.tobytes())
        votes[ballot] = votes.get(ballot, 0) + 1
        first_seen.setdefault(ballot, grid)
    ranked = sorted(votes, key=lambda ballot: -votes[ballot])[:count]  # sorting keeps the order of equal counts
    return [first_seen[ballot] for ballot in ranked + ranked[:1] * (count - len(ranked))]
