"""The benchmark of scaling: its rows, the process that measures, and the estimate for more devices than there are."""

import json

import pytest

from jaxarc.benchmarks import Effort, measure_rows, scaling_rows
from jaxarc.benchmarks.device_rolling import Devices, roll_in_fresh_process
from jaxarc.benchmarks.scaling_estimate import (
    Cluster,
    Link,
    ShardedPlay,
    Training,
    estimate_table,
    rollout_speed,
    sharded_speed,
    training_speed,
)
from jaxarc.cli.main import main

EFFORT = Effort(repeats=2, seconds=0.5, longest_scan=4)
FACTS = [
    f"{what}-{how}"
    for what in ("collectives", "sent", "traffic", "tasks", "memory")
    for how in ("compact", "replicated", "sharded")
]


def roll_by_hand(asked):
    """Speed as if each core did a million steps; eight devices work a tenth more than one does."""

    def roll(devices):
        asked.append(devices)
        if devices.what == "facts":
            return dict.fromkeys(FACTS, 7.0)
        work = 1000 + 100 * (devices.num_devices == 8)
        return {"speed": 1e6 * devices.num_cores, "work": work, "variation": 0.25}

    return roll


def values(rows):
    results = measure_rows([row for row in rows if row.row_id != "fitting"], EFFORT, lambda *_: None)
    return {result.row.row_id: result for result in results}


def test_rows_are_ratios_of_what_processes_measure():
    asked = []
    found = values(scaling_rows(roll_by_hand(asked)))
    assert found["speedup-2"].samples == (2.0, 2.0)
    assert found["strong-8"].samples == found["weak-8"].samples == (1.1, 1.1)
    assert found["strong-8"].is_met
    assert found["tasks-sharded"].samples == (7.0,)
    assert found["variation-2"].value == 25.0
    speeds = [(each.num_devices, each.num_cores, each.num_envs) for each in asked if each.what == "speed"]
    assert sorted(speeds) == sorted(2 * [(1, 1, 8192), (2, 2, 8192), (8, 1, 8192), (1, 1, 1024)])
    assert len(asked) == 9  # rows of one round share a process, facts are looked at once


def test_a_process_with_two_devices_measures_speed():
    found = roll_in_fresh_process(Devices("speed", 2, 1, 8, 0.0, 2))
    assert found["speed"] > 0
    assert found["work"] > 0
    assert found["variation"] == 0  # of a single call


def test_a_process_looks_at_what_its_devices_hold_and_tell():
    found = roll_in_fresh_process(Devices("facts", 2, 1, 8, 0.0, 2))
    assert found["collectives-compact"] == found["collectives-replicated"] == 0
    assert found["collectives-sharded"] > 0
    assert found["sent-sharded"] > 3 * 4 * 900  # three loads of a grid for each of four environments
    assert found["tasks-replicated"] > 1.9 * found["tasks-sharded"]
    assert found["traffic-replicated"] > 2744  # a state, at least


def test_a_process_that_fails_is_quoted():
    with pytest.raises(RuntimeError, match=r"a rollout on 0 device\(s\) failed: .*"):
        roll_in_fresh_process(Devices("speed", 0, 1, 8, 0.0, 2))


SLOW = Link(1e6, 0.0)
CLUSTER = Cluster(8, Link(1e9, 0.001), SLOW)


def test_rollouts_wait_for_the_slowest_device_only():
    assert rollout_speed(1e6, 0.0, 64) == 64e6
    assert rollout_speed(1e6, 0.1, 1) == 1e6
    assert rollout_speed(1e6, 0.1, 64) == pytest.approx(64e6 / 1.2884, rel=1e-4)


def test_training_waits_for_its_gradients():
    training = Training(steps_per_second=1e6, steps_per_update=10**6, exchanges_per_update=10, gradient_bytes=10**8)
    assert training_speed(training, CLUSTER, 1) == (1e6, 0.0)
    # 10 exchanges of 2 * 7/8 * 0.1 s and 14 messages of a millisecond, beside one second of computing
    speed, share = training_speed(training, CLUSTER, 8)
    assert speed == pytest.approx(8e6 / (1 + 10 * (0.175 + 0.014)))
    assert share == pytest.approx(1.89 / 2.89)
    # between nodes: 10 * 2 * 15/16 * 100 s
    assert training_speed(training, CLUSTER, 16)[0] == pytest.approx(16e6 / (1 + 1875))


def test_sharded_tasks_cost_more_the_more_environments_there_are():
    play = ShardedPlay(steps_per_second=1e6, num_envs=1000, grid_bytes=900, num_loads=3)
    assert sharded_speed(play, CLUSTER, 1) == (1e6, 0.0)
    speed, share = sharded_speed(play, CLUSTER, 16)
    exchanging = 3 * 15 * 1000 * 900 / 1e6
    assert speed == pytest.approx(16 * 1000 / (1e-3 + exchanging))
    assert share == pytest.approx(exchanging / (1e-3 + exchanging))


def test_the_estimate_is_a_table_in_markdown():
    play = ShardedPlay(1e8, 4096, 900, 3)
    table = estimate_table(play, 0.0, Training(1e6, 4096, 1, 10**6), CLUSTER, (1, 1024)).splitlines()
    assert len({line.count("|") for line in table}) == 1
    assert table[2] == "| 1 | 100 M | 100 % | 100 M | 1 M | 100 % |"
    assert table[3].startswith("| 1,024 | 102 G | 100 % | ")


def test_the_command_says_how_many_environments_fit(tmp_path):
    path = tmp_path / "scaling.json"
    with pytest.raises(SystemExit) as exit_info:
        main(["benchmark", "scaling", "--quick", "--rows", "fitting", "--cores", "1", "--json", str(path)])
    assert exit_info.value.code == 0
    (row,) = json.loads(path.read_text())["rows"]
    assert 10_000 < row["value"] < 10**9
