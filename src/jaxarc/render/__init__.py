"""Pictures of grids, tasks, states and episodes: in a terminal, in SVG, in pixels, and as a page to replay them."""

from jaxarc.render.palette import ARC_COLORS, COLOR_NAMES, PALETTES, SAFE_COLORS
from jaxarc.render.pictures import Frame, animate, state_image, state_svg, task_image, task_svg
from jaxarc.render.terminal import render_grid, render_state, render_task

__all__ = [
    "ARC_COLORS",
    "COLOR_NAMES",
    "PALETTES",
    "SAFE_COLORS",
    "Frame",
    "animate",
    "render_grid",
    "render_state",
    "render_task",
    "state_image",
    "state_svg",
    "task_image",
    "task_svg",
]


def __dir__() -> list[str]:
    return sorted(__all__)
