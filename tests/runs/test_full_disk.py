"""A training process on a full disk."""

import time

import pytest
from campaign.faults.test_faults import NoDiskError, faulty_disk
from killable_training import command, prepare, start
from small_run import only_folder, small_run, write_small_tasks

from jaxarc.agents import read_metrics
from jaxarc.runs.checkpoint import read_checkpoint

UPDATES = 120
CHOICES = ("curriculum=replay", "training.num_seeds=2", "training.reports_per_evaluation=2")
WAITS = 120.0  # seconds, before a process that does nothing fails the test


@pytest.fixture(scope="module")
def overrides(tmp_path_factory):
    return small_run(write_small_tasks(tmp_path_factory.mktemp("dataset")), UPDATES, *CHOICES)


@pytest.fixture(scope="module")
def compiled(overrides, tmp_path_factory):
    """What the runs call, compiled once."""
    file = tmp_path_factory.mktemp("compiled") / "compiled.pickle"
    process = start(prepare, file, overrides)
    process.join()
    assert process.exitcode == 0
    return file


def test_a_run_on_a_full_disk_ends_in_a_line_that_names_the_file_and_goes_on_when_there_is_room(
    compiled, overrides, tmp_path
):
    try:
        with faulty_disk(tmp_path / "disk") as disk:
            train = lambda *arguments: start(command, compiled, tmp_path / "log", ["train", *arguments])
            process = train(*overrides, f"logging.run_root={disk.work}", "checkpoint.min_seconds=0")
            wait_until(process, lambda: len(list(disk.work.glob("*/checkpoints/[1-9]*"))) > 1)
            disk.fill()
            process.join()
            folder, log = only_folder(disk.work), (tmp_path / "log").read_text()
            (line,) = [line for line in log.splitlines() if "error: " in line]
            assert process.exitcode == 1, log
            assert "Traceback" not in log
            assert f"error: {folder.path}" in line
            assert "No space left on device; free some space there" in line
            for update in folder.checkpoints.updates():
                read_checkpoint(folder.checkpoints.at(update))
            disk.make_room()
            process = train("--resume", str(folder.path), "checkpoint.min_seconds=1000")
            process.join()
            assert process.exitcode == 0, (tmp_path / "log").read_text()
            assert [report.update for report in read_metrics(folder.metrics)][::2] == list(range(UPDATES + 1))
    except NoDiskError as error:
        pytest.skip(f"a disk cannot be mounted here: {error}")


def wait_until(process, happened):
    deadline = time.monotonic() + WAITS
    while not happened() and process.exitcode is None:
        assert time.monotonic() < deadline
        time.sleep(0.001)
