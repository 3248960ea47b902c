"""Whether the judge of a soak sees memory that grows, speed that falls, compilations, threads and files."""

import dataclasses
import random

import pytest

from campaign.soak import HOUR, MIB, Sample, judge


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
    figures, problems = judge(samples_of())
    assert problems == []
    assert figures["hours"] == pytest.approx(0.85 * 2, abs=0.05)


@pytest.mark.parametrize(
    ("change", "problem"), [({"leak": 12.0}, "memory grows"), ({"slowdown": 0.08}, "speed drifts")]
)
def test_a_leak_and_a_slowdown_are_seen_through_noise(change, problem):
    (found,) = judge(samples_of(**change))[1]
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
    assert any(found.startswith(problem) for found in judge(grown)[1])
