"""Rules that draw on: what they draw, and that those which the library finds draw the outputs."""

import numpy as np
import pytest
from small_tasks import grid_of

from jaxarc.config import SearchConfig
from jaxarc.search import GridProgram, solve
from jaxarc.search.growth import MIRRORS, PLACES, Growth, GrowthRule, find_growth, grown

FOREVER = float("inf")


@pytest.mark.parametrize(
    ("rules", "before", "after"),
    [
        ("none : 0 left x = x", "30000 00040", "33333 00044"),
        ("turns : 0 down 2 = 3", "000 000 020", "000 030 323"),
        ("left_right : 0 right 1 = 2, 0 right 2 = 1", "00010", "21212"),
        ("none : 0 up 3 = 3, 0 left 3 down edge = 3", "030 000 000", "030 030 033"),
        ("none : 0 up_left x up_left_2 x = x", "1000 0100 0000 2000", "1000 0100 0010 2001"),
        ("none : 4 left other right x = x", "340 345 640", "340 355 640"),
        ("all : 0 down 8 right 8 = 7", "080 888 080", "787 888 787"),
    ],
)
def test_rules_draw_until_nothing_changes(rules, before, after):
    text = f"recolor none; size input; grow by {rules}"
    program = GridProgram.parse(text)
    assert str(program) == text
    assert GridProgram.parse(str(program)).in_words()
    np.testing.assert_array_equal(program(grid_of(before)), grid_of(after))


@pytest.mark.parametrize("seed", range(6))
def test_rules_that_the_library_finds_draw_the_outputs_and_are_read_back(seed, canvas_of):
    """The library says that they do, by its own run of them; here they run in NumPy."""
    random = np.random.default_rng(seed)
    count = 0
    while count < 10:
        mirrors = str(random.choice(list(MIRRORS)))
        places = [str(one) for one in random.choice(list(PLACES), 3, replace=False)]
        tokens = [int(random.choice([1, 11])), *random.choice([0, 2, 10, 12], 2).tolist()]
        tests = tuple(zip(places, tokens, strict=True))
        rule = GrowthRule(0, tests[: random.integers(1, 4)], int(random.choice([3, 11])) if tests[0][1] == 11 else 3)
        inputs = [random.choice([0, 0, 0, 0, 0, 1, 2], random.integers(1, 9, 2)).astype(np.uint8) for _ in range(3)]
        outputs = [grown(grid, [rule], mirrors) for grid in inputs]
        if all(map(np.array_equal, inputs, outputs)):
            continue
        count += 1
        for found in find_growth(canvas_of([*inputs, inputs[0]], outputs), FOREVER):
            (one,) = found.layers
            assert Growth.parse(str(one)) == one
            np.testing.assert_array_equal(found.answer, outputs[0])
            for source, target in zip(inputs, outputs, strict=True):
                np.testing.assert_array_equal(grown(source, one.rules, one.mirrors), target)


@pytest.mark.parametrize("mirrors", MIRRORS)
def test_rules_that_erase_are_read_back(mirrors, canvas_of):
    """Cells become 0 beside a color that none of the cells that they look at repeats."""
    rule = GrowthRule(1, (("left", 2), ("right", 3)), 0)
    inputs = [grid_of("213000 000000 030100 000000"), grid_of("003000 021300 000213")]
    outputs = [grown(grid, [rule], mirrors) for grid in inputs]
    found = find_growth(canvas_of([*inputs, inputs[0]], outputs), FOREVER)
    assert found
    for candidate in found:
        assert (Growth.parse(str(candidate.layers[0])),) == candidate.layers


def test_a_ray_that_turns_at_a_wall_is_found_and_runs_on_an_unseen_grid():
    """A color goes down from the top; at a wall of color 5 it goes on at the right of it."""
    rule = GridProgram.parse("recolor none; size input; grow by none : 0 up 2 = 2, 0 left 2 down_left 5 = 2")
    sources = ["02000 00000 00000 05500 00000", "00200 00000 00500 00000 00000", "20000 00000 05000 50000 00000"]
    asked = grid_of("000200 000000 000000 000500 000000")
    train = [(grid_of(source), rule(grid_of(source))) for source in sources]
    best = solve(train, asked, SearchConfig(max_cost=2)).answers[0]
    assert "grow" in str(best.program)
    np.testing.assert_array_equal(best.answer, rule(asked))
