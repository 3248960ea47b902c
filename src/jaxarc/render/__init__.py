"""Pictures of grids, tasks, states and episodes: in a terminal, in SVG, in pixels, and as a page to replay them."""

from typing import TYPE_CHECKING

from jaxarc.lazy import lazy
from jaxarc.render.palette import ARC_COLORS, COLOR_NAMES, PALETTES, SAFE_COLORS

if TYPE_CHECKING:
    from jaxarc.render.drawings import animate, state_image, state_svg, task_image, task_svg
    from jaxarc.render.layout import Frame
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

# Pictures of states bring JAX; those of tasks in files do not.
_HOMES = {
    "Frame": "jaxarc.render.layout",
    **dict.fromkeys(["animate", "state_image", "state_svg", "task_image", "task_svg"], "jaxarc.render.drawings"),
    **dict.fromkeys(["render_grid", "render_state", "render_task"], "jaxarc.render.terminal"),
}

__getattr__, __dir__ = lazy(__name__, _HOMES)
