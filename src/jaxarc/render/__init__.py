"""Pictures of grids and tasks."""

from jaxarc.render.palette import ARC_COLORS, COLOR_NAMES
from jaxarc.render.terminal import render_grid, render_task

__all__ = ["ARC_COLORS", "COLOR_NAMES", "render_grid", "render_task"]
