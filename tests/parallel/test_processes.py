"""Several processes on this machine: they meet, agree, refuse what does not fit, and play what one process plays."""

import json
from pathlib import Path

import pytest
from playing_processes import fingerprint
from process_group import TRAIN, ProcessGroup, free_address, places

from jaxarc.config import ParallelConfig
from jaxarc.parallel import (
    ProcessError,
    allgather_text,
    any_process,
    broadcast_flag,
    require_same,
    start_processes,
)

FOLDERS = [str(Path(__file__).parent), str(Path(__file__).parents[1])]
SLOW_TO_LEAVE = f"""
import time, jax
from jaxarc.runs import loop
check = loop.require_same_run
def check_slowly(experiment):
    try:
        check(experiment)
    finally:
        time.sleep(3 * jax.process_index())
loop.require_same_run = check_slowly
{TRAIN}
"""
PLAY = f"import sys; sys.path[:0] = {FOLDERS}; import playing_processes as p; p.main(*sys.argv[1:])"


@pytest.fixture(scope="module")
def alone():
    """What one process with one device plays."""
    return json.loads(json.dumps(fingerprint()))


def test_processes_agree_and_play_the_same_bits_as_one(tmp_path, alone):
    count, address = 4, free_address()
    with ProcessGroup(tmp_path / "group", PLAY, [[address, str(count), str(k)] for k in range(count)]) as group:
        assert group.codes() == [0] * count, group.told()
        told = [json.loads(log.read_text().splitlines()[-1]) for log in group.logs]
    for number, one in enumerate(told):
        assert one["devices"] == count
        assert one["is_primary"] == (number == 0)
        assert one["texts"] == ["grid" * (k + 1) for k in range(count)]
        assert one["any"] == [True, False]
        assert one["first"] == [True, False]
        assert "size is 0 in process 0 and 1 in process 1" in one["refused"]
        assert "color" not in one["refused"]
        assert one["played"] == alone


def test_a_process_that_does_not_find_the_others_says_in_time_what_to_check(tmp_path):
    waits, calls = free_address(), free_address()  # two, so that they miss each other
    shared = ["parallel=multihost", "parallel.connect_seconds=2"]
    arguments = [
        [*shared, "parallel.num_processes=2", "parallel.process_id=0", f"parallel.coordinator_address={waits}"],
        [*shared, "parallel.num_processes=2", "parallel.process_id=1", f"parallel.coordinator_address={calls}"],
        [*shared, "parallel.process_id=0"],
    ]
    with ProcessGroup(tmp_path / "group", TRAIN, arguments) as group:
        assert group.codes() == [1, 1, 1], group.told()
        said = [group.told(number) for number in range(3)]
    assert f"process 0 waited 2 s at the coordinator {waits}: not all 2 processes came; check that process" in said[0]
    assert f"process 1 waited 2 s at the coordinator {calls}: nobody answers there (Connection refused);" in said[1]
    assert "parallel.multihost needs parallel.coordinator_address, parallel.num_processes: no SLURM" in said[2]
    assert all(text.startswith("error: ") and text.count("\n") == 1 for text in said)


@pytest.mark.parametrize(
    ("nodes", "first"),
    [
        ("n1.invalid", "n1.invalid"),
        ("n1.invalid,login", "n1.invalid"),
        ("n[001,007-015].invalid,login", "n001.invalid"),
        ("rack[1-2]n[3,5].invalid,login[1-2]", "rack1n3.invalid"),
    ],
)
def test_a_step_of_slurm_whose_first_node_has_no_address_says_what_to_give(nodes, first, monkeypatch, tmp_path):
    step = {"SLURM_STEP_NODELIST": nodes, "SLURM_JOB_ID": "4095", "SLURM_STEP_ID": "1", "PATH": str(tmp_path)}
    for name, value in step.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ProcessError, match=f"parallel.coordinator_address={first}:61500 with"):
        start_processes(ParallelConfig(num_devices=0, multihost=True))


def test_a_process_with_other_choices_is_refused_by_all_however_slow_one_is_to_leave(tmp_path):
    arguments = [
        [
            *place,
            f"agent.rollout_steps={16 + number}",
            "training.num_seeds=2",
            "parallel.num_devices=2",
            "task.max_side=3",
        ]
        for number, place in enumerate(places(2))
    ]
    with ProcessGroup(tmp_path / "group", SLOW_TO_LEAVE, arguments) as group:
        assert group.codes() == [1, 1], group.told()
        for number in range(2):
            assert "agent.rollout_steps is 16 in process 0 and 17 in process 1. Start" in group.told(number)


def test_one_process_agrees_with_itself():
    assert allgather_text("grid") == ["grid"]
    assert (any_process(True), any_process(False)) == (True, False)
    assert (broadcast_flag(True), broadcast_flag(False)) == (True, False)
    require_same({"size": 3})
