"""Learning curves of several experiments in one picture, each with its confidence band."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter

from jaxarc.render.figure_file import write_png

_INK: Final = "#333333"
_COLORS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")  # told apart by everyone
_STYLES: Final = ("-", "--", ":", "-.")  # beyond, colors come again in another style
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
class Axes:
    """What the two axes are called."""

    x: str
    y: str
    is_share: bool  # whether y goes from 0 to 1, shown in percent


def draw_comparison(curves: Sequence[BandedCurve], axes: Axes, path: Path, title: str = "") -> None:
    """Draw curves into a PNG file, the legend below them; it appears when it is complete."""
    figure = Figure(figsize=(8, 4.6 + 0.22 * len(curves)), layout="constrained")
    figure.suptitle(title, fontsize=11, color=_INK)
    plot = figure.subplots()
    for number, curve in enumerate(curves):
        color, style = _COLORS[number % len(_COLORS)], _STYLES[number // len(_COLORS) % len(_STYLES)]
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
