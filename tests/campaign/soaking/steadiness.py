"""Whether a process stays as it is: the slope of its memory, the drift of its speed, and what must not grow at all."""

import dataclasses
import itertools
import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from scipy import stats

from campaign.soaking.soak_samples import Sample

_HOUR: Final = 3600.0
_MIB: Final = 2**20
_MOST_BINS: Final = 120
_LEAST_BINS: Final = 5
_CONFIDENCE: Final = 0.95


@dataclasses.dataclass(frozen=True)
class Bounds:
    """What still counts as steady."""

    memory_mib_per_hour: float = 8.0  # slope of the memory in use, and of the private memory reserved
    speed_percent_per_hour: float = 5.0  # fall of the steps per second of processor time
    num_threads: int = 32
    warm_up: float = 0.15  # share of the time that is left out at the start


@dataclasses.dataclass(frozen=True)
class Slope:
    """Theil and Sen's median of the slopes between all pairs of points, with the interval that their ranks give."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:+.2f} [{self.low:+.2f}, {self.high:+.2f}]"


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What a process did after its warm-up."""

    process: str
    hours: float  # that were judged
    num_samples: int
    memory: Slope  # in use, MiB per hour
    memory_mib: tuple[float, float]  # least and most
    private: Slope  # reserved, MiB per hour; what the system takes back under pressure stays reserved
    private_mib: tuple[float, float]
    speed: Slope  # percent per hour of the mean speed
    steps_per_cpu_second: float  # mean
    steps_per_second: float  # mean, by the clock on the wall
    steps: int  # in all
    num_compilations: int  # after the warm-up
    num_threads: tuple[int, int]  # least and most
    num_files: tuple[int, int]
    disk_mib: tuple[float, float]
    problems: tuple[str, ...]


def judge(samples: Sequence[Sample], bounds: Bounds) -> Verdict:
    """Judge the samples of one process, in order of time.

    Before its first step it compiles, and after its last one it draws pictures: neither is judged.

    Raises:
        ValueError: there are too few, or nothing was played.
    """
    playing = [sample for sample in samples if 0 < sample.steps < samples[-1].steps]
    if not playing:
        raise ValueError("no sample saw a step; let the soak last longer than the compilation")
    start, end = playing[0].seconds, playing[-1].seconds
    kept = [sample for sample in playing if sample.seconds >= start + bounds.warm_up * (end - start)]
    edges = _edges(kept)
    if len(edges) <= _LEAST_BINS:
        raise ValueError(f"{len(kept)} samples after the warm-up are too few for a slope; let the soak last longer")
    first, last = kept[0], kept[-1]
    verdict = Verdict(
        process=first.process,
        hours=(last.seconds - first.seconds) / _HOUR,
        num_samples=len(kept),
        memory=_memory_slope(kept, edges, "rss"),
        memory_mib=_span_mib(kept, "rss"),
        private=_memory_slope(kept, edges, "private"),
        private_mib=_span_mib(kept, "private"),
        speed=_speed_slope(kept, edges),
        steps_per_cpu_second=(last.steps - first.steps) / max(last.cpu_seconds - first.cpu_seconds, 1e-9),
        steps_per_second=(last.steps - first.steps) / (last.seconds - first.seconds),
        steps=last.steps,
        num_compilations=last.num_compilations - first.num_compilations,
        num_threads=(min(s.num_threads for s in kept), max(s.num_threads for s in kept)),
        num_files=(min(s.num_files for s in kept), max(s.num_files for s in kept)),
        disk_mib=_span_mib(kept, "disk_bytes"),
        problems=(),
    )
    return dataclasses.replace(verdict, problems=tuple(_problems(verdict, kept, bounds)))


def theil_sen(x: np.ndarray, y: np.ndarray) -> Slope:
    """Fit a line that a few outliers do not bend."""
    slope, _, low, high = np.asarray(stats.theilslopes(y, x, alpha=_CONFIDENCE), np.float64).tolist()
    return Slope(slope, low, high)


def _problems(verdict: Verdict, kept: Sequence[Sample], bounds: Bounds) -> list[str]:
    problems = []
    for what, slope in (("in use", verdict.memory), ("reserved", verdict.private)):
        if slope.value > bounds.memory_mib_per_hour:
            problems.append(f"memory {what} grows by {slope} MiB/h, allowed are {bounds.memory_mib_per_hour:+.2f}")
    if verdict.speed.value < -bounds.speed_percent_per_hour:
        problems.append(f"speed drifts by {verdict.speed} %/h, allowed are {-bounds.speed_percent_per_hour:+.2f}")
    if verdict.num_compilations:
        problems.append(f"{verdict.num_compilations} compilations after the warm-up, 0 are allowed")
    if verdict.num_threads[1] > bounds.num_threads:
        problems.append(f"{verdict.num_threads[1]} threads, {bounds.num_threads} are allowed")
    for what, name in (("threads", "num_threads"), ("open files", "num_files")):
        early, late = _typical_thirds([getattr(sample, name) for sample in kept])
        if late > early:
            problems.append(f"{what} grow from {early:g} to {late:g}")
    return problems


def _span_mib(kept: Sequence[Sample], field: str) -> tuple[float, float]:
    values = [getattr(sample, field) / _MIB for sample in kept]
    return min(values), max(values)


def _typical_thirds(values: Sequence[int]) -> tuple[float, float]:
    """Median of the first and of the last third: a file that is open for a moment does not count."""
    third = math.ceil(len(values) / 3)
    return float(np.median(values[:third])), float(np.median(values[-third:]))


def _edges(kept: Sequence[Sample]) -> list[int]:
    """Cut the samples into bins of equal length, so that neighbors that look alike do not narrow the interval."""
    count = min(_MOST_BINS, len(kept) // 4)
    return np.linspace(0, len(kept) - 1, count + 1).astype(int).tolist()


def _memory_slope(kept: Sequence[Sample], edges: Sequence[int], field: str) -> Slope:
    bins = [kept[a:b] for a, b in itertools.pairwise(edges)]
    hours = np.array([np.median([sample.seconds for sample in part]) for part in bins]) / _HOUR
    return theil_sen(hours, np.array([np.median([getattr(sample, field) for sample in part]) for part in bins]) / _MIB)


def _speed_slope(kept: Sequence[Sample], edges: Sequence[int]) -> Slope:
    """Slope of the steps per second of processor time, in units of what the machine did at the moment.

    Other programs change how far a second of processor time goes; the yardstick says by how much.
    """
    hours, speeds = [], []
    for a, b in itertools.pairwise(edges):
        first, last = kept[a], kept[b]
        if last.cpu_seconds > first.cpu_seconds:
            hours.append((first.seconds + last.seconds) / 2 / _HOUR)
            yardstick = np.median([sample.yardstick for sample in kept[a : b + 1]])
            speeds.append(yardstick * (last.steps - first.steps) / (last.cpu_seconds - first.cpu_seconds))
    return theil_sen(np.array(hours), 100 * np.array(speeds) / np.mean(speeds))
