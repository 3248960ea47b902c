"""Orientations of grids: what is turned is turned back, and a turned grid is turned to the same side."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from jaxarc.search import GridProgram
from jaxarc.search.orientations import ORIENTATIONS, turned, turned_back

GRIDS = hnp.arrays(np.int8, hnp.array_shapes(min_dims=2, max_dims=2, max_side=6), elements=st.integers(0, 4))


@given(grid=GRIDS, symmetry=st.integers(0, 7))
def test_a_turned_grid_is_turned_back(grid, symmetry):
    np.testing.assert_array_equal(turned_back(turned(grid, symmetry), symmetry), grid)


@pytest.mark.parametrize("name", ORIENTATIONS)
@given(grid=GRIDS)
def test_a_program_from_one_side_leaves_what_it_does_not_change(name, grid):
    program = GridProgram.parse(f"orient {name}; recolor none; size input; input" if name != "none" else PLAIN)
    assert GridProgram.parse(str(program)) == program
    np.testing.assert_array_equal(program(grid), grid)


PLAIN = "recolor none; size input; input"


@pytest.mark.parametrize(("name", "places"), [("marker", {(0, 1), (0, 5)}), ("marker_corner", {(0, 1), (1, 0)})])
def test_a_grid_is_turned_so_that_its_rarest_color_is_at_the_top(name, places):
    grid = np.zeros((7, 7), np.int8)
    grid[0, 1], grid[2:4, 2:5] = 3, 2
    for symmetry in range(8):
        other = turned(grid, symmetry)
        found = turned(other, ORIENTATIONS[name](other))
        assert tuple(np.argwhere(found == 3)[0]) in places


@pytest.mark.parametrize("name", ["weight", "weight_corner"])
def test_a_grid_is_turned_so_that_most_colored_cells_are_at_the_top(name):
    grid = np.zeros((7, 7), np.int8)
    grid[0, 1], grid[2:4, 2:5] = 3, 2
    for symmetry in range(8):
        other = turned(grid, symmetry)
        assert np.argwhere(turned(other, ORIENTATIONS[name](other)) != 0)[:, 0].mean() < 3


def test_stripes_lie():
    grid = np.zeros((5, 6), np.int8)
    grid[:, 2] = grid[:, 4] = 3
    assert [ORIENTATIONS["striped"](one) for one in (grid, grid.T)] == [1, 0]
