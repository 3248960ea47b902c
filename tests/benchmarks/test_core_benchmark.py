"""The rows of the benchmark of the environment, its resets and its adapters measure what they say."""

import itertools
import json
import os
import sys

import jax
import numpy as np
import pytest
from adapter_rows import VectorLoop, adapter_rows
from run_command import run_command

from jaxarc.benchmarks import speed as speed_module
from jaxarc.benchmarks.core import core_rows
from jaxarc.benchmarks.fresh_start import start_fresh
from jaxarc.benchmarks.measure import Row, choose_rows, measure_rows, pinned_to_cores
from jaxarc.benchmarks.speed import CompiledScan, PythonLoop, Throughput, play_params
from jaxarc.benchmarks.suite import Budget
from jaxarc.envs import ArcEnvironment


def run(*arguments):
    return run_command("benchmark", "core", *arguments)


def test_a_quick_run_prints_a_table_and_writes_every_row(tmp_path):
    path = tmp_path / "deep" / "core.json"
    rows = "steps-bbox-8,state-bytes,buffer-bytes"
    result = run("--quick", "--sizes", "8", "--rows", rows, "--output", path)
    assert result.exit_code == 0
    report = json.loads(path.read_text())
    assert [row["id"] for row in report["rows"]] == rows.split(",")
    for row in report["rows"]:
        assert len(row["samples"]) == (1 if row["unit"] == "bytes" else 2)
        assert 0 < row["min"] <= row["value"] <= row["max"]
        assert {row["min"], row["max"]} <= set(row["samples"])
    assert set(report["versions"]) == {"python", "jax", "jaxlib", "equinox", "numpy", "jaxarc"}
    assert report["versions"]["jax"] == jax.__version__
    assert report["quick"]
    assert all(row in result.stdout for row in rows.split(","))
    assert "steps/s" in result.stdout


def test_the_bytes_are_those_of_real_arrays():
    params = play_params("point", history=True)
    state, _ = ArcEnvironment().reset(jax.random.key(0), params)
    results = measure_rows(
        choose_rows(core_rows(), ["state-bytes-history", "buffer-bytes"]), Budget(1, 0.0, 1), lambda *_: None
    )
    assert [result.value for result in results] == [
        sum(np.asarray(leaf).nbytes for leaf in jax.tree.leaves(tree)) for tree in (state, params.tasks)
    ]


def test_an_unknown_row_is_answered_with_the_known_ones():
    result = run("--rows", "state-byte")
    assert result.exit_code == 2
    error = " ".join(result.stderr.replace("│", " ").split())
    assert "no row 'state-byte'; did you mean 'state-bytes'" in error
    assert "steps-bbox-1024" in error


@pytest.mark.parametrize("sizes", ["", "0", "64,-1"])
def test_a_wrong_batch_size_is_refused(sizes):
    result = run("--sizes", sizes)
    assert (result.exit_code, "is no batch size" in result.stderr) == (2, True)


def test_the_process_is_pinned_to_the_last_cores_and_only_inside(monkeypatch):
    cores = [{0, 2, 5, 7}]
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: cores[-1], raising=False)
    monkeypatch.setattr(os, "sched_setaffinity", lambda _, chosen: cores.append(set(chosen)), raising=False)
    with pinned_to_cores(2) as used:
        assert used == 2
        assert cores[-1] == {5, 7}
    assert cores[-1] == {0, 2, 5, 7}


def test_rows_take_turns_and_exact_ones_are_measured_once():
    calls, seen = [], []
    row = lambda name, **more: Row(name, f"what {name} is", "s", lambda _: calls.append(name) or len(calls), **more)
    rows = (row("a"), row("b", is_exact=True), row("c", target=4.0, less_is_better=True))
    results = measure_rows(rows, Budget(3, 0.0, 1), lambda *progress: seen.append(progress))
    assert calls == ["a", "b", "c", "a", "c", "a", "c"]
    assert [result.samples for result in results] == [(1, 4, 6), (2,), (3, 5, 7)]
    assert [result.value for result in results] == [4, 2, 5]
    assert [result.is_met for result in results] == [None, None, False]
    assert seen == [
        *((done, 7, f"what {name} is") for done, name in enumerate(calls)),
        (7, 7, "done"),
    ]


@pytest.mark.parametrize(
    ("less_is_better", "value", "met"), [(False, 2.0, True), (False, 1.9, False), (True, 2.0, True), (True, 2.1, False)]
)
def test_a_target_is_a_floor_or_a_ceiling(less_is_better, value, met):
    row = Row("id", "what", "s", lambda _: value, target=2.0, less_is_better=less_is_better)
    result, without = (
        measure_rows([row], Budget(1, 0.0, 1), lambda *_: None, has_targets)[0] for has_targets in (True, False)
    )
    assert result.is_met is met
    assert result.as_json()["target_is"] == ("at most" if less_is_better else "at least")
    assert without.is_met is None
    assert without.as_json()["target"] is None


def test_a_sample_divides_the_steps_of_all_calls_by_their_time(monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(speed_module.time, "perf_counter", lambda: next(clock) * 0.5)
    calls = []
    scan = CompiledScan(lambda carry, *_: calls.append(carry) or carry + 1, 7, 0.0, 0)
    playing = Throughput(scan, 0, None, num_envs=3)
    assert playing.sample(min_seconds=1.0) == 2 * 7 * 3 / 1.0  # half a second passes between looks at the clock
    assert calls == [0, 1]
    assert playing.sample(min_seconds=0.0) == 7 * 3 / 0.5
    assert calls == [0, 1, 2]


def test_what_is_timed_plays_and_shows_what_it_plays():
    params = play_params("bbox", side=5)
    throughput = Throughput.of_steps(params, 64, longest_scan=40)
    throughput.sample(min_seconds=0.0)
    playing = throughput.carry
    assert playing.observations.shape == (64, 5, 5)
    np.testing.assert_array_equal(playing.observations, playing.states.working_grid)
    ended = int(playing.episode_counts.sum())  # a submit is one of 35 operations, and two calls are 80 steps
    assert 64 * 80 / 35 * 0.6 < ended < 64 * 80 / 35 * 1.6
    assert throughput.scan.compile_seconds > 0


def test_what_is_timed_resets_to_fresh_episodes():
    throughput = Throughput.of_resets(play_params("bbox", side=5), 16, longest_scan=4)
    before = np.asarray(throughput.carry[0].key)
    throughput.sample(min_seconds=0.0)
    states, observations = throughput.carry
    assert not np.any(np.all(before == states.key, axis=-1))
    np.testing.assert_array_equal(observations, states.working_grid)
    assert not np.any(states.step_count)


def test_the_python_loop_plays_whole_episodes(monkeypatch):
    params = play_params("point", side=5)
    steps = []
    played = ArcEnvironment.step

    def step(self, state, action, params):
        steps.append(int(action.operation))
        return played(self, state, action, params)

    monkeypatch.setattr(ArcEnvironment, "step", step)
    loop = PythonLoop(params, compiled_outside=False)
    assert loop.sample(min_seconds=0.0) > 0
    assert len(steps) == 200  # one episode before the clock starts, one after
    assert 34 not in steps


def test_a_fresh_process_reports_what_it_was_asked():
    seconds = start_fresh(["import"])
    assert set(seconds) == {"import"}
    assert 0 < seconds["import"] < 60


def test_a_fresh_process_that_fails_is_quoted(monkeypatch, tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho no luck today >&2\nexit 3\n")
    broken.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(broken))
    with pytest.raises(RuntimeError, match="failed to import, make: no luck today"):
        start_fresh(["import", "make"])


def test_no_two_rows_have_one_name():
    ids = [row.row_id for rows in (core_rows(), adapter_rows()) for row in rows]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_vector_loop_steps_all_environments(mode, monkeypatch):
    params = play_params("point", side=3, operations=(1, 34))
    loop = VectorLoop(params, 4, mode)
    calls, step = [], loop._env.step
    monkeypatch.setattr(loop._env, "step", lambda actions: calls.append(jax.tree.map(len, actions)) or step(actions))
    assert loop.sample(0.05) > 0
    assert all(set(jax.tree.leaves(call)) == {4} for call in calls)
    assert calls
