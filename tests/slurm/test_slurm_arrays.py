"""Jobs on a real SLURM: the results of one process, whatever dies meanwhile, and what it refuses."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from jobs.counted_jobs import slow_square, square, square_or_end_the_shard
from run_command import run_command
from small_search import play_one_after_the_other_and, search_one_after_the_other_and
from small_tasks import PAIR, write_json

from jaxarc.jobs import Job, JobsError, Place, run, slurm_arrays

pytest.importorskip("submitit")
pytest_plugins = ["slurm_cluster"]

NUMBERS = range(6)


@pytest.fixture
def place(slurm, monkeypatch):
    """Three shards on the cluster."""
    for name, value in slurm.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setattr(slurm_arrays, "_PATIENCE_S", 2.0)
    return Place("slurm", 3, options=(("partition", "cpu"), ("time", "5")))


def start(tmp_path, place, function=square):
    jobs = [Job(function, (tmp_path / "calls", number)) for number in NUMBERS]
    return ((NUMBERS[done.job], done.value) for done in run(jobs, place, folder=tmp_path / "jobs"))


def numbers_in(tmp_path):
    return sorted(map(int, (tmp_path / "calls").read_text().split()))


def test_a_driver_that_was_killed_finds_its_array_again(tmp_path, place, slurm, monkeypatch):
    with monkeypatch.context() as killed:
        killed.setattr(slurm_arrays._Array, "cancel", lambda *_, **__: None)
        first = start(tmp_path, place, slow_square)
        next(first)
        first.close()
    assert dict(start(tmp_path, place, slow_square)) == {number: number**2 for number in NUMBERS}
    assert numbers_in(tmp_path) == list(NUMBERS)
    assert len(json.loads((tmp_path / "jobs" / "slurm" / "shards.json").read_text())) == 3


def test_leaving_cancels_the_array(tmp_path, place, slurm):
    first = start(tmp_path, place, slow_square)
    next(first)
    first.close()
    slurm.wait_until(lambda: not slurm.run("squeue", "-h"))
    assert not slurm.run("squeue", "-h")


def test_a_shard_that_is_lost_costs_only_what_it_has_not_done(tmp_path, place):
    with pytest.warns(slurm_arrays.ShardWarning, match="done again"):
        found = dict(start(tmp_path, place, square_or_end_the_shard))
    assert found == {number: number**2 for number in NUMBERS}
    assert numbers_in(tmp_path) == list(NUMBERS)


def test_a_controller_that_is_lost_is_waited_for_and_costs_nothing(tmp_path, place, slurm):
    started = start(tmp_path, place._replace(shards=1), slow_square)
    found = [next(started)]
    slurm.kill(0)
    try:
        with pytest.warns(slurm_arrays.ShardWarning, match="does not answer, and is asked again"):
            found += started
        with pytest.raises(JobsError, match="SLURM does not answer, so the shards at work are not known"):
            dict(start(tmp_path / "other", place))
    finally:
        slurm.revive(0)
    assert dict(found) == {number: number**2 for number in NUMBERS}
    assert numbers_in(tmp_path) == list(NUMBERS)


def test_a_shard_that_leaves_nothing_in_the_folder_is_not_tried_again(tmp_path, place, slurm):
    started = start(tmp_path, place._replace(options=(*place.options, ("begin", "now+1hour"))))
    with ThreadPoolExecutor() as pool:
        ended = pool.submit(dict, started)
        slurm.wait_until(lambda: "BeginTime" in slurm.run("squeue", "-h", "-o", "%r"))
        slurm.run("scancel", "--name=jaxarc")
        with pytest.raises(JobsError, match=rf"shard \d+_\d left nothing in {tmp_path}.*: its node cannot write there"):
            ended.result()
    assert not (tmp_path / "calls").exists()


def test_a_node_with_another_jaxarc_is_named(tmp_path, place, monkeypatch):
    monkeypatch.setattr("jaxarc.jobs.results.code_digest", lambda: "0123")
    with pytest.raises(JobsError, match=r"shard \d+_\d on node[123]: .* another jaxarc, \w+ and not 0123"):
        dict(start(tmp_path, place))


def test_what_slurm_refuses_is_said_in_its_words(tmp_path, place):
    with pytest.raises(JobsError, match="invalid partition specified: gpu"):
        dict(start(tmp_path, place._replace(options=(("partition", "gpu"),))))


@pytest.mark.parametrize("twice", [search_one_after_the_other_and, play_one_after_the_other_and])
def test_evaluate_writes_the_files_of_one_process(tmp_path, place, twice):
    here, there = twice(tmp_path, "--on", "slurm", "--shards", 3, "--slurm", "partition=cpu,time=5")
    assert here == there


def test_traces_are_those_of_one_process_and_what_is_in_the_cache_is_no_job(tmp_path, place):
    data = write_json(
        tmp_path / "data" / "task.json", {"train": [PAIR, {"input": [[3]], "output": [[4]]}], "test": [PAIR]}
    )
    far = ["--on", "slurm", "--shards", 2, "--slurm", "partition=cpu,time=5"]
    here, there = tmp_path / "here", tmp_path / "there"
    assert record(data, here, "--processes", 1).exit_code == 0
    assert record(data, there, *far, "--pairs", "test").exit_code == 0
    done = record(data, there, *far)
    assert (done.exit_code, done.stderr) == (0, "")
    assert exported(data, here) == exported(data, there)
    assert list((there / "jobs").iterdir()) == []


def record(data, cache, *more):
    return run_command("traces", "record", data, "--cache", cache, *more)


def exported(data, cache):
    assert run_command("traces", "export", data, cache / "out.jsonl", "--cache", cache).exit_code == 0
    return (cache / "out.jsonl").read_bytes()
