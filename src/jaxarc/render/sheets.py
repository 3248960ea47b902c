"""Contact sheets: many tasks or many states in one picture, each small and with its name."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

import numpy as np
from jaxtyping import Int8

from jaxarc.constants import PADDING
from jaxarc.render import svg
from jaxarc.render.layout import Frame, active_area, draw_frame, draw_pairs
from jaxarc.render.svg import Drawing

_FRAME_SIDE: Final = 200  # pixels of the longest side of a grid
_PAIR_SIDE: Final = 78
_TILE_SIDE: Final = 78
_SMALLEST_CELL: Final = 3  # pixels
_LARGEST_CELL: Final = 36
_STATES_IN_A_ROW: Final = 4


def cell_size_for(grids: Iterable[Int8[np.ndarray, "..."]], side: int) -> int:
    """Return the size of a cell at which the longest side of some grids takes about ``side`` pixels."""
    # The padding of a canvas is not drawn, so it does not count: a 3x3 task on 30x30 gets large cells. An unknown
    # answer has no cells at all.
    longest = max(int((grid != PADDING).sum(axis=axis).max(initial=0)) for grid in grids for axis in (0, 1))
    return min(max(side // max(longest, 1), _SMALLEST_CELL), _LARGEST_CELL)


def pairs_svg(title: str, named_pairs: Sequence[tuple[str, np.ndarray, np.ndarray]]) -> str:
    """Draw all pairs of a task, in cells as large as four pairs in a row allow."""
    cell = cell_size_for((grid for pair in named_pairs for grid in pair[1:]), _PAIR_SIDE)
    return draw_pairs(svg, named_pairs, title, cell).to_svg(title or "a task")


def frame_svg(frame: Frame) -> str:
    """Draw a frame, in cells as large as the width of a notebook allows."""
    return draw_frame(svg, frame, cell_size_for([frame.grid, frame.target], _FRAME_SIDE)).to_svg(frame.caption)


def frames_svg(frames: Sequence[Frame], title: str) -> str:
    """Draw the working grid and the target of each frame, with its index and caption, below a title."""
    tiles = [
        svg.captioned(_side_by_side(frame.grid, frame.target), f"{index}: {frame.caption}")
        for index, frame in enumerate(frames)
    ]
    rows = [svg.hstack(tiles[at : at + _STATES_IN_A_ROW], 24) for at in range(0, len(tiles), _STATES_IN_A_ROW)]
    return svg.vstack([svg.draw_text(title, 14), *rows], 14, centered=False).to_svg(title)


def tasks_html(title: str, tasks: Iterable[tuple[str, np.ndarray, np.ndarray]]) -> str:
    """Return HTML with the input and the output of one pair of each task above the task's name.

    The tiles flow, so the sheet is as wide as the page that holds it.
    """
    tiles = [svg.captioned(_side_by_side(source, target), name).to_svg(name) for name, source, target in tasks]
    style = "display:flex;flex-wrap:wrap;gap:8px;align-items:end"
    return f"<p><code>{escape(title)}</code></p><div style='{style}'>{''.join(tiles)}</div>"


def _side_by_side(source: Int8[np.ndarray, "H W"], target: Int8[np.ndarray, "H W"]) -> Drawing:
    cell = cell_size_for([source, target], _TILE_SIDE)
    left, right = (svg.draw_grid(active_area(grid), None, cell) for grid in (source, target))
    return svg.hstack([left, svg.draw_arrow(20), right], 4)
