"""How a surrogate comes to agree with its expert, and whether its probabilities are to be believed, as pictures."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from jaxarc.render.figure_file import write_png

_INK: Final = "#333333"
_COLORS: Final = ("#0074d9", "#d9480f", "#2b8a3e", "#8a3ea6")

Points = Sequence[tuple[float, float]]
"""x and y of each; a y that is not finite is left out."""


@dataclass(frozen=True)
class Panel:
    """One of the pictures below each other."""

    label: str  # of the y axis
    lines: Mapping[str, Points]  # by name
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
        [each[1] for each in bins], [each[2] for each in bins], color=_COLORS[0], marker="o", label="this surrogate"
    )
    for size, predicted, expected in bins:
        axes.annotate(f"{size:,}", (predicted, expected), (6, -10), textcoords="offset points", fontsize=8, color=_INK)
    _style(axes, "mean probability by the expert")
    axes.set_xlabel("mean probability by the surrogate; beside a point, its candidates", color=_INK)
    axes.legend(loc="upper left", frameon=False, fontsize=9, labelcolor=_INK)
    write_png(figure, path)


def _draw_panel(axes: Axes, panel: Panel) -> None:
    for color, (name, points) in zip(_COLORS, panel.lines.items(), strict=False):
        sound = [(x, y) for x, y in points if math.isfinite(y)]
        axes.plot([x for x, _ in sound], [y for _, y in sound], color=color, label=name, marker="o", markersize=2.5)
    _style(axes, panel.label)
    if panel.is_share:
        axes.set_ylim(-0.03, 1.03)
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))
    else:
        axes.set_ylim(bottom=0)
    axes.legend(frameon=False, fontsize=9, labelcolor=_INK)


def _style(axes: Axes, label: str) -> None:
    axes.set_ylabel(label, color=_INK)
    axes.grid(color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=_INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
