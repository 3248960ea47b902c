"""Episodes made by hand, for pages that replay them."""

import numpy as np

from jaxarc import constants as c
from jaxarc.render.replay_page import ReplayEpisode, ReplayPage, ReplayTask

FLIP = ReplayTask("flip", [(np.array([[1, 2]]), np.array([[2, 1]]))], "mirror it")
FILL = ReplayTask("<b>fill</b>", [])


def painted(target, colors, player="by hand"):
    """Paint a black grid cell by cell, row by row, and submit."""
    target = np.array(target, np.int8)
    height, width = target.shape
    grids = [np.zeros_like(target)]
    actions = []
    for place, color in enumerate(colors):
        row, column = divmod(place, width)
        grid = grids[-1].copy()
        grid[row, column] = color
        grids.append(grid)
        actions.append((c.FILL + color, row, column, row, column))
    actions.append((c.SUBMIT, 0, 0, 0, 0))
    grids.append(grids[-1])
    similarities = np.array([(grid == target).mean() for grid in grids])
    is_solved = bool(similarities[-1] == 1)
    rewards = np.diff(similarities) - 0.01
    rewards[-1] += 10 if is_solved else -1
    stacked = np.full((len(grids), 8, 8), c.PADDING, np.int8)
    stacked[:, :height, :width] = grids
    padded = np.full((8, 8), c.PADDING, np.int8)
    padded[:height, :width] = target
    return ReplayEpisode(
        pair="test 0",
        player=player,
        selection_format="bbox",
        actions=actions,
        grids=stacked,
        clipboards=np.full_like(stacked, c.PADDING),
        target=padded,
        rewards=rewards,
        similarities=similarities,
        invalid=np.zeros(len(actions), bool),
        is_solved=is_solved,
    )


def small_page():
    """Four episodes of two tasks, two of them solved."""
    page = ReplayPage("A <script>alert(1)</script> & more", {"tasks": "</script> two"})
    page.add(FLIP, painted([[2, 1, 0]], [2, 1], "Ann"))
    page.add(FLIP, painted([[2, 1, 0]], [1, 2], "Bob"))
    page.add(FILL, painted([[3, 3], [3, 3], [3, 3]], [3] * 6, "Ann"))
    page.add(FILL, painted([[3, 3], [3, 3], [3, 3]], [3] * 5, "Bob"))
    return page
