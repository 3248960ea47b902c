"""``jaxarc compare``: runs of several experiments beside each other, in a picture and in tables."""

import os
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from jaxarc.cli.console import mean_number, mean_share, number_table
from jaxarc.surrogate import SurrogateReport
from jaxarc.training.comparison import METRICS, Axis, Group, band_of, differences, kind_of_runs, read_groups
from jaxarc.training.metrics import Report, RunReport

_SAMPLES: Final[dict[type[RunReport], str]] = {Report: "environment steps", SurrogateReport: "examples"}
_DEFAULTS: Final[dict[type[RunReport], str]] = {Report: "evaluation_solve_rate", SurrogateReport: "kl"}
_SHARES: Final = ("_rate", "_agreement", "_accuracy", "_grids")  # endings of metrics that are shares of 0 .. 1
_LEVELS: Final = (0.9, 0.99)
_MOST_FIELDS: Final = 3  # of a label


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of run folders, such as a sweep.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The picture, a PNG file; by default comparison.png in the runs' folder."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(
            help=f"What to draw: {', '.join(METRICS[Report])}. Of surrogates: {', '.join(METRICS[SurrogateReport])}.",
            show_default=" or ".join(_DEFAULTS.values()),
        ),
    ] = None,
    x: Annotated[Axis, typer.Option(help="Horizontal axis; the steps of a surrogate are examples.")] = "steps",
) -> None:
    """Draw the learning curves of runs, and print their final values and the differences of their configs.

    Runs whose configs differ only in seeds and logging are one experiment: the line is the mean over its seeds,
    the band the 95 % confidence interval of that mean (percentile bootstrap over seeds).

    Examples:
        jaxarc compare runs/*-sweep
        jaxarc compare runs/A runs/B -o curves.png --x seconds
    """
    if output is not None and output.suffix.lower() != ".png":
        raise typer.BadParameter(f"must end in .png, got {output.name!r}", param_hint="--output")
    kind = kind_of_runs(runs)
    metric = metric or _DEFAULTS[kind]
    samples = _SAMPLES[kind]
    groups = read_groups(runs, metric)
    picture = output or _common_folder(groups) / "comparison.png"
    _draw(groups, metric, x, picture, samples if x == "steps" else "seconds of learning, without compilation")
    console = Console()
    console.print(_endings(groups, metric, x, samples))
    if len(groups) > 1:
        console.print(_config_differences(groups))
    for name, group in zip(_names(groups), groups, strict=True):
        console.print(f"{name}: {escape(_list_runs(group.runs))}", highlight=False, soft_wrap=True)
    console.print(f"Picture: {escape(str(picture))}", highlight=False, soft_wrap=True)


def _common_folder(groups: Sequence[Group]) -> Path:
    """Return the innermost folder that holds all runs; a single run's own."""
    return Path(os.path.commonpath([os.path.abspath(run) for group in groups for run in group.runs]))


def _names(groups: Sequence[Group]) -> list[str]:
    """Return A, B, ... and, beyond Z, numbers."""
    return [chr(ord("A") + number) if number < 26 else str(number + 1) for number in range(len(groups))]


def _labels(groups: Sequence[Group]) -> list[str]:
    """Return the fields in which the groups differ, at most :data:`_MOST_FIELDS`, or else their first runs."""
    shown = list(differences(groups).items())[:_MOST_FIELDS]
    labels = []
    for number, (name, group) in enumerate(zip(_names(groups), groups, strict=True)):
        fields = ", ".join(f"{field}={_spell(values[number])}" for field, values in shown)
        count = len(group.curves)
        seeds = f"{count} seed{'s' if count > 1 else ''}"
        labels.append(f"{name}: {fields or group.runs[0].name} ({seeds})")
    return labels


def _draw(groups: Sequence[Group], metric: str, x: Axis, path: Path, x_label: str) -> None:
    # Matplotlib takes half a second to import; a mistyped command must not wait for it.
    from jaxarc.render.figures import AxisLabels, BandedCurve, draw_comparison

    curves = []
    for label, group in zip(_labels(groups), groups, strict=True):
        band = band_of(group.curves, x)
        curves.append(BandedCurve(label, band.x.tolist(), band.mean.tolist(), band.low.tolist(), band.high.tolist()))
    axes = AxisLabels(x_label, metric.replace("_", " "), _is_share(metric))
    draw_comparison(curves, axes, path, "mean over seeds, with its 95 % confidence band")


def _endings(groups: Sequence[Group], metric: str, x: Axis, samples: str) -> Table:
    levels = _LEVELS if _is_share(metric) else ()
    at = [f"{100 * level:.0f} % after\n(median)" for level in levels]
    counted = samples.replace(" ", "\n")
    table = number_table("", "seeds", "last", *at, counted, "learning\nseconds", title=metric)
    for name, group in zip(_names(groups), groups, strict=True):
        last = [float(curve.values[-1]) for curve in group.curves]
        table.add_row(
            name,
            str(len(group.curves)),
            mean_share(last) if _is_share(metric) else mean_number(last),
            *[_reached(group, level, x) for level in levels],
            f"{statistics.fmean(curve.steps[-1] for curve in group.curves):,.0f}",
            f"{statistics.fmean(curve.seconds[-1] for curve in group.curves):.1f}",
        )
    return table


def _list_runs(runs: Sequence[Path]) -> str:
    """Write where runs are, the folder around them once if it is the same."""
    parents = {run.parent for run in runs}
    if len(runs) == 1 or len(parents) > 1:
        return ", ".join(map(str, runs))
    return f"{runs[0].parent}/ {', '.join(run.name for run in runs)}"


def _reached(group: Group, level: float, x: Axis) -> str:
    """Write where the seeds that came to a level were there first, and how many came."""
    reached = [first for curve in group.curves if (first := curve.first_at(level, x)) is not None]
    share = f"{len(reached)}/{len(group.curves)} seeds"
    if not reached:
        return f"never\n{share}"
    median = statistics.median(reached)
    return f"{median:,.0f}\n{share}" if x == "steps" else f"{median:.1f} s\n{share}"


def _config_differences(groups: Sequence[Group]) -> Table:
    table = Table("config", *_names(groups))
    for field, values in differences(groups).items():
        table.add_row(field, *[escape(_spell(value)) for value in values])
    return table


def _is_share(metric: str) -> bool:
    return metric.endswith(_SHARES)


def _spell(value: Any) -> str:
    return "-" if value is None else str(value)
