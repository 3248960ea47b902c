"""The picture of a comparison: steps per second against batch size."""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from contests import ARCLE, JAXARC, JAXARC_EPISODES, OURS, RATIO_CONTEST
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from jaxarc.files import write_whole

INK, LINES = "#767e89", "#767e8940"  # mid-tones on no background, which read on white and on black
BLUE, ORANGE, PURPLE = "#2f81f7", "#e8702a", "#a05ee6"
STEP_CONTESTS = "bbox-"
BATCH_TICKS = (1, 16, 256, 4096, 65536)


@dataclass(frozen=True)
class Point:
    """Median, minimum and maximum of one entrant at one batch size, in steps per second."""

    batch: int
    median: float
    lowest: float
    highest: float


def draw_speed(results: dict[str, Any], path: Path) -> None:
    """Draw the results of the comparison into an SVG file with a transparent background.

    Raises:
        ValueError: the results hold no step contest.
    """
    style: dict[Any, Any] = {
        "font.family": "DejaVu Sans",
        "font.size": 10.5,
        "text.color": INK,
        "svg.hashsalt": "speed",
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(8.4, 4.7), dpi=200)
        figure.patch.set_alpha(0)
        axes = figure.add_axes((0.085, 0.125, 0.885, 0.715))
        _draw(axes, results)
        jax_version = results["packages"].get("ours", {}).get("jax", "")
        setting = f"random policy, box actions on 30×30, 400 ARC-AGI-1 tasks · {results['hardware']}, jax {jax_version}"
        figure.text(0.02, 0.935, "Environment steps per second", fontsize=15, weight="bold")
        figure.text(0.02, 0.878, setting, fontsize=10)
        drawn = io.BytesIO()
        FigureCanvasSVG(figure).print_svg(drawn, metadata={"Date": None})
    write_whole(path, drawn.getvalue())


def points(results: dict[str, Any], name: str) -> list[Point]:
    """Collect what an entrant reached in the step contests, by batch size."""
    found = [
        Point(contest["request"]["batch"], entrant["median"], entrant["min"], entrant["max"])
        for contest, entrant in _entrants(results, name)
        if contest["id"].startswith(STEP_CONTESTS)
    ]
    return sorted(found, key=lambda point: point.batch)


def _entrants(results: dict[str, Any], name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for contest in results["contests"]:
        for entrant in contest["entrants"]:
            if entrant["name"] == name:
                yield contest, entrant


def _draw(axes: Axes, results: dict[str, Any]) -> None:
    curves = [points(results, entrant.name) for entrant in (OURS, JAXARC, JAXARC_EPISODES)]
    ours, vmap, alone = curves
    if not ours:
        raise ValueError(f"the results hold no contest {STEP_CONTESTS}BATCH; run: make benchmark-peers")
    axes.set_xscale("log")
    axes.set_yscale("log")
    _style(axes)
    styles = ((BLUE, "-", 2.8), (ORANGE, "-", 2.0), (ORANGE, (0, (4, 2)), 1.6))
    for curve, (color, line, width) in zip(curves, styles, strict=True):
        batches = [point.batch for point in curve]
        lowest, highest = [point.lowest for point in curve], [point.highest for point in curve]
        axes.fill_between(batches, lowest, highest, color=color, alpha=0.18, linewidth=0)
        line = {"linestyle": line, "linewidth": width, "marker": "o", "markersize": 2.4 * width}
        axes.plot(batches, [point.median for point in curve], color=color, zorder=3, **line)
    label = {"textcoords": "offset points", "fontsize": 11.5, "va": "center"}
    top = (ours[-1].batch, max(point.highest for point in ours[-3:]))
    above = label | {"color": BLUE, "weight": "bold", "ha": "right", "va": "bottom"}
    axes.annotate("jaxarc, this package", top, xytext=(0, 7), **above)
    for curve, text, offset in ((vmap, "JaxARC 1.0.3, vmap", (9, 0)), (alone, "JaxARC 1.0.3, lax.map", (9, 8))):
        if curve:
            axes.annotate(text, (curve[-1].batch, curve[-1].median), xytext=offset, color=ORANGE, **label)
    for _, entrant in _entrants(results, ARCLE.name):
        place = (1, entrant["median"])
        axes.plot(*place, "D", color=PURPLE, markersize=7, clip_on=False, zorder=4)
        axes.annotate("ARCLE 0.2.6", place, xytext=(9, -6), color=PURPLE, **label)
    _ratios(axes, results)
    axes.set_xlim(0.8, 100_000)
    lowest = min(point.lowest for curve in curves for point in curve)
    axes.set_ylim(lowest / 1.8, max(point.highest for point in ours) * 1.9)


def _ratios(axes: Axes, results: dict[str, Any]) -> None:
    """Say how many times faster, on arrows down to both modes of JaxARC: vmap, and its best one to the left of it."""
    for name, shift, offset, align in ((JAXARC.name, 1.0, 8, "left"), (JAXARC_EPISODES.name, 0.62, -8, "right")):
        for contest, entrant in _entrants(results, name):
            if contest["id"] == RATIO_CONTEST:
                batch, ours = contest["request"]["batch"] * shift, contest["entrants"][0]["median"]
                low, high = entrant["median"] * 1.35, ours / 1.35
                arrow = {"arrowstyle": "<->", "color": INK, "linewidth": 1.2, "shrinkA": 0, "shrinkB": 0}
                axes.annotate("", (batch, low), xytext=(batch, high), arrowprops=arrow)
                axes.annotate(
                    f"{entrant['first_is_faster_by']['median']:.0f}×",
                    (batch, high / (high / low) ** (0.28 if shift == 1 else 0.5)),
                    xytext=(offset, 0),
                    textcoords="offset points",
                    fontsize=17,
                    weight="bold",
                    va="center",
                    ha=align,
                )


def _style(axes: Axes) -> None:
    axes.patch.set_alpha(0)
    axes.grid(axis="y", color=LINES, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, length=0, pad=6)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(INK)
    axes.xaxis.set_major_locator(FixedLocator(BATCH_TICKS))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
    axes.set_xlabel("environments side by side", color=INK, labelpad=5)


def _short(value: float) -> str:
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"
