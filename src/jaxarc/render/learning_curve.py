"""How an agent improved, as a picture."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, PercentFormatter

from jaxarc.render.figure_file import write_png

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
