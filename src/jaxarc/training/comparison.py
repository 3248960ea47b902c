"""Curves of several runs beside each other, those of one experiment taken together."""

import dataclasses
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float64
from numpy import ndarray

from jaxarc.errors import UsageError
from jaxarc.surrogate.experiment import SurrogateReport
from jaxarc.training.metrics import Report, RunReport, read_reports
from jaxarc.training.run_folder import RunFolder

Axis = Literal["steps", "seconds"]
_AXES: Final = ("update", "environment_steps", "examples", "seconds", "seed")
METRICS: Final[dict[type[RunReport], tuple[str, ...]]] = {  # by what the runs report
    kind: tuple(field.name for field in dataclasses.fields(kind) if field.name not in _AXES)
    for kind in (Report, SurrogateReport)
}
_NOT_THE_EXPERIMENT: Final = (
    *("logging.", "checkpoint.", "parallel.", "versions."),
    *("training.seed", "training.num_seeds", "training.compilation_cache"),
    *("surrogate.seed", "surrogate.compilation_cache", "surrogate.buffer_size"),
)
_RESAMPLES: Final = 2000
_MOST_POINTS: Final = 400  # of a band; a picture has no more


class ComparisonError(UsageError, ValueError):
    """Runs cannot be compared: a folder is not that of a run, or it lacks what is asked for."""


@dataclass(frozen=True)
class Curve:
    """The values of a metric of one seed, and where they were measured."""

    seed: int
    steps: Float64[ndarray, " N"]
    seconds: Float64[ndarray, " N"]
    values: Float64[ndarray, " N"]

    def along(self, axis: Axis) -> Float64[ndarray, " N"]:
        return self.steps if axis == "steps" else self.seconds

    def first_at(self, level: float, axis: Axis) -> float | None:
        """Return where a value of at least ``level`` was measured first, or None."""
        reached = np.flatnonzero(self.values >= level)
        return float(self.along(axis)[reached[0]]) if len(reached) else None


@dataclass(frozen=True)
class Group:
    """Runs of one experiment: their configs differ in nothing but seeds and logging."""

    runs: tuple[Path, ...]
    fields: Mapping[str, Any]  # ``topic.field`` -> value, without seeds and logging
    curves: tuple[Curve, ...]  # of all seeds of all runs


@dataclass(frozen=True)
class Band:
    """The mean over seeds, and its 95 % confidence interval by the percentile bootstrap over seeds."""

    x: Float64[ndarray, " N"]
    mean: Float64[ndarray, " N"]
    low: Float64[ndarray, " N"]  # equal to the mean where there is one seed
    high: Float64[ndarray, " N"]


def kind_of_runs(folders: Sequence[Path]) -> type[RunReport]:
    """Return the type of the reports of runs, those of agents or those of surrogates.

    Raises:
        ComparisonError: there are both, or a folder is not that of a run.
    """
    runs = [run for folder in folders for run in _runs_in(folder)]
    of_surrogates = [run for run in runs if "surrogate.problem" in _experiment_fields(run)]
    if of_surrogates and len(of_surrogates) < len(runs):
        (agent,) = [run for run in runs if run not in of_surrogates][:1]
        raise ComparisonError(
            f"{of_surrogates[0]} is the run of a surrogate, but {agent} that of an agent: they measure other things; "
            "compare runs of one kind"
        )
    return SurrogateReport if of_surrogates else Report


def read_groups(folders: Sequence[Path], metric: str) -> list[Group]:
    """Read runs, and put those of one experiment together.

    Args:
        folders: run folders, or folders of run folders.
        metric: one of ``METRICS`` of their kind.

    Raises:
        ComparisonError: a folder is not that of a run, a file in it is damaged, no metric is called so, or a run never
            measured it.
    """
    kind = kind_of_runs(folders)
    if metric not in METRICS[kind]:
        raise ComparisonError(f"no metric {metric!r}; known: {', '.join(METRICS[kind])}")
    # The experiment's fields as text are the key: runs that differ in nothing but seeds land in one group.
    groups: dict[str, Group] = {}
    for path in dict.fromkeys(run for folder in folders for run in _runs_in(folder)):
        fields = _experiment_fields(path)
        curves = _curves(path, metric, kind)
        key = json.dumps(fields, sort_keys=True)
        known = groups.get(key, Group((), fields, ()))
        groups[key] = Group((*known.runs, path), fields, (*known.curves, *curves))
    return list(groups.values())


def differences(groups: Sequence[Group]) -> dict[str, list[Any]]:
    """Return the fields in which groups differ, with the value of each group; None where a run knew no such field."""
    names = dict.fromkeys(name for group in groups for name in group.fields)
    values = {name: [group.fields.get(name) for group in groups] for name in names}
    return {name: each for name, each in values.items() if any(value != each[0] for value in each)}


def band_of(curves: Sequence[Curve], axis: Axis) -> Band:
    """Return mean and confidence interval along an axis, as far as the shortest curve goes.

    Curves are straight between their points. The interval holds the middle 95 % of the means of 2000 draws of as many
    curves with replacement; the draws are the same in every call.
    """
    # Only where every seed has a curve: with curves over 0 .. 100 and 10 .. 90 the band goes from 10 to 90.
    start = max(curve.along(axis)[0] for curve in curves)
    end = max(start, min(curve.along(axis)[-1] for curve in curves))
    x = np.unique(np.concatenate([curve.along(axis) for curve in curves]))
    x = x[(x >= start) & (x <= end)]
    if len(x) > _MOST_POINTS:
        x = np.linspace(start, end, _MOST_POINTS)
    values = np.stack([np.interp(x, curve.along(axis), curve.values) for curve in curves])
    count = len(curves)
    # How often each of n curves comes up in n draws with replacement, for each resample: [2000, n]. For 3 curves a row
    # may be 2 0 1. Times the values [n, N], divided by n, it is the mean of that resample.
    drawn = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), _RESAMPLES)
    low, high = np.percentile(drawn @ values / count, (2.5, 97.5), axis=0)
    return Band(x, values.mean(axis=0), low, high)


def _runs_in(folder: Path) -> list[Path]:
    if _is_run(folder):
        return [folder]
    below = sorted(path for path in folder.iterdir() if _is_run(path)) if folder.is_dir() else []
    if not below:
        raise ComparisonError(
            f"{folder} is not a run folder: it has no {RunFolder(folder).config.name} beside a "
            f"{RunFolder(folder).metrics.name}, and no folder in it has; give what `jaxarc train` made"
        )
    return below


def _is_run(path: Path) -> bool:
    folder = RunFolder(path)
    return folder.config.is_file() and folder.metrics.is_file()


def _curves(path: Path, metric: str, kind: type[RunReport]) -> Iterator[Curve]:
    try:
        reports = read_reports(RunFolder(path).metrics, kind)
    except ValueError as error:
        raise ComparisonError(str(error)) from error
    # One line holds one seed at one moment; the curve of a seed is its lines in order, those without a value left out.
    rows: dict[int, list[tuple[float, float, float]]] = {}
    for report in reports:
        value = getattr(report, metric)
        if value is not None and math.isfinite(value):
            rows.setdefault(report.seed, []).append((report.samples, report.seconds, value))
    if not rows:
        raise ComparisonError(f"{path} holds no {metric}: none of its {len(reports)} reports measured it")
    for seed, points in rows.items():
        yield Curve(seed, *np.asarray(points, np.float64).T)


def _experiment_fields(path: Path) -> dict[str, Any]:
    file = RunFolder(path).config
    try:
        saved = json.loads(file.read_text(encoding="utf-8"))
        topics = {**saved["environment"], **{name: saved[name] for name in saved if name != "environment"}}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ComparisonError(f"{file} is not the config of a run: {error!r:.200}") from error
    fields = {
        f"{topic}.{name}": value
        for topic, content in topics.items()
        if isinstance(content, dict)
        for name, value in content.items()
    }
    return {name: value for name, value in fields.items() if not name.startswith(_NOT_THE_EXPERIMENT)}
