"""Episodes of random actions, played by the NumPy reference of the operations, for pages that replay them."""

import numpy as np
from reference.canvas import apply_operation, start_canvas
from reference.cases import random_canvas, random_selection

from jaxarc import constants as c
from jaxarc.render.actions import selection_of
from jaxarc.render.replay_page import ReplayEpisode

SIDE = 9  # of the canvas


def random_episode(seed, selection_format, num_actions=60):
    """Play all operations that edit, on grids and selections of every kind."""
    rng = np.random.default_rng(seed)
    pair_input = random_canvas(rng, SIDE, SIDE).grid
    canvases, actions = [start_canvas(pair_input)], []
    for _ in range(num_actions):
        before = canvases[-1]
        operation = int(rng.integers(c.SUBMIT))
        cells = np.argwhere(random_selection(rng, before.height, before.width, SIDE, SIDE))
        actions.append(_action(operation, cells, selection_format))
        selection = selection_of(actions[-1], selection_format, (SIDE, SIDE))
        canvases.append(apply_operation(before, operation, selection, pair_input))
    return ReplayEpisode(
        pair="train 0",
        player="nobody",
        selection_format=selection_format,
        actions=actions,
        grids=np.array([canvas.grid for canvas in canvases]),
        clipboards=np.array([canvas.clipboard for canvas in canvases]),
        target=random_canvas(rng, SIDE, SIDE).grid,
        rewards=rng.normal(size=num_actions),
        similarities=rng.uniform(size=num_actions + 1),
        invalid=rng.uniform(size=num_actions) < 0.1,
        is_solved=False,
    )


def _action(operation, cells, selection_format):
    if selection_format == "mask":
        return (operation, *cells.ravel().tolist())
    corners = [cells.max(axis=0), cells.min(axis=0)] if len(cells) else [np.zeros(2, int)] * 2
    return (operation, *np.concatenate(corners)[: 4 if selection_format == "bbox" else 2].tolist())
