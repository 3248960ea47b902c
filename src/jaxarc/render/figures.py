"""Figures of runs as PNG files: learning curves, comparisons of experiments, curves of a surrogate, solve maps."""

import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter

from jaxarc.files import write_whole


def write_png(figure: Figure, path: Path) -> None:
    """Write a figure; equal figures give equal bytes.

    Raises:
        OSError: the file cannot be written; what was there stays.
    """
    picture = io.BytesIO()
    FigureCanvasAgg(figure).print_png(picture, metadata={"Software": None})
    write_whole(path, picture.getvalue())


Points = Sequence[float | None]
"""One number a report; None where nothing was measured."""

_INK: Final = "#333333"
_TRAIN, _UNSEEN, _SAMPLED, _RETURN = "#0074d9", "#d9480f", "#aaaaaa", "#2b8a3e"


@dataclass(frozen=True)
class LearningCurve:
    """The columns of a picture, all of one length."""

    environment_steps: Sequence[int]
    train_solve_rate: Points  # 0 .. 1, greedy, each training pair once
    evaluation_solve_rate: Points  # 0 .. 1, greedy, each unseen pair once
    episode_solve_rate: Points  # 0 .. 1, of the episodes it learned from
    mean_return: Points  # of those episodes


def draw_learning_curve(curves: Sequence[LearningCurve], path: Path, title: str = "") -> None:
    """Draw solve rates and return against environment steps into a PNG file; it appears when it is complete.

    Args:
        curves: one for each seed. Several are drawn thin, and their mean bold.
        path: where to.
        title: a line above.
    """
    figure = Figure(figsize=(8, 6), layout="constrained")
    rates, returns = figure.subplots(2, 1, sharex=True, height_ratios=(2, 1))
    figure.suptitle(title, fontsize=11, color=_INK)
    _draw_rates(rates, curves)
    _plot(returns, [(curve.environment_steps, curve.mean_return) for curve in curves], _RETURN, "")
    _style(returns, "mean return of the\nepisodes learned from")
    returns.set_xlabel("environment steps", color=_INK)
    returns.xaxis.set_major_formatter(EngFormatter(sep=""))
    write_png(figure, path)


def _draw_rates(axes: Axes, curves: Sequence[LearningCurve]) -> None:
    sampled = [(curve.environment_steps, curve.episode_solve_rate) for curve in curves]
    train = [(curve.environment_steps, curve.train_solve_rate) for curve in curves]
    unseen = [(curve.environment_steps, curve.evaluation_solve_rate) for curve in curves]
    _plot(axes, sampled, _SAMPLED, "episodes learned from (sampled actions)")
    _plot(axes, train, _TRAIN, "training pairs, each once (greedy)", width=4.0)
    _plot(axes, unseen, _UNSEEN, "unseen evaluation pairs, each once (greedy)")
    _style(axes, "solved")
    axes.set_ylim(-0.03, 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    axes.legend(loc="lower right", frameon=False, fontsize=9, labelcolor=_INK)


def _plot(
    axes: Axes, lines: Sequence[tuple[Sequence[int], Points]], color: str, label: str, width: float = 1.8
) -> None:
    """Draw one line, or several thin ones and their mean at the steps where they have a point."""
    at: dict[int, list[float]] = {}  # environment steps -> values of the seeds
    for steps, values in lines:
        points = {x: y for x, y in zip(steps, values, strict=True) if y is not None and math.isfinite(y)}
        for x, y in points.items():
            at.setdefault(x, []).append(y)
        if len(lines) > 1 and points:
            axes.plot(list(points), list(points.values()), color=color, linewidth=0.7, alpha=0.35)
    if at:
        means = [math.fsum(values) / len(values) for values in at.values()]
        axes.plot(list(at), means, color=color, label=label, linewidth=width, marker="o", markersize=1.6 * width)


def _style(axes: Axes, label: str) -> None:
    axes.set_ylabel(label, color=_INK)
    axes.grid(color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


_INK: Final = "#333333"
# Color-blind people can tell these apart (Okabe and Ito).
_CURVE_COLORS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_CURVE_STYLES: Final = ("-", "--", ":", "-.")  # beyond, colors come again in another style
_LETTERS_OF_A_LABEL: Final = 90


@dataclass(frozen=True)
class BandedCurve:
    """A line and the band around it; all columns have one length."""

    label: str
    x: Sequence[float]
    mean: Sequence[float]
    low: Sequence[float]
    high: Sequence[float]


@dataclass(frozen=True)
class AxisLabels:
    """What the two axes are called."""

    x: str
    y: str
    is_share: bool  # whether y goes from 0 to 1, shown in percent


def draw_comparison(curves: Sequence[BandedCurve], axes: AxisLabels, path: Path, title: str = "") -> None:
    """Draw curves into a PNG file, the legend below them; it appears when it is complete."""
    figure = Figure(figsize=(8, 4.6 + 0.22 * len(curves)), layout="constrained")
    figure.suptitle(title, fontsize=11, color=_INK)
    plot = figure.subplots()
    for number, curve in enumerate(curves):
        color, style = (
            _CURVE_COLORS[number % len(_CURVE_COLORS)],
            _CURVE_STYLES[number // len(_CURVE_COLORS) % len(_CURVE_STYLES)],
        )
        plot.fill_between(curve.x, curve.low, curve.high, color=color, alpha=0.18, linewidth=0)
        marker = "o" if len(curve.x) == 1 else ""
        plot.plot(curve.x, curve.mean, style, color=color, linewidth=1.8, marker=marker, label=_short(curve.label))
    plot.set_xlabel(axes.x, color=_INK)
    plot.set_ylabel(axes.y, color=_INK)
    plot.xaxis.set_major_formatter(EngFormatter(sep=""))
    if axes.is_share:
        plot.set_ylim(-0.03, 1.03)
        plot.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    plot.grid(color="#e5e5e5", linewidth=0.8)
    plot.set_axisbelow(True)
    plot.tick_params(colors=_INK)
    for side in ("top", "right"):
        plot.spines[side].set_visible(False)
    figure.legend(loc="outside lower left", frameon=False, fontsize=9, labelcolor=_INK)
    write_png(figure, path)


def _short(label: str) -> str:
    return label if len(label) <= _LETTERS_OF_A_LABEL else f"{label[: _LETTERS_OF_A_LABEL - 1]}…"


_INK: Final = "#333333"
_LINE_COLORS: Final = ("#0074d9", "#d9480f", "#2b8a3e", "#8a3ea6")

XYPoints = Sequence[tuple[float, float]]
"""x and y of each; a y that is not finite is left out."""


@dataclass(frozen=True)
class Panel:
    """One of the pictures below each other."""

    label: str  # of the y axis
    lines: Mapping[str, XYPoints]  # by name
    is_share: bool = False


def draw_panels(panels: Sequence[Panel], path: Path, title: str, x_label: str = "steps") -> None:
    """Draw panels with a common x axis into a PNG file; it appears when it is complete."""
    figure = Figure(figsize=(8, 1 + 2.5 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    figure.suptitle(title, fontsize=11, color=_INK)
    for axis, panel in zip(axes, panels, strict=True):
        _draw_panel(axis, panel)
    axes[-1].set_xlabel(x_label, color=_INK)
    write_png(figure, path)


def draw_calibration(bins: Sequence[tuple[int, float, float]], path: Path, title: str) -> None:
    """Draw what the expert says of candidates that the surrogate finds alike likely; it should say the same.

    Args:
        bins: of each the number of candidates, the surrogate's mean probability and the expert's.
        path: where to, a PNG file.
        title: a line above.
    """
    figure = Figure(figsize=(5.5, 5.5), layout="constrained")
    axes = figure.subplots()
    figure.suptitle(title, fontsize=11, color=_INK)
    axes.plot((0, 1), (0, 1), color="#aaaaaa", linewidth=1, label="as the expert says")
    axes.plot(
        [each[1] for each in bins],
        [each[2] for each in bins],
        color=_LINE_COLORS[0],
        marker="o",
        label="this surrogate",
    )
    for size, predicted, expected in bins:
        axes.annotate(f"{size:,}", (predicted, expected), (6, -10), textcoords="offset points", fontsize=8, color=_INK)
    _style_panel(axes, "mean probability by the expert")
    axes.set_xlabel("mean probability by the surrogate; beside a point, its candidates", color=_INK)
    axes.legend(loc="upper left", frameon=False, fontsize=9, labelcolor=_INK)
    write_png(figure, path)


def _draw_panel(axes: Axes, panel: Panel) -> None:
    for color, (name, points) in zip(_LINE_COLORS, panel.lines.items(), strict=False):
        sound = [(x, y) for x, y in points if math.isfinite(y)]
        axes.plot([x for x, _ in sound], [y for _, y in sound], color=color, label=name, marker="o", markersize=2.5)
    _style_panel(axes, panel.label)
    if panel.is_share:
        axes.set_ylim(-0.03, 1.03)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    else:
        axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=9, labelcolor=_INK)


def _style_panel(axes: Axes, label: str) -> None:
    axes.set_ylabel(label, color=_INK)
    axes.grid(color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


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
