"""Grids, tasks and states for the terminal, by rich: a cell is a colored block, two columns wide, with its number."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from rich.columns import Columns
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.panel import Panel
from rich.style import Style
from rich.table import Table
from rich.text import Text

from jaxarc.constants import PADDING
from jaxarc.render.layout import Frame, task_pairs
from jaxarc.render.palette import ARC_COLORS, Palette, ink_on
from jaxarc.render.svg import checked_grid
from jaxarc.tasks.raw_task import RawTask

if TYPE_CHECKING:
    from jaxtyping import Array, Bool, Int8

    from jaxarc.envs.state import ArcEnvState
    from jaxarc.types import JaxArcTask

_CELL_WIDTH = 2
_FRAME_WIDTH = 4  # a panel's border and its inner margin, both sides
_ARROW = " → "


def render_grid(
    grid: "Int8[Array, 'H W'] | np.ndarray",
    cell_width: int = _CELL_WIDTH,
    selection: "Bool[Array, 'H W'] | np.ndarray | None" = None,
    palette: Palette = ARC_COLORS,
) -> Text:
    """Draw one grid, cropped to its active area; padding inside it is blank.

    Args:
        grid: ``int[H, W]``, colors 0..9, -1 outside the active area.
        cell_width: columns of the terminal for one cell; cells of 2 columns look square.
        selection: cells marked by a star, if cells are 2 columns wide or more.
        palette: the ten colors.

    Raises:
        ValueError: the grid does not have two axes or holds something else than -1..9, or the selection has another
            shape.
    """
    cells, marked = checked_grid(grid, selection)
    text = Text(no_wrap=True, overflow="crop", end="")
    for row, line in enumerate(_crop(cells).tolist()):
        text.append("\n" if row else "")
        for column, cell in enumerate(line):
            star = "*" if marked is not None and marked[row, column] else ""
            words = " " if cell == PADDING else f"{cell}{star}"
            text.append(words.ljust(cell_width)[:cell_width], _style_of(cell, palette))
    return text


class TaskView:
    """A task as a rich renderable: pairs input → output, as many in a row as the terminal is wide."""

    def __init__(self, task: "JaxArcTask | RawTask", title: str = "", only: str = "") -> None:
        self.task = task
        self.title = title
        self.only = only

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.title:
            yield Text(self.title, style="bold")
        pairs = [pair for pair in _pairs(self.task) if self.only in ("", pair[0])]
        yield Columns([_draw_pair(*pair, options.max_width) for pair in pairs], padding=(0, 1))


def render_task(task: "JaxArcTask | RawTask", title: str = "", only: str = "") -> TaskView:
    """Draw all pairs of a task, each cropped to its active area; or ``only`` one of them, such as ``train 0``."""
    return TaskView(task, title, only)


def render_state(state: "ArcEnvState") -> Group:
    """Draw a state: working grid, target, and the clipboard unless it is empty; stars mark the cells last selected.

    Raises:
        ValueError: the state is a batch of states.
    """
    from jaxarc.render.drawings import frame_of_state  # JAX, which a task in a file does without

    return render_frame(frame_of_state(state))


def render_frame(frame: Frame) -> Group:
    """Draw a frame as :func:`render_state` draws a state."""
    parts = {"input": frame.input, "target": frame.target, "clipboard": frame.clipboard}
    panels = [Panel.fit(render_grid(frame.grid, selection=frame.selection), title="working grid")]
    for title, grid in parts.items():
        if grid is not None and (grid != PADDING).any():
            panels.append(Panel.fit(render_grid(grid), title=title))
    return Group(Columns(panels, padding=(0, 1)), Text(frame.caption, style="bold"))


def print_task(task: "JaxArcTask | RawTask", title: str = "") -> None:
    """Print a task on standard output."""
    console = Console()
    console.print(render_task(task, title))


def print_frames(title: str, frames: Sequence[Frame]) -> None:
    """Print frames on standard output, below a title unless it is empty."""
    console = Console()
    if title:
        console.print(title, markup=False, highlight=False)
    for frame in frames:
        console.print(render_frame(frame))


def _pairs(task: "JaxArcTask | RawTask") -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    for name, source, target in task_pairs(task):
        yield name, _crop(source), _crop(target)


def _draw_pair(title: str, source: np.ndarray, target: np.ndarray, max_width: int) -> Panel:
    """Draw input beside output where the terminal is wide enough, and above it where it is not."""
    # Two steps as the terminal gets narrower: cells of one letter instead of the
    # usual width, then above instead of beside.
    room = max_width - _FRAME_WIDTH
    # The widest grid alone decides about the width of a cell; both together decide whether they fit side by side.
    columns = source.shape[1], target.shape[1]
    cell_width = _CELL_WIDTH if _CELL_WIDTH * max(columns) <= room else 1
    beside = cell_width * sum(columns) + len(_ARROW) <= room
    left = render_grid(source, cell_width)
    right = render_grid(target, cell_width) if target.size else Text("?")  # an unknown answer
    body = _beside(left, right) if beside else Group(left, Text("↓"), right)
    sizes = ["{}x{}".format(*grid.shape) if grid.size else "?" for grid in (source, target)]
    return Panel.fit(body, title=title, subtitle=" → ".join(sizes))


def _beside(source: Text, target: Text) -> Table:
    table = Table.grid(padding=0)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, vertical="middle")
    table.add_column(no_wrap=True)
    table.add_row(source, _ARROW, target)
    return table


@cache
def _style_of(color: int, palette: Palette) -> Style | None:
    return None if color == PADDING else Style(color=ink_on(color, palette), bgcolor=palette[color])


def _crop(cells: np.ndarray) -> np.ndarray:
    """Cut a grid to the rows and columns that hold a color."""
    # The last row and the last column with a color; padding before them is kept, as blanks.
    active = cells != PADDING
    rows = np.flatnonzero(active.any(axis=1))
    columns = np.flatnonzero(active.any(axis=0))
    return cells[: rows[-1] + 1, : columns[-1] + 1] if rows.size else cells[:0, :0]
