"""The score of ARC-AGI-3: how few actions an agent needs, beside a baseline."""

from collections.abc import Sequence
from typing import Final

from jaxarc.games.game import GameError

MOST: Final = 115.0  # percent of a level: better than the baseline, up to this


def level_score(baseline: int, actions: int) -> float:
    """Return ``min(115, 100 (baseline / actions)^2)``: twice the actions give a quarter of the points.

    >>> level_score(10, 20)
    25.0
    """
    return min(MOST, 100.0 * (baseline / actions) ** 2)


def game_score(baselines: Sequence[int], spent: Sequence[int], levels_completed: int) -> float:
    """Return the score of a game, 0 .. 100: the mean over its levels, weighted by their number 1 .. N.

    A level that is not completed counts 0, and the score is at most the weighted share of those that are.

    Args:
        baselines: actions that a good player needs in each level.
        spent: actions in each level, as ``state.spent``.
        levels_completed: the first levels, so many, are completed.

    Raises:
        GameError: there are more or fewer baselines than levels.
    """
    if len(baselines) != len(spent):
        raise GameError(f"baselines are one a level: {len(spent)} levels were played, got {len(baselines)} baselines")
    weights = range(1, len(baselines) + 1)
    rows = list(zip(weights, baselines, spent, strict=True))[:levels_completed]
    total = sum(weights)
    points = sum(weight * level_score(baseline, actions) for weight, baseline, actions in rows)
    return min(points / total, 100.0 * sum(weight for weight, *_ in rows) / total)
