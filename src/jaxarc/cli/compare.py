"""``jaxarc compare``: the learning curves of runs in one picture, those of one experiment as a mean with its spread.

Of two evaluations it prints which tasks the second one won and lost.
"""

import json
import os
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

import numpy as np
import typer
from jaxtyping import Float64
from rich.console import Console

from jaxarc.cli.console import escape, number_table, print_line, warn
from jaxarc.errors import UsageError
from jaxarc.runs import RunFolder
from jaxarc.runs.folder import read_table
from jaxarc.runs.kind import KINDS, row_of
from jaxarc.runs.presentation import mean_number, mean_share, percent
from jaxarc.runs.run_state import changes_results, fields_of

_NOT_THE_EXPERIMENT: Final = ("versions.", "training.seed", "training.num_seeds", "surrogate.seed")
_SUMMARY: Final = "summary.json"  # of a folder of jaxarc evaluate
_ROWS: Final = "tasks.jsonl"  # its tasks
Axis = Literal["steps", "seconds"]
Curve = Float64[np.ndarray, "3 N"]  # samples, seconds and values of a metric of one seed


class ComparisonError(UsageError, ValueError):
    """Runs cannot be compared: a folder is not that of a run, or it lacks what is asked for."""


class Group(NamedTuple):
    """Runs of one experiment: their configs differ in nothing but seeds and logging."""

    runs: list[Path]
    fields: dict[str, Any]  # ``topic.field`` -> value, without seeds and logging
    curves: list[Curve]  # of all seeds of all runs


class TaskShares(NamedTuple):
    """An evaluation, as the shares of the outputs that it solved."""

    folder: Path
    shares: dict[str, Fraction]  # by task


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Run folders, or folders of run folders, such as a sweep; or two folders of jaxarc evaluate."
        ),
    ],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="A PNG file; else in the runs' folder.")] = None,
    metric: Annotated[str | None, typer.Option(help="A number of metrics.jsonl; else a solve rate, or kl.")] = None,
    x: Annotated[Axis, typer.Option(help="Horizontal axis; the steps of a surrogate are examples.")] = "steps",
) -> None:
    """Draw the learning curves of runs, and print their final values.

    Runs whose configs differ only in seeds and logging are one experiment: the line is the mean over its seeds,
    the band the 95 % confidence interval of that mean (percentile bootstrap over seeds). A seed counts once.

    Of two folders of jaxarc evaluate, print which tasks the second one solved better than the first one, and which
    worse, by the share of their test outputs.

    Examples:
        jaxarc compare runs/*-sweep
        jaxarc compare runs/A runs/B -o curves.png --x seconds
        jaxarc compare runs/A-evaluation runs/B-evaluation
    """
    evaluated = [folder for folder in runs if (folder / _SUMMARY).is_file()]
    if evaluated:
        if len(runs) != 2 or len(evaluated) != 2 or output is not None or metric is not None:
            raise typer.BadParameter(
                f"{evaluated[0]} is of jaxarc evaluate; give two such folders, without --output and --metric",
                param_hint="RUNS",
            )
        before, after = runs
        print_difference(read_shares(before), read_shares(after), Console())
        return
    from jaxarc.render.figures import AxisLabels, BandedCurve, draw_comparison  # Matplotlib takes half a second

    if output is not None and output.suffix.lower() != ".png":
        raise typer.BadParameter(f"must end in .png, got {output.name!r}", param_hint="--output")
    groups, metric = read_groups(runs, metric)
    is_share = metric.endswith(("_rate", "_agreement", "_accuracy", "_grids"))
    table = number_table("experiment", "seeds", "last", "steps", "learning\nseconds", title=metric)
    bands = []
    for label, group in zip(_labels(groups), groups, strict=True):
        bands.append(BandedCurve(label, *(line.tolist() for line in band_of(group.curves, x))))
        samples, seconds, last = ([float(curve[row, -1]) for curve in group.curves] for row in range(3))
        means = f"{np.mean(samples):,.0f}", f"{np.mean(seconds):.1f}"
        table.add_row(escape(label), str(len(last)), (mean_share if is_share else mean_number)(last), *means)
    every_run = [os.path.abspath(run) for group in groups for run in group.runs]
    picture = output or Path(os.path.commonpath(every_run)) / "comparison.png"
    samples = ", or ".join(dict.fromkeys(row.samples.replace("_", " ") for row in KINDS.values()))
    x_label = samples if x == "steps" else "seconds of learning, without compilation"
    axes = AxisLabels(x_label, metric.replace("_", " "), is_share)
    draw_comparison(bands, axes, picture, "mean over seeds, with its 95 % confidence band")
    Console().print(table, f"Picture: {escape(str(picture))}", highlight=False, soft_wrap=True)


def read_groups(folders: Sequence[Path], metric: str | None = None) -> tuple[list[Group], str]:
    """Read runs, or folders of them, put those of one experiment together, and return the metric too.

    A seed that another run of the experiment has counts once, the longer curve of the two, with a warning.
    """
    groups: dict[str, Group] = {}
    curves: dict[int, dict[int, Curve]] = {}  # of each group, by seed
    for run in dict.fromkeys(run for folder in folders for run in _runs_in(folder)):
        fields = _experiment_fields(run.config)
        row = row_of({name.partition(".")[0] for name in fields})
        metric = metric or row.metric
        group = groups.setdefault(json.dumps(fields, sort_keys=True), Group([], fields, []))
        group.runs.append(run.path)
        of_seeds = curves.setdefault(id(group), {})
        for seed, curve in _curves(run.metrics, metric, row.samples).items():
            if seed in of_seeds:
                warn(f"{run.path} has seed {seed} of another run of this experiment, which counts once")
            of_seeds[seed] = max(of_seeds.get(seed, curve), curve, key=lambda one: one.shape[1])
    for group in groups.values():
        group.curves.extend(curves[id(group)].values())
    return list(groups.values()), metric or ""


def band_of(curves: Sequence[Curve], axis: Axis) -> tuple[Float64[np.ndarray, " M"], ...]:
    """Return x, the mean of curves as far as the shortest goes, and its 95 % interval by a bootstrap of fixed draws."""
    row = 0 if axis == "steps" else 1
    start = max(curve[row, 0] for curve in curves)
    end = max(start, min(curve[row, -1] for curve in curves))
    x = np.unique(np.concatenate([curve[row] for curve in curves]))
    x = x[(x >= start) & (x <= end)]
    values = np.stack([np.interp(x, curve[row], curve[2]) for curve in curves])
    # How often each of n curves comes up in n draws: for 3 curves a row may be 2 0 1. Times the values [n, M], divided
    # by n, it is the mean of that resample.
    count = len(curves)
    drawn = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), size=2000)
    return x, values.mean(axis=0), *np.percentile(drawn @ values / count, (2.5, 97.5), axis=0)


def read_shares(folder: Path) -> TaskShares:
    """Read a folder of ``jaxarc evaluate``."""
    rows, num_bad = read_table(folder / _ROWS)
    try:
        shares = {str(row["task_id"]): Fraction(row["solved_outputs"], row["num_outputs"]) for row in rows}
    except (KeyError, TypeError, ValueError, ZeroDivisionError) as error:
        if rows and all(row.get("solved_outputs", 0) is None for row in rows):
            raise ComparisonError(f"{folder} has no score, since its answers are unknown; name another one") from error
        raise ComparisonError(f"{folder / _ROWS} has a line that is no task: {error!r:.200}; evaluate again") from error
    if num_bad or not shares:
        raise ComparisonError(f"{folder / _ROWS} is missing or has lines that are no JSON objects; evaluate again")
    return TaskShares(folder, shares)


def print_difference(first: TaskShares, second: TaskShares, console: Console) -> None:
    """Print how many tasks each evaluation solved, and which of them the second one won and lost."""
    common = [task_id for task_id in first.shares if task_id in second.shares]
    if not common:
        raise ComparisonError(
            f"{first.folder} and {second.folder} have no task in common; compare those of one dataset"
        )
    table = number_table("evaluation", "tasks", "solved", "solved in part", "mean share")
    for folder, shares in (first, second):
        of_common = [shares[task_id] for task_id in common]
        solved = sum(share == 1 for share in of_common)
        in_part = sum(0 < share < 1 for share in of_common)
        mean = percent(float(sum(of_common)) / len(common))
        table.add_row(escape(str(folder)), f"{len(common):,}", f"{solved:,}", f"{in_part:,}", mean)
    console.print(table)
    left_out = len(first.shares) + len(second.shares) - 2 * len(common)
    if left_out:
        console.print(f"{left_out:,} tasks are in one of them only, and left out.", highlight=False)
    won = [task_id for task_id in common if second.shares[task_id] > first.shares[task_id]]
    lost = [task_id for task_id in common if second.shares[task_id] < first.shares[task_id]]
    for word, task_ids in (("won", won), ("lost", lost)):
        ids = f": {' '.join(sorted(task_ids))}" if task_ids else ""
        print_line(console, f"{second.folder} {word} {len(task_ids):,} tasks{ids}")


def _labels(groups: Sequence[Group]) -> list[str]:
    """Name each group by the first fields in which they differ, or by its first run."""
    names = dict.fromkeys(name for group in groups for name in group.fields)
    differ = [name for name in names if any(group.fields.get(name) != groups[0].fields.get(name) for group in groups)]
    spelled = lambda group: ", ".join(f"{name}={group.fields.get(name, '-')}" for name in differ[:3])
    return [spelled(group) or group.runs[0].name for group in groups]


def _runs_in(folder: Path) -> list[RunFolder]:
    below = sorted(folder.iterdir()) if folder.is_dir() else []
    found = [run for run in map(RunFolder, (folder, *below)) if run.config.is_file() and run.metrics.is_file()]
    if not found:
        raise ComparisonError(f"{folder} is no run folder, and holds none; give what `jaxarc train` made")
    return found


def _curves(path: Path, metric: str, samples: str) -> dict[int, Curve]:
    rows, num_bad = read_table(path)
    points: dict[int, list[list[float]]] = {}
    try:
        for row in rows:
            if row.get(metric) is not None:
                point = [row[samples], row["seconds"], row[metric]]
                points.setdefault(row["seed"], []).append([float(number) for number in point])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ComparisonError(f"{path} has a line that is no report: {error!r:.200}; bring the file back") from error
    if num_bad or not points:
        known = sorted({name for row in rows for name, value in row.items() if value is not None})
        what = f"{num_bad} lines that are no JSON objects" if num_bad else f"no {metric!r}, but {known}"
        raise ComparisonError(f"{path} has {what:.500}; name what it has, or another run")
    return {seed: np.asarray(of_seed, np.float64).T for seed, of_seed in points.items()}


def _experiment_fields(file: Path) -> dict[str, Any]:
    try:
        saved = json.loads(file.read_bytes())  # with or without a byte order mark
        fields = dict(fields_of({topic: content for topic, content in saved.items() if isinstance(content, dict)}))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ComparisonError(f"{file} is not the config of a run: {error!r:.200}") from error
    counts = lambda name: changes_results(name) and not name.startswith(_NOT_THE_EXPERIMENT)
    return {name: value for name, value in fields.items() if counts(name)}
