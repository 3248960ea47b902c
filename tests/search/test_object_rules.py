"""Rules of objects: what each action draws, and that the rules which are learned are read back and draw the outputs."""

import numpy as np
import pytest
from small_tasks import grid_of

from jaxarc.config import SearchConfig
from jaxarc.search import GridProgram, solve
from jaxarc.search.object_rules import ACTIONS, FEATURES, KINDS, ObjectRule, find_object_rules

FOREVER = float("inf")


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        ("any by all : 1 = slide down", "0110 0000 0020", "0000 0110 0020"),
        ("one_color by commonest : 2 = meet 8, 8 = stay", "20008 00000 00000", "00028 00000 00000"),
        ("any by is_most : 1 = stay, 2 = meet largest", "300000 000440 300440", "300000 000440 003440"),
        ("any by size : 1 = clear", "1000 0022", "0000 0022"),
        ("any by all : 1 = step down_right", "1100 1100 0000 0000", "0000 0000 0011 0011"),
        ("any by all : 1 = shift left", "001 020", "010 200"),
        ("one_color by commonest : 1 = link nearest, 3 = stay", "10003 00003", "11113 00003"),
        ("any by size : 1 = beam rows", "0100 0000 0022", "1111 0000 0022"),
        ("any by all : 1 = flip rows", "120 100 000", "100 120 000"),
        ("any by all : 1 = mirror right", "120000 100000", "122100 100100"),
        ("any by all : 1 = copy down", "120 100 000 000", "120 100 120 100"),
        ("any by all : 1 = box", "101 110", "111 111"),
    ],
)
def test_an_action_draws_an_object(rule, before, after):
    program = GridProgram.parse(f"recolor none; size input; objects {rule}")
    assert str(program).endswith(f"objects {rule}")
    np.testing.assert_array_equal(program(grid_of(before)), grid_of(after))


def random_grid(random):
    height, width = random.integers(6, 10, 2)
    grid = np.zeros((height, width), np.uint8)
    for _ in range(random.integers(2, 6)):
        top, left = random.integers(0, height - 1), random.integers(0, width - 1)
        grid[top : top + random.integers(1, 3), left : left + random.integers(1, 3)] = random.integers(1, 4)
    return grid


@pytest.mark.parametrize("seed", range(4))
def test_learned_rules_draw_the_outputs_and_are_read_back(seed, canvas_of):
    random = np.random.default_rng(seed)
    count = 0
    while count < 3:
        kind, feature = str(random.choice(KINDS)), str(random.choice(FEATURES))
        rule = ObjectRule(kind, feature, tuple((value, str(random.choice(ACTIONS))) for value in range(4)))
        assert ObjectRule.parse(str(rule)) == rule
        inputs = [random_grid(random) for _ in range(4)]
        outputs = [rule.drawn(grid) for grid in inputs]
        found = find_object_rules(canvas_of(inputs, outputs[:3]), FOREVER)
        count += len(found) > 0
        for candidate in found:
            (one,) = candidate.layers
            assert all(map(np.array_equal, map(one.drawn, inputs[:3]), outputs[:3]))


def test_a_color_that_goes_to_another_one_is_found():
    rule = GridProgram.parse("recolor none; size input; objects one_color by commonest : 1 = stay, 2 = meet 1")
    sources = ["1100000 1100200 0000000 0000000", "0000002 0000000 0000000 0001111", "0002200 0000000 0000000 0001000"]
    asked = grid_of("0000000 2000110 0000110 0000000")
    train = [(grid_of(source), rule(grid_of(source))) for source in sources]
    best = solve(train, asked, SearchConfig(max_cost=2)).answers[0]
    np.testing.assert_array_equal(best.answer, rule(asked))
    np.testing.assert_array_equal(GridProgram.parse(str(best.program))(asked), rule(asked))
