"""Jobs on Ray, on two nodes of one core each on this machine: the results of one process, whatever dies meanwhile."""

import os
import re
import sys
from pathlib import Path

import pytest
from jobs.counted_jobs import slow_square, square, square_or_end_the_shard
from small_search import play_one_after_the_other_and, search_one_after_the_other_and

from jaxarc.jobs import Job, JobsError, Place, ray_actors, run

cluster_utils = pytest.importorskip("ray.cluster_utils", exc_type=ImportError)

NUMBERS = range(6)


@pytest.fixture
def nodes(monkeypatch):
    """A cluster that jobs find by its address."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    started = cluster_utils.Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    monkeypatch.setenv("RAY_ADDRESS", started.address)
    yield started
    started.shutdown()


def start(tmp_path, function):
    jobs = [Job(function, (tmp_path / "calls", number)) for number in NUMBERS]
    done = run(jobs, Place("ray", 2), folder=tmp_path / "jobs")
    return ((NUMBERS[one.job], one.value) for one in done)


def numbers_in(tmp_path):
    return sorted(map(int, (tmp_path / "calls").read_text().split()))


def test_a_node_and_an_actor_that_are_lost_cost_only_their_jobs(tmp_path, nodes):
    lost = nodes.add_node(num_cpus=1)
    started = start(tmp_path, slow_square)
    found = [next(started), next(started)]
    nodes.remove_node(lost, allow_graceful=False)
    assert dict([*found, *started]) == {number: number**2 for number in NUMBERS}
    (tmp_path / "more").mkdir()
    assert dict(start(tmp_path / "more", square_or_end_the_shard)) == {number: number**2 for number in NUMBERS}
    assert numbers_in(tmp_path / "more") == list(NUMBERS)


def test_a_relative_path_means_that_of_the_command(tmp_path, nodes, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ((value, fault),) = ((one.value, one.fault) for one in run([Job(square, (Path("calls"), 2))], Place("ray")))
    assert (value, fault, numbers_in(tmp_path)) == (4, None, [2])


def test_a_node_with_another_jaxarc_is_named(tmp_path, nodes, monkeypatch):
    monkeypatch.setattr(ray_actors, "code_digest", lambda: "0123")
    with pytest.raises(JobsError, match=r"node .* has another jaxarc, \w+ and not 0123"):
        dict(start(tmp_path, square))


@pytest.mark.parametrize("twice", [search_one_after_the_other_and, play_one_after_the_other_and])
def test_evaluate_writes_the_files_of_one_process(tmp_path, nodes, twice):
    here, there = twice(tmp_path, "--on", "ray", "--shards", 2)
    assert here == there


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "[::1]:1", "no-such-host.invalid:6379"])
def test_an_address_at_which_nothing_listens_is_named_at_once(tmp_path, monkeypatch, address):
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(JobsError, match="Ray does not answer: .*; correct RAY_ADDRESS=" + re.escape(address)):
        dict(start(tmp_path, square))
