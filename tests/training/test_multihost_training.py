"""A run of two processes that is killed, stopped and moved on the way ends as one that was left alone."""

import json
import os
import signal
import time

import numpy as np
import pytest
from orbax.checkpoint import Checkpointer, PyTreeCheckpointHandler, RestoreArgs
from orbax.checkpoint.args import PyTreeRestore
from process_group import TRAIN, ProcessGroup, places

from jaxarc.training import RunFolder, read_metrics

UPDATES = 50
CLOCKS = ("seconds", "steps_per_second")
HEARTBEAT = 10  # seconds
OVERRIDES = [
    "agent.num_envs=8",
    "agent.rollout_steps=4",
    "agent.num_minibatches=2",
    "network.hidden_size=8",
    "dataset.max_grid_height=2",
    "dataset.max_grid_width=2",
    "environment.max_episode_steps=3",
    "task.max_side=2",
    "action.allowed_operations=[1,2,33,34]",
    "training.compilation_cache=true",
    "training.num_seeds=2",
    "training.updates_per_report=1",
    "training.reports_per_evaluation=4",
    f"training.total_steps={UPDATES * 32}",
]


@pytest.fixture(scope="module")
def overrides(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dataset")
    for color in (1, 2, 3):
        pair, test = ({"input": [[0, 0]], "output": [[color, color]]}, {"input": [[0], [0]], "output": [[color]] * 2})
        (folder / f"task{color}.json").write_text(json.dumps({"train": [pair], "test": [test]}))
    return [*OVERRIDES, f"task.train_dataset={folder}", f"task.evaluation_dataset={folder}"]


def test_a_run_of_two_processes_that_is_killed_and_stopped_ends_as_one_process_left_alone(overrides, tmp_path):
    together = [*overrides, f"logging.run_root={tmp_path / 'together'}", "checkpoint.min_seconds=0"]
    with ProcessGroup(tmp_path / "first", TRAIN, [[*together, *place] for place in pair()]) as group:
        group.wait_until(lambda: lines_of(tmp_path / "together") > 16)
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


def only_folder(root):
    (path,) = root.iterdir()
    return RunFolder(path)


def lines_of(root):
    return sum(len(file.read_bytes().splitlines()) for file in root.glob("*/metrics.jsonl"))


def newest(folder):
    return folder.checkpoints.updates()[-1]


def require_same(folder, expected):
    """Compare two finished run folders in all but the clocks."""
    assert folder.tasks.read_bytes() == expected.tasks.read_bytes()
    assert folder.measured.read_bytes() == expected.measured.read_bytes()
    told, wanted = ([without_clocks(report) for report in read_metrics(one.metrics)] for one in (folder, expected))
    assert told == wanted
    assert [report["update"] for report in told[::2]] == list(range(UPDATES + 1))
    assert arrays_of(folder) == arrays_of(expected)


def without_clocks(report):
    return {name: value for name, value in vars(report).items() if name not in CLOCKS}


def arrays_of(folder):
    """Return the shape, type and bytes of each array of the last checkpoint."""
    place = folder.checkpoints.at(UPDATES).resolve() / "arrays"
    with Checkpointer(PyTreeCheckpointHandler()) as checkpointer:
        there = checkpointer.metadata(place).item_metadata.tree
        empty = {name: np.empty(leaf.shape, leaf.dtype) for name, leaf in there.items()}
        whole = {name: RestoreArgs(restore_type=np.ndarray) for name in there}
        arrays = checkpointer.restore(place, args=PyTreeRestore(empty, restore_args=whole))
    return {name: (array.shape, array.dtype, array.tobytes()) for name, array in arrays.items()}
