"""Whether a soak sees what grows and what slows down, and whether its limits bind."""

import dataclasses
import json
import os
import random
import subprocess
import sys

import pytest

from campaign.soaking.soak import main, with_campaign
from campaign.soaking.soak_samples import (
    Sample,
    append_samples,
    disk_bytes,
    last_number,
    measure_yardstick,
    read_samples,
    take_sample,
)
from campaign.soaking.steadiness import Bounds, judge

HOUR, MIB = 3600.0, 2**20


def samples_of(process="training", hours=2.0, leak=0.0, slowdown=0.0, crowd=0.0):
    """Samples of a process that compiles for a minute, warms up, and plays; memory and speed jump about."""
    noise, samples, cpu, steps = random.Random(0), [], 0.0, 0
    for number in range(int(hours * 720)):
        seconds = 5.0 * number
        if seconds > 60:
            share = noise.choice([0.2, 0.4, 0.9])  # of the processor, which others use too
            cpu += 5 * share
            machine = 1 - crowd * seconds / HOUR  # others crowd the caches more and more
            steps += round(5 * share * 100_000 * machine * (1 - slowdown * seconds / HOUR) * noise.uniform(0.9, 1.1))
        rss = 600 + 300 * (seconds < 300) + leak * seconds / HOUR + noise.choice([0, 0, 0, 8])
        yardstick = noise.uniform(0.009, 0.011) / (1 - crowd * seconds / HOUR)
        memory = round(rss * MIB), 900 * MIB, 800 * MIB
        samples.append(Sample(process, seconds, *memory, 20, 5, cpu, steps, 11, 1000 * number, yardstick))
    return [*samples, dataclasses.replace(samples[-1], num_compilations=12)]  # it draws a picture in the end


def problems_of(samples):
    return judge(samples, Bounds()).problems


@pytest.mark.parametrize("crowd", [0.0, 0.1])
def test_a_steady_process_has_no_problems_on_a_quiet_machine_and_on_a_crowded_one(crowd):
    verdict = judge(samples_of(crowd=crowd), Bounds())
    assert verdict.problems == ()
    assert verdict.memory.low <= 0 <= verdict.memory.high
    assert verdict.speed.low <= 0 <= verdict.speed.high
    assert verdict.num_compilations == 0
    assert verdict.hours == pytest.approx(0.85 * 2, abs=0.05)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"leak": 12.0}, "memory in use grows by"),
        ({"slowdown": 0.08}, "speed drifts by"),
    ],
)
def test_a_leak_and_a_slowdown_are_seen_through_noise(change, complaint):
    (problem,) = problems_of(samples_of(**change))
    assert complaint in problem


@pytest.mark.parametrize(
    ("field", "late", "complaint"),
    [
        ("num_compilations", 12, "1 compilations after the warm-up"),
        ("num_threads", 21, "threads grow from 20 to 21"),
        ("num_files", 6, "open files grow from 5 to 6"),
        ("num_threads", 33, "33 threads, 32 are allowed"),
    ],
)
def test_what_must_not_grow_at_all_is_seen(field, late, complaint):
    samples = samples_of()
    half = len(samples) // 2
    grown = samples[:half] + [dataclasses.replace(sample, **{field: late}) for sample in samples[half:]]
    assert any(complaint in problem for problem in problems_of(grown))


def test_files_that_are_open_for_a_moment_are_no_problem():
    samples = samples_of()
    samples[len(samples) - 9] = dataclasses.replace(samples[-9], num_files=14)
    assert problems_of(samples) == ()


@pytest.mark.parametrize("samples", [samples_of(hours=0.01), samples_of(hours=0.02)])
def test_a_soak_that_is_too_short_is_not_judged(samples):
    with pytest.raises(ValueError, match="let the soak last longer"):
        judge(samples, Bounds())


def test_samples_are_of_the_process_and_its_files(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "file").write_bytes(b"12345")
    sample = take_sample("training", os.getpid(), 1.5, 70, 3, tmp_path, measure_yardstick())
    assert 0 < sample.yardstick < 10
    assert (sample.steps, sample.num_compilations, sample.disk_bytes) == (70, 3, 5)
    assert 0 < sample.rss <= sample.peak_rss
    assert sample.num_threads >= 1
    assert 0 < sample.num_files
    assert sample.cpu_seconds > 0
    append_samples(tmp_path / "samples.jsonl", [sample])
    assert read_samples(tmp_path / "samples.jsonl") == [sample]
    assert disk_bytes(tmp_path) > 5


def test_a_process_that_has_ended_has_no_sample(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it is there still, and holds nothing
    with pytest.raises(ProcessLookupError):
        take_sample("training", process.pid, 0.0, 0, 0, tmp_path)
    process.wait()


def test_the_last_number_is_that_of_the_last_whole_line(tmp_path):
    path = tmp_path / "progress.jsonl"
    assert last_number(path, "steps") == 0
    path.write_text('{"steps": 1}')
    assert last_number(path, "steps") == 0
    path.write_text("".join(f'{{"steps": {number}, "more": "{"x" * 300}"}}\n' for number in range(50)) + '{"st')
    assert last_number(path, "steps") == 49


def test_rollouts_run_within_limits_that_bind_and_tell_what_they_compile(tmp_path):
    compilations, progress = tmp_path / "compilations.jsonl", tmp_path / "rollout.jsonl"
    command = [sys.executable, "-m", "campaign.soaking.soak_process", "--work", "rollout", "--memory-mib", "1024"]
    command += ["--cpu", str(min(os.sched_getaffinity(0))), "--files", "64", "--seconds", "0.5"]
    command += ["--dataset", "procedural/gravity", "--max-side", "3"]
    command += ["--compilations", str(compilations), "--progress", str(progress)]
    subprocess.run(command, check=True, timeout=300, env=with_campaign(os.environ))
    names = [json.loads(line)["name"] for line in compilations.read_text().splitlines()]
    assert names.count("_start") == 1
    assert names.count("_play") == 2  # the last chunk is shorter
    assert last_number(progress, "steps") > 0


def test_a_soak_that_was_done_is_judged_again(tmp_path, capsys):
    append_samples(tmp_path / "samples.jsonl", [*samples_of("training"), *samples_of("rollout", leak=50.0)])
    (tmp_path / "ending.json").write_text("[]")
    code = main(["--samples", str(tmp_path / "samples.jsonl"), "--json", str(tmp_path / "summary.json")])
    out = capsys.readouterr().out
    assert code == 1
    assert "FOUND: rollout: memory in use grows by" in out
    assert "FOUND: training" not in out
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert [len(verdict["problems"]) for verdict in summary["verdicts"]] == [0, 1]
