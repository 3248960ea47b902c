"""The benchmark of scaling: its rows, the process that measures."""

import json

from device_rolling import Devices, roll_in_fresh_process
from measure import main
from scaling_rows import scaling_rows

from jaxarc.benchmarks.measure import measure_rows
from jaxarc.benchmarks.suite import Budget

EFFORT = Budget(repeats=2, seconds=0.5, longest_scan=4)
FACTS = ["collectives", "traffic-replicated", "tasks-replicated", "memory-replicated"]


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
    assert found["tasks-replicated"].samples == (7.0,)
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
    assert found["collectives"] == 0
    assert found["traffic-replicated"] > 2744  # a state, at least


def test_the_command_says_how_many_environments_fit(tmp_path):
    path = tmp_path / "scaling.json"
    main(["scaling", "--quick", "--rows", "fitting", "--cores", "1", "--json", str(path)])
    (row,) = json.loads(path.read_text())["rows"]
    assert 10_000 < row["value"] < 10**9
