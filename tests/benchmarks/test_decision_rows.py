"""The rows on decisions: who decides, that all see the same, and that ratios follow."""

import decision_rows as decision_rows_module
import numpy as np
import pytest
from decision_rows import PLAYERS, DecisionSpeed, decision_rows

from jaxarc.benchmarks import Budget, measure_rows

ONCE = Budget(repeats=1, seconds=0.0, longest_scan=1)


@pytest.fixture(scope="module")
def speed():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decision_rows_module, "NUM_CANDIDATES", 24)
        patch.setattr(decision_rows_module, "_SIDE", 5)
        patch.setattr(decision_rows_module, "_STATES_STEPPED", 2)
        yield DecisionSpeed(num_states=4)


def test_the_expert_sees_what_steps_bring(speed):
    assert np.asarray(speed.choices("steps")).tolist() == np.asarray(speed.choices("expert"))[:2].tolist()


def test_every_row_is_measured_and_ratios_follow_from_decisions(speed):
    results = measure_rows(decision_rows(lambda: speed), ONCE, lambda *_: None)
    value = {result.row.row_id.removeprefix("decisions-"): result.value for result in results}
    assert set(value) >= set(PLAYERS)
    assert value["ratio"] == pytest.approx(value["surrogate"] / value["expert"])
    assert value["steps-ratio"] == pytest.approx(value["surrogate"] / value["steps"])
    assert value["drawing-ratio"] == pytest.approx(value["drawing-surrogate"] / value["drawing-expert"])
    assert min(value.values()) > 0
