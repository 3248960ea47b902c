"""The classes in which ARCLE's rules differ, by hand; and ARCLE itself, where its Python environment is built."""

import numpy as np
import pytest

from campaign.arcle.arcle_rules import CLASSES, ArcleStep
from campaign.arcle.fuzz_arcle import ARCLE_PYTHON, Chunk, Comparison, compare, explanation

SHAPE = (3, 4)


def grid(text):
    rows = [[-1 if cell == "." else int(cell) for cell in row] for row in text.split()]
    padded = np.full(SHAPE, -1, np.int8)
    if rows:
        padded[: len(rows), : len(rows[0])] = rows
    return padded


def moment(cells, operation, selection, clip=""):
    selected = np.zeros(SHAPE, bool)
    for row, marks in enumerate(selection.split()):
        selected[row, : len(marks)] = [mark == "#" for mark in marks]
    held = grid(clip) >= 0
    clip_size = int(held.any(1).sum()), int(held.any(0).sum())
    active = grid(cells) >= 0
    return ArcleStep(
        grid(cells), grid(clip), (int(active[:, 0].sum()), int(active[0].sum())), clip_size, operation, selected
    )


DIFFERENCES = [  # class, moment, what ARCLE shows after it: grid and clipboard
    ("black is see-through", moment("100 234", 20, "... ###"), "234 000", ""),
    ("black is see-through", moment("123 040", 20, "... ###"), "143 000", ""),
    ("holes in the selection", moment("123 456", 26, "#.. ..#"), "021 650", ""),
    ("turn of a box that is not square", moment("123 456", 25, "### ..."), "020 416", ""),
    ("selection reaches past the grid", moment("12 34", 26, "#### #### ####"), "00 00", ""),
    ("selection reaches past the grid", moment("12 34", 28, "####", "5"), "12 34", "5"),
    ("selection reaches past the grid", moment("12 34", 28, "###"), "12 34", "120"),
    ("cell outside beside the one inside", moment("12 34", 15, "#.. ... ..#"), "12 34", ""),
    ("holes in the clipboard", moment("11 11", 29, "#", "20 .3"), "20 03", "20 03"),
]


@pytest.mark.parametrize(("name", "before", "cells", "clip"), DIFFERENCES)
def test_difference_is_explained_when_arcle_does_what_its_rule_says(name, before, cells, clip):
    assert explanation(before, grid(cells), grid(clip), "") == name
    other = grid(cells)
    other[0, 0] = 9
    assert explanation(before, other, grid(clip), "") == ""
    assert explanation(before, grid(cells), grid(clip), "IndexError: 3") == ""


def test_difference_where_the_rules_are_the_same_is_not_explained():
    for before in (moment("12 34", 3, "#"), moment("12 34", 26, "## ##"), moment("12 34", 15, "#")):
        assert explanation(before, grid("99 99"), grid(""), "") == ""


def test_nothing_selected_is_a_class_of_moves_turns_and_flips():
    assert explanation(moment("12 34", 26, ""), grid("77 77"), grid(""), "") == "nothing selected"
    assert explanation(moment("12 34", 3, ""), grid("77 77"), grid(""), "") == ""


@pytest.mark.skipif(not ARCLE_PYTHON.exists(), reason="ARCLE's environment is not built; make fuzz-arcle builds it")
def test_every_difference_from_arcle_is_explained():
    comparison = Comparison()
    compare(Chunk(np.random.default_rng(3), (6, 6), sequences=40), comparison, ARCLE_PYTHON)
    assert not comparison.unexplained, comparison.unexplained[0]
    assert comparison.steps == 2000
    assert comparison.agreeing > 1800
    assert sum(comparison.explained.values()) == comparison.steps - comparison.agreeing > 0
    assert set(comparison.explained) <= set(CLASSES)
