"""Full disks, disks that cannot be written, wrong clocks: one line that names the file, nothing lost."""

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from archive_server import ArchiveServer

from campaign.faults.killed_work import (
    Download,
    EvaluateCommand,
    PlayCommand,
    TraceRecording,
    contents,
    training_overrides,
    write_tasks,
)
from campaign.faults.kills import zip_of
from campaign.faults.victim import live
from jaxarc.cli.main import main
from jaxarc.datasets import load_tasks
from jaxarc.datasets.task_set import digest_of
from jaxarc.experts import Painter
from jaxarc.runs.checkpoint import CheckpointRecord, Checkpoints, read_checkpoint, save_checkpoint
from jaxarc.traces import TraceCache, record_traces

_FILLER: Final = "filler"


class NoDiskError(RuntimeError):
    """This system does not let this user mount a disk."""


@dataclass(frozen=True)
class FaultyDisk:
    """A disk in memory, with a folder ``work``."""

    path: Path

    @property
    def work(self) -> Path:
        return self.path / "work"

    def fill(self) -> None:
        """Leave no room."""
        with (self.path / _FILLER).open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

    def make_room(self) -> None:
        (self.path / _FILLER).unlink()

    def forbid_writing(self) -> None:
        _call("mount", "-o", "remount,ro", str(self.path))


@contextmanager
def faulty_disk(path: Path, kilobytes: int = 4096) -> Iterator[FaultyDisk]:
    """Mount a small disk, and take it away at the end.

    Raises:
        NoDiskError: that takes root, or more.
    """
    path.mkdir(parents=True)
    _call("mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(path))
    try:
        (path / "work").mkdir()
        yield FaultyDisk(path)
    finally:
        _call("umount", "--lazy", str(path))


def _call(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise NoDiskError(f"{' '.join(command)}: {done.stderr.strip()}")


RECORD = CheckpointRecord(1, 1, 0.0, None, {}, {})
FAULTS = FULL, READ_ONLY = "No space left on device", "Read-only file system"


@dataclass(frozen=True)
class FirstTraining:
    """``jaxarc train``, which begins with a folder."""

    tasks: Path

    def run(self, folder, tell):
        larger = ("task.max_side=3", "dataset.max_grid_height=3", "dataset.max_grid_width=3")
        main(["train", *training_overrides(self.tasks), *larger, f"logging.run_root={folder / 'runs'}"])


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    return write_tasks(tmp_path_factory.mktemp("tasks"), 3)


@pytest.fixture
def disk(tmp_path):
    try:
        with faulty_disk(tmp_path / "disk") as mounted:
            yield mounted
    except NoDiskError as error:
        pytest.skip(f"a disk cannot be mounted here: {error}")


@pytest.fixture
def make(tasks, tmp_path):
    """Make work by its name; the first one of a kind leaves files, the second one would leave others."""
    with ArchiveServer(zip_of(tasks)) as server:
        others = write_tasks(tmp_path / "others", 3, seed=5)
        yield {
            ("traces record", 1): lambda: TraceRecording(tasks),
            ("traces record", 2): lambda: TraceRecording(others),
            ("download", 2): lambda: Download(server.url, digest_of(load_tasks(str(tasks)))),
            ("play", 2): lambda: PlayCommand(tasks),
            ("evaluate", 2): lambda: EvaluateCommand(tasks, seed=1),
        }


def fail(disk, fault, work, notes):
    """Do work on a disk with a fault, and return the one line that it ends with."""
    if fault == FULL:
        disk.fill()
    elif fault == READ_ONLY:
        disk.forbid_writing()
    ending = live(work, disk.work, notes)
    assert ending.code == 1, ending.output
    return ending.output.strip()


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("name", ["traces record", "download"])
def test_a_command_that_cannot_write_says_so_in_a_line_and_loses_nothing(disk, make, name, fault, tmp_path):
    if first := make.get((name, 1)):
        assert live(first(), disk.work, tmp_path / "notes").code == 0
    before = contents(disk.work)
    line = fail(disk, fault, make[name, 2](), tmp_path / "notes")
    assert line.count("error: ") == 1
    assert "\n" not in line
    assert str(disk.work) in line
    assert fault in line or "readonly database" in line  # as SQLite says it
    assert ";" in line  # what to do
    assert {file: contents(disk.work).get(file) for file in before} == before
    if fault == FULL:
        disk.make_room()
        assert live(make[name, 2](), disk.work, tmp_path / "notes").code == 0


@pytest.mark.parametrize("fault", FAULTS)
def test_a_command_whose_result_cannot_be_written_says_so_in_a_line(disk, make, fault, tmp_path):
    line = fail(disk, fault, make["evaluate", 2](), tmp_path / "notes").splitlines()[-1]
    assert line.startswith(f"error: {disk.work}")
    assert line.endswith("name another place")
    assert f"{fault}; " in line
    assert contents(disk.work) == {}


@pytest.mark.parametrize("fault", FAULTS)
def test_training_that_has_no_folder_says_so_in_a_line(disk, tasks, fault, tmp_path):
    line = fail(disk, fault, FirstTraining(tasks), tmp_path / "notes").splitlines()[-1]
    assert line.startswith(f"error: {disk.work}")
    assert f"{fault}; " in line
    assert contents(disk.work) == {}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_game_goes_on_and_says_what_is_not_saved(disk, make, fault, tmp_path):
    output = fail(disk, fault, make["play", 2](), tmp_path / "notes")  # the work asks the board for the problem
    assert f"{fault}: '{disk.work}/plays" in output
    assert "free some space or fix the folder, then save again" in output


@pytest.mark.parametrize("name", ["evaluate", "traces record"])
def test_two_at_once_in_one_folder_leave_what_one_would(make, name, tmp_path):
    alone, together = tmp_path / "alone", tmp_path / "together"
    live(make[name, 2](), alone, tmp_path / "notes")
    with ThreadPoolExecutor() as pool:
        endings = list(pool.map(lambda place: live(make[name, 2](), together, tmp_path / f"notes {place}"), range(2)))
    assert [ending.code for ending in endings] == [0, 0], [ending.output for ending in endings]
    work = make[name, 2]()
    assert work.result(together) == work.result(alone) != {}


@pytest.mark.parametrize("room", [0, 8, 60])
def test_a_checkpoint_that_does_not_fit_is_named_and_the_others_stay(disk, room):
    small, large = ({"weights": np.arange(count, dtype=np.float64)} for count in (10, 50_000))
    save_checkpoint(disk.work / "1", small, RECORD)
    spare = disk.path / "spare"
    spare.write_bytes(bytes(room * 1024))
    disk.fill()
    spare.unlink()
    with pytest.raises(OSError, match=f"{FULL}: '{disk.work / '2'}'"):
        save_checkpoint(disk.work / "2", large, RECORD)
    assert [entry.name for entry in disk.work.iterdir()] == ["1"]
    read_checkpoint(disk.work / "1")
    disk.make_room()
    save_checkpoint(disk.work / "2", large, RECORD)


@pytest.mark.parametrize("years", [-30, 30])
def test_a_wrong_clock_changes_nothing_that_is_read(tasks, years, tmp_path):
    checkpoints = Checkpoints(tmp_path / "checkpoints")
    for update in (1, 2, 3):
        save_checkpoint(checkpoints.at(update), {"steps": np.array([update])}, replace(RECORD, update=update))
    cache = TraceCache(tmp_path / "traces")
    recorded = record_traces(load_tasks(str(tasks)), Painter(), cache=cache).traces
    moment = time.time() + years * 365 * 86400
    for place, path in enumerate(sorted(tmp_path.rglob("*"))):
        os.utime(path, (moment, moment - place))
    assert checkpoints.newest().record.update == 3
    assert {trace.unit_hash: trace for trace in cache.traces()} == recorded
