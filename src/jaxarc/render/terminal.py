"""Grids and tasks as rich renderables: each cell a colored block two columns wide that also shows its number."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Array, Int8
from rich.columns import Columns
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.panel import Panel
from rich.style import Style
from rich.table import Table
from rich.text import Text

from jaxarc.constants import NUM_COLORS, PADDING
from jaxarc.render.palette import ARC_COLORS, ink_on
from jaxarc.types import JaxArcTask

_CELL_WIDTH = 2
_FRAME_WIDTH = 4  # a panel's border and its inner margin, both sides
_ARROW = " → "
_STYLES = {color: Style(color=ink_on(color), bgcolor=ARC_COLORS[color]) for color in range(NUM_COLORS)}


def render_grid(grid: Int8[Array, "H W"] | np.ndarray, cell_width: int = _CELL_WIDTH) -> Text:
    """Draw one grid, cropped to its active area; a -1 inside it is left blank.

    Args:
        grid: ``int[H, W]``, colors 0..9, -1 outside the active area.
        cell_width: columns of the terminal for one cell, 2 for cells that look square.

    Raises:
        ValueError: the grid does not have two axes or holds something else than -1..9.
    """
    cells = np.asarray(grid)
    if cells.ndim != 2:
        raise ValueError(f"a grid has two axes (rows, columns), got shape {cells.shape}; draw one grid at a time")
    if cells.size and (cells.min() < PADDING or cells.max() >= NUM_COLORS):
        raise ValueError(f"a grid holds {PADDING}..{NUM_COLORS - 1}, got {cells.min()}..{cells.max()}; recolor it")
    text = Text(no_wrap=True, overflow="crop", end="")
    for index, row in enumerate(_crop(cells)):
        text.append("\n" if index else "")
        for cell in row.tolist():
            text.append(" " * cell_width if cell == PADDING else str(cell).ljust(cell_width), _STYLES.get(cell))
    return text


class TaskView:
    """A task as a rich renderable: every pair input → output, side by side as far as the terminal is wide."""

    def __init__(self, task: JaxArcTask, title: str = "") -> None:
        self.task = task
        self.title = title

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.title:
            yield Text(self.title, style="bold")
        yield Columns([_draw_pair(*pair, options.max_width) for pair in _pairs(self.task)], padding=(0, 1))


def render_task(task: JaxArcTask, title: str = "") -> TaskView:
    """Draw all pairs of a task, demonstrations first, each cropped to its active area."""
    return TaskView(task, title)


def _pairs(task: JaxArcTask) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    splits = (
        ("train", task.num_train_pairs, task.input_grids_examples, task.output_grids_examples),
        ("test", task.num_test_pairs, task.test_input_grids, task.true_test_output_grids),
    )
    for split, count, inputs, outputs in splits:
        for index in range(int(count)):
            yield f"{split} {index}", _crop(np.asarray(inputs[index])), _crop(np.asarray(outputs[index]))


def _draw_pair(title: str, source: np.ndarray, target: np.ndarray, max_width: int) -> Panel:
    """Draw input beside output where the terminal is wide enough, and above it where it is not."""
    room = max_width - _FRAME_WIDTH
    columns = source.shape[1], target.shape[1]
    cell_width = _CELL_WIDTH if _CELL_WIDTH * max(columns) <= room else 1
    beside = cell_width * sum(columns) + len(_ARROW) <= room
    left, right = render_grid(source, cell_width), render_grid(target, cell_width)
    body = _beside(left, right) if beside else Group(left, Text("↓"), right)
    return Panel.fit(body, title=title, subtitle="{}x{} → {}x{}".format(*source.shape, *target.shape))


def _beside(source: Text, target: Text) -> Table:
    table = Table.grid(padding=0)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True, vertical="middle")
    table.add_column(no_wrap=True)
    table.add_row(source, _ARROW, target)
    return table


def _crop(cells: np.ndarray) -> np.ndarray:
    """Cut a grid to the rows and columns that hold a color."""
    active = cells != PADDING
    rows, columns = np.flatnonzero(active.any(axis=1)), np.flatnonzero(active.any(axis=0))
    return cells[: rows[-1] + 1, : columns[-1] + 1] if rows.size else cells[:0, :0]
