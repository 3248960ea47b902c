"""How an agent fared task by task, as a heat map: one row a task, the best on top."""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from jaxarc.render.figure_file import write_png

_INK, _PALE, _NOTHING = "#333333", "#f4f6f8", "#ffffff"
_GOOD: Final = LinearSegmentedColormap.from_list("good", [_PALE, "#9ecae1", "#0074d9", "#00305c"])
_PLAIN: Final = LinearSegmentedColormap.from_list("plain", [_PALE, "#bbbbbb", "#666666"])
_ROWS_OF_A_BLOCK: Final = 50  # about a page; more tasks go beside it
_MOST_BLOCKS: Final = 8  # beyond, the blocks get longer
_ROW_INCHES, _COLUMN_INCHES, _NAME_INCHES, _LEAST_WIDTH_INCHES = 0.17, 0.46, 0.9, 4.5
_TITLE_LETTERS_PER_INCH: Final = 13
_DPI: Final = 110


@dataclass(frozen=True)
class SolveMap:
    """Rows of a picture in the order they are drawn, down the first block of rows, then down the next."""

    task_ids: Sequence[str]
    columns: Sequence[str]  # a few words each
    shades: Sequence[Sequence[float | None]]  # 0 .. 1, a row of columns for each task; None where there is nothing
    texts: Sequence[Sequence[str]]  # what stands in the cells
    plain: Sequence[str] = ()  # columns in gray, where more is not better


def draw_solve_map(table: SolveMap, path: Path, title: str = "") -> None:
    """Draw tasks against columns into a PNG file; it appears when it is complete."""
    blocks = max(1, min(_MOST_BLOCKS, math.ceil(len(table.task_ids) / _ROWS_OF_A_BLOCK)))
    rows = math.ceil(len(table.task_ids) / blocks)
    width = max(blocks * (_NAME_INCHES + _COLUMN_INCHES * len(table.columns)) + 0.3, _LEAST_WIDTH_INCHES)
    lines = textwrap.wrap(title, int(width * _TITLE_LETTERS_PER_INCH), break_on_hyphens=False)
    figure = Figure(figsize=(width, 1.2 + 0.2 * len(lines) + _ROW_INCHES * rows), layout="constrained")
    figure.suptitle("\n".join(lines), fontsize=9, color=_INK)
    for block, axes in enumerate(figure.subplots(1, blocks, squeeze=False)[0]):
        _draw_block(axes, table, slice(block * rows, (block + 1) * rows), rows)
    write_png(figure, path)


def _draw_block(axes: Axes, table: SolveMap, part: slice, rows: int) -> None:
    ids, texts = table.task_ids[part], table.texts[part]
    shades = np.array([[math.nan if x is None else x for x in row] for row in table.shades[part]], float)
    shades = shades.reshape(-1, len(table.columns))
    plain = np.isin(table.columns, table.plain)[None, :, None]
    colors = np.where(plain, _PLAIN(shades), _GOOD(shades))
    axes.imshow(colors, aspect="auto", interpolation="none")
    axes.set_ylim(rows - 0.5, -0.5)  # a block that is not full keeps the height of the others
    _label(axes, ids, table.columns)
    is_dark = colors[..., :3] @ (0.3, 0.59, 0.11) < 0.55
    is_dark &= ~np.isnan(shades)
    for row, line in enumerate(texts):
        for column, text in enumerate(line):
            ink = _NOTHING if is_dark[row, column] else _INK
            axes.text(column, row, text, ha="center", va="center", fontsize=6, color=ink)


def _label(axes: Axes, ids: Sequence[str], columns: Sequence[str]) -> None:
    """Name rows and columns, and part the cells by white lines."""
    axes.set_yticks(range(len(ids)), ids, fontsize=7, family="monospace")
    axes.set_xticks(range(len(columns)), columns, fontsize=7, rotation=50, ha="left", rotation_mode="anchor")
    axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0, colors=_INK)
    axes.set_xticks(np.arange(0.5, len(columns) - 1), minor=True)
    axes.set_yticks(np.arange(0.5, len(ids)), minor=True)
    axes.grid(which="minor", color=_NOTHING, linewidth=1.5)
    axes.tick_params(which="minor", length=0)
    for side in axes.spines.values():
        side.set_visible(False)
