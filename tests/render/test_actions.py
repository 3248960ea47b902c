"""Actions in words, as the pages and terminals print them."""

import numpy as np
import pytest

from jaxarc.render.actions import describe_action

WHOLE = tuple(np.argwhere(np.ones((2, 3))).ravel().tolist())


@pytest.mark.parametrize(
    ("action", "selection_format", "words"),
    [
        ((3, 4, 5, 2, 1), "bbox", "fill green, rows 2–4, columns 1–5"),
        ((3, 2, 3, 2, 4), "bbox", "fill green, row 2, columns 3–4"),
        ((13, 2, 0), "point", "flood fill green, row 2, column 0"),
        ((24,), "mask", "rotate clockwise, whole grid"),
        ((31, *WHOLE), "mask", "clear, rows 0–1, columns 0–2"),
        ((2, 0, 0, 2, 2), "mask", "fill red, 2 cells in rows 0–2, columns 0–2"),
        ((33, 4, 6), "point", "resize to 5 × 7"),
        ((34, 0, 0), "point", "submit"),
    ],
)
def test_cells_are_counted_from_zero_as_in_the_api(action, selection_format, words):
    assert describe_action(action, selection_format) == words
