"""The painter on random pairs and on pairs made for each of its ideas."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from small_tasks import grid_of

from jaxarc import constants as c
from jaxarc.experts.expert import Pair
from jaxarc.experts.host_canvas import check_solution
from jaxarc.experts.painter import Painter

FORMATS = ("point", "bbox", "mask")
PAINTER = Painter()
NO_JAX = """
import sys
sys.modules["jax"] = None
import numpy as np
from jaxarc.experts.expert import Pair
from jaxarc.experts.painter import Painter
assert Painter().solve(Pair(np.zeros((2, 2), np.int8), np.ones((2, 2), np.int8)), "bbox")[-1][0] == 34
"""


@st.composite
def grids(draw):
    """Grids of up to 8x8 with few or many colors, noise or blocks of two by two."""
    height, width = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    colors = draw(st.integers(0, 9))
    grid = draw(arrays(np.int8, (height, width), elements=st.integers(0, colors), fill=st.just(0)))
    return np.kron(grid, np.ones((2, 2), np.int8))[:height, :width] if draw(st.booleans()) else grid


def pair(start, output):
    """A pair from rows of digits."""
    return Pair(grid_of(start), grid_of(output))


def naive_count(pair):
    """A resize if the sizes differ, a fill for each wrong cell, and the submit."""
    kept = np.zeros_like(pair.output)
    rows, columns = np.minimum(pair.input.shape, pair.output.shape)
    kept[:rows, :columns] = pair.input[:rows, :columns]
    return int(pair.input.shape != pair.output.shape) + int((kept != pair.output).sum()) + 1


@pytest.mark.parametrize("action_format", FORMATS)
@settings(max_examples=60)
@given(start=grids(), output=grids())
def test_any_pair_is_solved_in_no_more_actions_than_cell_by_cell(action_format, start, output):
    pair = Pair(start, output)
    actions = PAINTER.solve(pair, action_format)
    check_solution(pair, actions, action_format)
    assert len(actions) <= naive_count(pair)


@pytest.mark.parametrize("action_format", FORMATS)
def test_noise_on_the_largest_grid_is_solved(action_format):
    draw = np.random.default_rng(0)
    size, painter = (30, 30) if action_format != "bbox" else (12, 30), Painter(width=1, copying=0)
    noise = Pair(*(draw.integers(0, 10, size, np.int8) for _ in range(2)))
    assert len(painter.solve(noise, action_format)) <= naive_count(noise)


@pytest.mark.parametrize("action_format", FORMATS)
def test_same_grid_is_submitted_at_once(action_format):
    same = pair("120 345", "120 345")
    assert [action[0] for action in PAINTER.solve(same, action_format)] == [c.SUBMIT]


@pytest.mark.parametrize(
    ("start", "output", "operations"),
    [
        ("111 111 111", "222 242 222", [c.FILL + 2, c.FILL + 4]),  # large areas first, details over them
        ("010 110 011", "020 220 022", [c.FLOOD_FILL + 2]),
        ("123 456", "321 654", [c.FLIP_LEFT_RIGHT]),
        ("123 456 789", "741 852 963", [c.ROTATE_CLOCKWISE]),
        ("123 456 789", "456 789 000", [c.MOVE_UP]),
        ("123 456 789", "000 000 000", [c.FILL]),
        ("1234 5678 9123", "951 162 273 384", [c.RESIZE, c.ROTATE_CLOCKWISE, c.RESIZE]),
        ("000000000 012340000 056780000", "000000000 012341234 056785678", [c.COPY, c.PASTE]),
        ("0000000000 0123400000 0567800000", "0000000000 0000001234 0000005678", [c.CUT, c.PASTE]),
        ("99999 91239 94569 99999", "123 456", [c.COPY, c.RESIZE, c.PASTE]),
        ("99999 01210 03430 05650 99999", "99999 12100 34300 56500 99999", [c.MOVE_LEFT]),
        ("12345 67891 23456", "5432112345 1987667891 6543223456", [c.FLIP_LEFT_RIGHT, c.RESIZE, c.COPY, c.PASTE, 26]),
    ],
)
def test_idea_for_boxes_is_used(start, output, operations):
    found = [action[0] for action in PAINTER.solve(pair(start, output), "bbox")]
    assert len(found) <= len(operations) + 1
    assert set(found) - {c.RESIZE} <= {*operations, c.SUBMIT}


@pytest.mark.parametrize(
    ("start", "output", "count"),
    [
        ("1111 1111 1111", "2111 1311 1141", 3),  # a fill for each color
        ("1234 5678", "8765 4321", 2),  # two flips
        ("123400000 567800000", "123401234 567805678", 2),  # one copy of eight colors
        ("900009 012345 900009", "900009 123450 900009", 1),  # one move of five colors
        ("9999 9123 9456", "123 456", 3),  # a copy before the resize
    ],
)
def test_idea_for_masks_is_used(start, output, count):
    assert len(PAINTER.solve(pair(start, output), "mask")) <= count + 1


@pytest.mark.parametrize(
    ("start", "output", "count"),
    [
        ("111 101 111", "222 202 222", 1),  # a region in one flood fill
        ("00000 00000 00000 00000", "22222 22222 22222 22232", 2),  # flooded, then a detail
        ("000000 000000 000000", "222333 222333 222333", 5),  # a wall of three, a flood fill on each side
        ("112 112 112", "221 221 221", 3),  # regions that change colors take a third one between
        ("123 456 789", "100 000 000", 2),  # cut down to one cell and grown again
        ("10 00", "01 00", 1),  # a move
    ],
)
def test_idea_for_points_is_used(start, output, count):
    assert len(PAINTER.solve(pair(start, output), "point")) <= count + 1


@pytest.mark.parametrize("wrong", [{"width": 0}, {"copying": -1}, {"shifts": 1.5}, {"width": True}])
def test_setting_out_of_range_is_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Painter(**wrong)


def test_painter_works_without_jax():
    subprocess.run([sys.executable, "-c", NO_JAX], check=True)
