"""A run of two processes that is killed, stopped and moved on the way ends as one that was left alone."""

import os
import signal
import time

import pytest
from killable_training import arrays_of
from process_group import TRAIN, ProcessGroup, places
from small_run import only_folder, reports_of, small_run, write_small_tasks

UPDATES = 30
HEARTBEAT = 10  # seconds
CHOICES = (
    "network.hidden_size=8",
    "action.allowed_operations=[1,2,33,34]",
    "training.num_seeds=2",
    "training.reports_per_evaluation=4",
)


@pytest.fixture(scope="module")
def overrides(tmp_path_factory):
    return small_run(write_small_tasks(tmp_path_factory.mktemp("dataset")), UPDATES, *CHOICES)


def test_a_run_of_two_processes_that_is_killed_and_stopped_ends_as_one_process_left_alone(overrides, tmp_path):
    together = [*overrides, f"logging.run_root={tmp_path / 'together'}", "checkpoint.min_seconds=0"]
    with ProcessGroup(tmp_path / "first", TRAIN, [[*together, *place] for place in pair()]) as group:
        group.wait_until(lambda: lines_of(tmp_path / "together") > 8)
        group.processes[1].kill()
        began = time.monotonic()
        assert group.codes(within=HEARTBEAT + 30) == [1, -signal.SIGKILL], group.told()
        assert time.monotonic() - began < HEARTBEAT + 30
        assert "error: process 0 of 2 lost another one, which ended or cannot be reached any more" in group.told(0)
    folder = only_folder(tmp_path / "together")
    assert newest(folder) < UPDATES

    go_on = ["--resume", str(folder.path)]
    before = lines_of(tmp_path / "together")
    with ProcessGroup(tmp_path / "second", TRAIN, [[*go_on, *place[1:]] for place in pair()]) as group:
        group.wait_until(lambda: lines_of(tmp_path / "together") > before + 4)
        os.kill(group.processes[1].pid, signal.SIGTERM)  # one hears of it, and both stop at the same report
        assert group.codes() == [0, 0], group.told()
        assert "Stopped early, and kept what was learned" in group.told(0)
        assert group.told(1).splitlines()[-1] == "Stopping: what was learned is kept. Ctrl-C again quits at once."
    assert newest(folder) < UPDATES

    seldom = ["checkpoint.min_seconds=1000"]
    alone = [*overrides, f"logging.run_root={tmp_path / 'alone'}", "parallel.num_devices=2", *seldom]
    for name, arguments in {"third": [*go_on, "parallel.multihost=false", *seldom], "alone": alone}.items():
        with ProcessGroup(tmp_path / f"{name}.log", TRAIN, [arguments]) as group:
            assert group.codes() == [0], group.told()
    require_same(folder, only_folder(tmp_path / "alone"))


def pair():
    return places(2, num_devices=2, heartbeat_seconds=HEARTBEAT)


def lines_of(root):
    return sum(len(file.read_bytes().splitlines()) for file in root.glob("*/metrics.jsonl"))


def newest(folder):
    return folder.checkpoints.updates()[-1]


def require_same(folder, expected):
    """Compare two finished run folders in all but the clocks."""
    assert folder.tasks.read_bytes() == expected.tasks.read_bytes()
    assert folder.measured.read_bytes() == expected.measured.read_bytes()
    told, wanted = reports_of(folder), reports_of(expected)
    assert told == wanted
    assert [report["update"] for report in told[::2]] == list(range(UPDATES + 1))
    assert arrays_of(folder.checkpoints.at(UPDATES)) == arrays_of(expected.checkpoints.at(UPDATES))
