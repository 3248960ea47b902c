"""A training process that is killed 20 times, and goes on each time, ends as one that was left alone."""

import contextlib
import os
import random
import signal
import time

import pytest
from campaign.faults.test_faults import NoDiskError, faulty_disk
from killable_training import arrays_of, command, prepare, start
from small_run import reports_of, small_run, write_small_tasks

from jaxarc.agents import read_metrics
from jaxarc.runs import RunFolder
from jaxarc.runs.checkpoint import check_checkpoint

KILLS = 20
UPDATES = 120  # a few for each kill: an update takes milliseconds
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


def test_a_run_that_is_killed_20_times_ends_as_one_that_is_not(compiled, overrides, tmp_path):
    seed = 0 if os.environ.get("CI") else random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    chance = random.Random(seed)
    train = lambda log, *arguments: start(command, compiled, tmp_path / log, ["train", *arguments])

    alone = train("alone.log", *overrides, f"logging.run_root={tmp_path / 'alone'}", "checkpoint.min_seconds=1000")
    alone.join()
    assert alone.exitcode == 0, (tmp_path / "alone.log").read_text()
    expected = only_folder(tmp_path / "alone")

    process = train("killed.log", *overrides, f"logging.run_root={tmp_path / 'killed'}", "checkpoint.min_seconds=0")
    wait_until(process, lambda: list((tmp_path / "killed").glob("*/config.json")))
    folder = only_folder(tmp_path / "killed")
    moments = {"starting": 0, "learning": 0, "saving": 0, "removing": 0}
    for kill in range(KILLS):
        moment = chance.choice(list(moments))
        wait_for_moment(process, folder, moment, chance)
        assert process.exitcode is None, (
            f"seed {seed}: it ended before kill {kill}, {(tmp_path / 'killed.log').read_text()}"
        )
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        moments[moment] += 1
        reached = len(lines_of(folder)) - 1
        process = train("killed.log", "--resume", str(folder.path), "checkpoint.min_seconds=0")
    process.join()
    print(moments, f"update {reached} of {UPDATES} at the last kill")
    assert process.exitcode == 0, (tmp_path / "killed.log").read_text()
    require_same(folder, expected)


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
                check_checkpoint(folder.checkpoints.at(update))
            disk.make_room()
            process = train("--resume", str(folder.path), "checkpoint.min_seconds=1000")
            process.join()
            assert process.exitcode == 0, (tmp_path / "log").read_text()
            assert [report.update for report in read_metrics(folder.metrics)][::2] == list(range(UPDATES + 1))
    except NoDiskError as error:
        pytest.skip(f"a disk cannot be mounted here: {error}")


def wait_for_moment(process, folder, moment, chance):
    """Wait until the process does what it is to be killed in; a few updates at most, however fast they are."""
    before = len(lines_of(folder))
    if moment == "starting":
        moment_in_start = time.monotonic() + chance.uniform(0.0, 1.0)
        wait_until(process, lambda: time.monotonic() > moment_in_start or len(lines_of(folder)) > before)
    elif moment == "learning":
        updates = chance.randint(1, 3)
        wait_until(process, lambda: len(lines_of(folder)) >= before + updates)
        time.sleep(chance.uniform(0.0, 0.01))
    else:
        ending = {"saving": "part", "removing": "removed"}[moment]
        wait_until(process, lambda: any(folder.checkpoints.path.glob(f".*.{ending}")))
        time.sleep(chance.uniform(0.0, 0.01) if moment == "saving" else 0.0)


def wait_until(process, happened):
    deadline = time.monotonic() + WAITS
    while not happened() and process.exitcode is None:
        assert time.monotonic() < deadline
        time.sleep(0.001)


def only_folder(root):
    (path,) = root.iterdir()
    return RunFolder(path)


def lines_of(folder):
    with contextlib.suppress(FileNotFoundError):
        return folder.metrics.read_bytes().splitlines()
    return []


def require_same(folder, expected):
    """Compare two run folders in all but the clocks."""
    assert folder.tasks.read_bytes() == expected.tasks.read_bytes()
    assert folder.measured.read_bytes() == expected.measured.read_bytes()
    told, wanted = reports_of(folder), reports_of(expected)
    assert told == wanted
    assert [report["update"] for report in told[::2]] == list(range(UPDATES + 1))
    first, second = (arrays_of(f.checkpoints.at(UPDATES)) for f in (folder, expected))
    assert first == second
    assert len(folder.checkpoints.updates()) in (2, 3)
    assert not list(folder.checkpoints.path.glob(".*"))
