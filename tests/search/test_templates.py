"""Templates: where they are drawn, that a rule is learned and read back, and answers that explain all but one pair."""

import numpy as np
import pytest
from small_tasks import grid_of

from jaxarc.config import SearchConfig
from jaxarc.search import GridProgram, solve
from jaxarc.search.templates import SOURCES, Templates, find_templates

FOREVER = float("inf")


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        ("none : keep", "12300 00000 10300", "12300 00000 12300"),
        ("none : clear", "12300 00000 10300", "00000 00000 12300"),
        ("left_right : keep", "12300 00000 30100", "12300 00000 32100"),
        ("none : keep", "12300 00000 30100", "12300 00000 30100"),  # only a mirror image would fit
        ("turns : keep", "12300 00003 00000 00001", "12300 00003 00002 00001"),
        ("none : keep", "1220000 0000000 1100000 1100000", "1220000 0000000 1122220 1122220"),  # twice as large
        ("none : keep", "12300 00000 10030", "12300 00000 10030"),  # only one cell of it is there
    ],
)
def test_a_template_is_drawn_where_cells_of_it_are(rule, before, after):
    program = GridProgram.parse(f"recolor none; size input; templates by {rule}")
    assert str(program).endswith(f"templates by {rule}")
    assert any(rule in line for line in program.in_words())
    np.testing.assert_array_equal(program(grid_of(before)), grid_of(after))


def random_grid(random, mirrored):
    """Return a grid with a template of five cells at the left, and three of them at the right."""
    grid = np.zeros((9, 9), np.uint8)
    template = np.array([[1, 2, 2], [0, 2, 3]], np.uint8)
    grid[1:3, :3] = template
    for top in (0, 4):
        marks = template * np.isin(template, (1, 3))
        marks = marks[::-1] if mirrored and random.random() < 0.5 else marks
        grid[top + random.integers(2) :, 5 + random.integers(2) :][:2, :3] = marks
    return grid


@pytest.mark.parametrize("seed", range(4))
def test_learned_rules_draw_the_outputs_and_are_read_back(seed, canvas_of):
    random = np.random.default_rng(seed)
    for mirrors in ("none", "top_bottom", "all"):
        rule = Templates(mirrors, str(random.choice(SOURCES)))
        assert Templates.parse(str(rule)) == rule
        inputs = [random_grid(random, mirrors != "none") for _ in range(3)]
        outputs = [rule.drawn(grid) for grid in inputs]
        (found,) = find_templates(canvas_of([*inputs, inputs[0]], outputs), FOREVER)
        (learned,) = found.layers
        assert all(map(np.array_equal, (learned.drawn(grid) for grid in inputs), outputs))


def test_a_program_that_explains_all_pairs_but_one_is_believed():
    """One of four outputs is no mirror image; what explains it as well is a table by heart, which costs more."""
    random = np.random.default_rng(0)
    inputs = [random.integers(0, 5, (4, 6)) for _ in range(5)]
    train = [(grid, grid[:, ::-1]) for grid in inputs[:3]] + [(inputs[3], random.integers(0, 5, (5, 3)))]
    best = solve(train, inputs[4], SearchConfig(max_cost=2)).answers[0]
    assert best.fits == (True, True, True, False)
    np.testing.assert_array_equal(best.answer, inputs[4][:, ::-1])
