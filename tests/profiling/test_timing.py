"""Timing: every call is waited for, and the statistics are those of the runs."""

import time

import numpy as np
import pytest

from jaxarc.profiling import benchmark_ops, profile_fn, timing


class LateResult:
    """A result that is ready only some time after the call, as on a device that works asynchronously."""

    def block_until_ready(self):
        time.sleep(0.02)
        return self


def test_runs_are_counted_and_waited_for():
    calls = []
    stats = profile_fn(lambda x: calls.append(x) or LateResult(), (1, 2), 2, 3)
    assert calls == [(1, 2)] * 5
    assert list(stats) == ["mean", "std", "min", "max", "median"]
    assert all(type(value) is float for value in stats.values())
    assert 0.02 <= stats["min"] <= stats["median"] <= stats["max"] < 1


def test_the_statistics_are_those_of_the_runs(monkeypatch):
    clock = iter([0.0, 1.0, 10.0, 12.0, 20.0, 26.0])
    monkeypatch.setattr(timing.time, "perf_counter", lambda: next(clock))
    stats = profile_fn(lambda x: x, 0, n_warmup=0, n_runs=3)
    assert stats == {"mean": 3.0, "std": pytest.approx(np.std([1, 2, 6])), "min": 1.0, "max": 6.0, "median": 2.0}


def test_benchmark_ops_prints_the_ratio_of_the_statistics_it_returns(capsys):
    naive, jitted, speedup = benchmark_ops()
    printed = dict(line.split(": ") for line in capsys.readouterr().out.splitlines())
    assert list(printed) == ["Naive", "JIT", "Speedup"]
    assert float(printed["Speedup"].split()[0]) == pytest.approx(speedup, abs=0.06)
    assert speedup == naive["mean"] / jitted["mean"]
    assert min(naive["min"], jitted["min"]) > 1e-6  # a million squares take longer than a microsecond
