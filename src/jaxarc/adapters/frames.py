"""A grid as pixels or characters, for interfaces that ask for a picture of an environment."""

from typing import Any, Final

import numpy as np
from jaxtyping import Array, Int8, UInt8

from jaxarc.envs.state import ArcEnvState
from jaxarc.render import pixels, render_grid
from jaxarc.wrappers.episode_statistics import StatisticsState

RENDER_MODES: Final = ("rgb_array", "ansi")
_CELL: Final = 16  # pixels of a cell's side


def working_grids(state: Any) -> Int8[np.ndarray, "*B H W"]:
    """Return the working grid of a state of our environment or of our wrappers around it."""
    while isinstance(state, StatisticsState):
        state = state.env_state
    if not isinstance(state, ArcEnvState):
        raise TypeError(f"only states of jaxarc's own environment and wrappers are drawn, got {type(state).__name__}")
    return np.asarray(state.working_grid)


def draw_frame(grid: Int8[Array, "H W"] | np.ndarray, render_mode: str) -> UInt8[np.ndarray, "rows columns 3"] | str:
    """Draw the whole canvas in pixels (``"rgb_array"``), or the grid as lines of digits (``"ansi"``)."""
    if render_mode == "ansi":
        return render_grid(grid).plain
    return np.array(pixels.draw_grid(grid, cell_size=_CELL))


def require_render_mode(render_mode: str | None) -> None:
    """Raise when a render mode is unknown.

    Raises:
        ValueError: naming the known ones.
    """
    if render_mode is not None and render_mode not in RENDER_MODES:
        raise ValueError(f"render_mode must be None or one of {RENDER_MODES}, got {render_mode!r}; choose one of these")
