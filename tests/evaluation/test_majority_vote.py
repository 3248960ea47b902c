import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jaxarc.evaluation import majority_vote

ONE, TWO, WIDE, HIGH = (np.array(grid, np.int8) for grid in ([[1]], [[2]], [[1, 1]], [[1], [1]]))


def names(grids):
    return [str(grid.tolist()) for grid in grids]


def test_the_most_frequent_grids_win():
    assert names(majority_vote([ONE, TWO, WIDE, TWO, WIDE, TWO], 2)) == names([TWO, WIDE])


def test_of_equally_frequent_grids_the_first_seen_wins():
    assert names(majority_vote([WIDE, ONE, TWO, ONE, WIDE], 3)) == names([WIDE, ONE, TWO])


def test_grids_of_the_same_cells_and_another_shape_are_others():
    assert names(majority_vote([WIDE, HIGH, HIGH], 1)) == names([HIGH])


def test_the_first_fills_up_where_there_are_too_few():
    assert names(majority_vote([ONE, TWO, TWO], 4)) == names([TWO, ONE, TWO, TWO])


@given(st.lists(st.sampled_from([ONE, TWO, WIDE, HIGH]), min_size=1, max_size=12), st.integers(1, 5))
def test_who_is_left_out_had_no_more_votes_than_who_is_in(grids, count):
    counts = {name: names(grids).count(name) for name in names(grids)}
    elected = names(majority_vote(grids, count))
    assert len(elected) == count
    left_out = [votes for name, votes in counts.items() if name not in elected]
    assert max(left_out, default=0) <= min(counts[name] for name in elected)
    assert len(set(elected)) == min(count, len(counts))
