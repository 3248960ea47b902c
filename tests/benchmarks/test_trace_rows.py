"""The benchmark of recording: its rows, its experts, and the look ahead that it compares."""

import numpy as np
import pytest
from labor_experts import HeldLabor, ReleasedLabor
from trace_recording import UNITS, measure, record_in_fresh_process
from trace_rows import trace_rows

from jaxarc.benchmarks import Budget, measure_rows
from jaxarc.experts.expert import Pair
from jaxarc.experts.host_canvas import check_solution

PAIR = Pair(np.array([[1, 2], [3, 4]]), np.array([[5, 5, 6], [6, 5, 6], [7, 0, 7]]))


@pytest.mark.parametrize("expert", [HeldLabor(10), ReleasedLabor(10), ReleasedLabor(0)])
def test_experts_with_labor_solve(expert):
    check_solution(PAIR, expert.solve(PAIR, "mask"), "mask")


@pytest.fixture(scope="module")
def seconds():
    """What a process with two devices measures, and what it is made of on one."""
    return record_in_fresh_process(2, 0.01) | measure(1, 0.01)


def test_every_row_has_its_number(seconds):
    of_eight = {name.replace("pmap-2", "pmap-8"): value for name, value in seconds.items()}
    asked = []

    def record(num_devices, labor):
        asked.append((num_devices, labor))
        return seconds | of_eight

    rows = [row for row in trace_rows(record) if not row.row_id.startswith("lookahead")]
    results = measure_rows(rows, Budget(repeats=2, seconds=0.0, longest_scan=1), lambda *_: None)
    assert all(result.value >= 0 for result in results)
    assert len(rows) == 5 * 12 - 2
    assert sorted(asked) == [(1, 0.01), (1, 0.01), (2, 0.01), (2, 0.01), (8, 0.01), (8, 0.01)]


def test_more_units_are_measured_by_every_strategy(seconds):
    for strategy in ("sequential", "workers", "vmap", "pmap-2"):
        assert {f"{what}-{count}-{strategy}" for what in ("held", "released") for count in UNITS} <= set(seconds)


def test_a_process_that_fails_is_quoted():
    with pytest.raises(RuntimeError, match=r"recording on 0 devices failed: .*"):
        record_in_fresh_process(0, 0.01)
