"""Whether a soak sees memory that grows and speed that falls, and whether its processes run within limits."""

import dataclasses
import json
import os
import random

import pytest

from campaign.soak import MIB, Bounds, Sample, Soak, judge, last_number, measure_yardstick

HOUR = 3600.0


def samples_of(hours=2.0, leak=0.0, slowdown=0.0):
    """Samples of a process that compiles for a minute, warms up, and plays; memory and speed jump about."""
    noise = random.Random(0)
    samples = []
    cpu, steps = 0.0, 0
    for number in range(int(hours * 720)):
        seconds = 5.0 * number
        if seconds > 60:
            share = noise.choice([0.2, 0.4, 0.9])  # of the processor, which others use too
            cpu += 5 * share
            steps += round(5 * share * 100_000 * (1 - slowdown * seconds / HOUR) * noise.uniform(0.9, 1.1))
        rss = 600 + 300 * (seconds < 300) + leak * seconds / HOUR + noise.choice([0, 0, 0, 8])
        samples.append(
            Sample("training", seconds, round(rss * MIB), 20, 5, cpu, steps, 11, noise.uniform(0.009, 0.011))
        )
    return [*samples, dataclasses.replace(samples[-1], num_compilations=12)]  # it draws a picture in the end


def test_a_steady_process_has_no_problems():
    figures, problems = judge(samples_of(), Bounds())
    assert problems == []
    assert figures["hours"] == pytest.approx(0.85 * 2, abs=0.05)


@pytest.mark.parametrize(
    ("change", "problem"), [({"leak": 12.0}, "memory grows"), ({"slowdown": 0.08}, "speed drifts")]
)
def test_a_leak_and_a_slowdown_are_seen_through_noise(change, problem):
    (found,) = judge(samples_of(**change), Bounds())[1]
    assert found.startswith(problem)


@pytest.mark.parametrize(
    ("field", "late", "problem"),
    [
        ("num_compilations", 12, "1 compilations"),
        ("num_threads", 21, "num_threads grows from 20 to 21"),
        ("num_files", 6, "num_files grows from 5 to 6"),
        ("num_threads", 33, "33 threads"),
    ],
)
def test_counts_that_grow_are_seen(field, late, problem):
    samples = samples_of()
    half = len(samples) // 2
    grown = samples[:half] + [dataclasses.replace(sample, **{field: late}) for sample in samples[half:]]
    assert any(found.startswith(problem) for found in judge(grown, Bounds())[1])


def test_a_soak_that_is_too_short_is_not_judged():
    with pytest.raises(ValueError, match="let the soak last longer"):
        judge(samples_of(hours=0.02), Bounds())


def test_the_last_number_is_that_of_the_last_whole_line(tmp_path):
    path = tmp_path / "progress.jsonl"
    assert last_number(path, "steps") == 0
    path.write_text('{"steps": 1}')
    assert last_number(path, "steps") == 0
    path.write_text("".join(f'{{"steps": {number}}}\n' for number in range(50)) + '{"st')
    assert last_number(path, "steps") == 49


def test_rollouts_run_within_limits_and_note_what_they_compile(tmp_path):
    cpus = os.sched_getaffinity(0)
    try:
        soak = Soak(tmp_path, 0.5, min(cpus), 64)
        process = soak.start("rollout", ["0.5", "procedural/gravity", "3"])
        (sample,) = soak.look("rollout", process, 0.0, measure_yardstick())
        assert sample.rss > 0
        assert process.wait(timeout=300) == 0, (tmp_path / "rollout.log").read_text()
    finally:
        os.sched_setaffinity(0, cpus)
    lines = (tmp_path / "rollout_compilations.jsonl").read_text().splitlines()
    assert len([line for line in lines if "_play" in json.loads(line)["name"]]) == 2  # the last chunk is shorter
    assert last_number(tmp_path / "rollout.jsonl", "steps") > 0
