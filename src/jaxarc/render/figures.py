"""Figures of runs as PNG files: learning curves, comparisons of experiments, curves of a surrogate."""

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter

from jaxarc.files import write_whole

_INK: Final = "#333333"
# Color-blind people can tell these apart (Okabe and Ito).
_CURVE_COLORS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_CURVE_STYLES: Final = ("-", "--", ":", "-.")  # with more curves than colors, the colors repeat in the next style
_LETTERS_OF_A_LABEL: Final = 90
_LINE_COLORS: Final = ("#0074d9", "#d9480f", "#2b8a3e", "#8a3ea6")

XYPoints = Sequence[tuple[float, float | None]]
"""x and y of each point; one whose y is None or not finite is left out."""


def write_png(figure: Figure, path: Path) -> None:
    """Write a figure as PNG; equal figures give equal bytes.

    Raises:
        OSError: the file cannot be written; the old file stays.
    """
    picture = io.BytesIO()
    FigureCanvasAgg(figure).print_png(picture, metadata={"Software": None})
    write_whole(path, picture.getvalue())


def _style(axes: Axes, label: str) -> None:
    axes.set_ylabel(label, color=_INK)
    axes.grid(color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _show_percent(axes: Axes) -> None:
    axes.set_ylim(-0.03, 1.03)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))


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
    """Labels of the two axes."""

    x: str
    y: str
    is_share: bool  # whether y goes from 0 to 1, shown in percent


def draw_comparison(curves: Sequence[BandedCurve], axes: AxisLabels, path: Path, title: str = "") -> None:
    """Draw curves with a legend below into a PNG file, written whole or not at all."""
    figure = Figure(figsize=(8, 4.6 + 0.22 * len(curves)), layout="constrained")
    figure.suptitle(title, fontsize=11, color=_INK)
    plot = figure.subplots()
    for number, curve in enumerate(curves):
        # Curve 7 has the color of curve 0 and the next style.
        color = _CURVE_COLORS[number % len(_CURVE_COLORS)]
        style = _CURVE_STYLES[number // len(_CURVE_COLORS) % len(_CURVE_STYLES)]
        plot.fill_between(curve.x, curve.low, curve.high, color=color, alpha=0.18, linewidth=0)
        marker = "o" if len(curve.x) == 1 else ""
        plot.plot(curve.x, curve.mean, style, color=color, linewidth=1.8, marker=marker, label=_short(curve.label))
    _style(plot, axes.y)
    plot.set_xlabel(axes.x, color=_INK)
    plot.xaxis.set_major_formatter(EngFormatter(sep=""))
    if axes.is_share:
        _show_percent(plot)
    # Below the plot, since labels of runs are long and would hide curves.
    figure.legend(loc="outside lower left", frameon=False, fontsize=9, labelcolor=_INK)
    write_png(figure, path)


def _short(label: str) -> str:
    return label if len(label) <= _LETTERS_OF_A_LABEL else f"{label[: _LETTERS_OF_A_LABEL - 1]}…"


@dataclass(frozen=True)
class Panel:
    """One of several plots with a common x axis."""

    label: str  # label of the y axis
    lines: Mapping[str, Sequence[XYPoints]]  # name in the legend -> points of each seed
    is_share: bool = False


def draw_panels(panels: Sequence[Panel], path: Path, title: str, x_label: str = "steps") -> None:
    """Draw panels with a common x axis into a PNG file, written whole or not at all.

    Several seeds are thin lines, and their mean a bold one.
    """
    figure = Figure(figsize=(8, 1 + 2.5 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    figure.suptitle(title, fontsize=11, color=_INK)
    for axis, panel in zip(axes, panels, strict=True):
        for color, (name, seeds) in zip(_LINE_COLORS, panel.lines.items(), strict=False):
            _plot(axis, seeds, color, name)
        _style(axis, panel.label)
        if panel.is_share:
            _show_percent(axis)
        axis.legend(frameon=False, fontsize=9, labelcolor=_INK)
    axes[-1].set_xlabel(x_label, color=_INK)
    axes[-1].xaxis.set_major_formatter(EngFormatter(sep=""))
    write_png(figure, path)


def _plot(axes: Axes, seeds: Sequence[XYPoints], color: str, label: str) -> None:
    """Draw one line, or several thin ones and their mean at the steps where they have a point."""
    at: dict[float, list[float]] = {}  # x -> values of the seeds
    for points in seeds:
        # Seeds may have measured at different steps; a mean is over those that did.
        sound = {x: y for x, y in points if y is not None and math.isfinite(y)}
        for x, y in sound.items():
            at.setdefault(x, []).append(y)
        if len(seeds) > 1 and sound:
            axes.plot(list(sound), list(sound.values()), color=color, linewidth=0.7, alpha=0.35)
    if at:
        means = [math.fsum(values) / len(values) for values in at.values()]
        axes.plot(list(at), means, color=color, label=label, linewidth=1.8, marker="o", markersize=2.5)


def draw_calibration(
    bins: Sequence[tuple[int, float, float]],
    path: Path,
    title: str,
    y_label: str = "mean probability by the expert",
) -> None:
    """Draw the expected probability against the surrogate's; a calibrated surrogate follows the diagonal."""
    figure = Figure(figsize=(5.5, 5.5), layout="constrained")
    axes = figure.subplots()
    figure.suptitle(title, fontsize=11, color=_INK)
    axes.plot((0, 1), (0, 1), color="#aaaaaa", linewidth=1, label="calibrated")
    axes.plot(
        [each[1] for each in bins],
        [each[2] for each in bins],
        color=_LINE_COLORS[0],
        marker="o",
        label="this surrogate",
    )
    for size, predicted, expected in bins:
        axes.annotate(f"{size:,}", (predicted, expected), (6, -10), textcoords="offset points", fontsize=8, color=_INK)
    _style(axes, y_label)
    axes.set_xlabel("mean probability by the surrogate; beside a point, their number", color=_INK)
    axes.legend(loc="upper left", frameon=False, fontsize=9, labelcolor=_INK)
    write_png(figure, path)
