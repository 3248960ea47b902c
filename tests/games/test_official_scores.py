"""The score, by numbers worked out by hand."""

import pytest

from jaxarc.games.scoring import game_score, level_score


@pytest.mark.parametrize(("baseline", "actions", "points"), [(10, 10, 100), (10, 20, 25), (10, 9, 115), (3, 30, 1)])
def test_a_level_counts_by_the_square_and_at_most_115(baseline, actions, points):
    assert level_score(baseline, actions) == pytest.approx(points)


@pytest.mark.parametrize(
    ("spent", "completed", "points"),
    [
        ([10, 10, 10], 3, 100),
        ([9, 9, 9], 3, 100),  # 115 each, but at most the share of levels
        ([10, 10, 99], 2, 50),  # levels 1 and 2 of weights 1, 2, 3
        ([9, 20, 20], 3, (115 + 2 * 25 + 3 * 25) / 6),
        ([5, 0, 0], 0, 0),
    ],
)
def test_later_levels_weigh_more(spent, completed, points):
    assert game_score([10, 10, 10], spent, completed) == pytest.approx(points)
