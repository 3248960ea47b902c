"""Rename colors before a search, so that what is the ground becomes 0, or a role becomes a color."""

from typing import Final

import numpy as np
from jaxtyping import Int64

NUM_COLORS: Final = 10
RECOLORS: Final = ("none", "ground", "ranked")
"""Leave all colors; exchange the commonest with 0; name all but 0 by how common they are, the commonest 1."""


def recoloring(kind: str, grid: np.ndarray) -> Int64[np.ndarray, "10"]:
    """Return the new name of each color, by the input of a pair.

    ``ranked`` of a grid with four cells of color 5 and two of color 3 names 5 as 1 and 3 as 2; the colors that are not
    there follow in their order. It is a permutation, so that an answer can be named back.
    """
    names = np.arange(NUM_COLORS)
    counts = np.bincount(grid.ravel(), minlength=NUM_COLORS)
    if kind == "ground":
        common = int(counts.argmax())
        names[[0, common]] = common, 0
    if kind == "ranked":
        order = 1 + np.argsort(-counts[1:], kind="stable")
        names[order] = np.arange(1, NUM_COLORS)
    return names
