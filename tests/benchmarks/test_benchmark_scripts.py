"""The scripts that time two forms of the same work, an accelerator beside the processor, and decisions."""

import re

import accelerator
import decision_rows as decision_rows_module
import kernels
import numpy as np
import pytest
from decision_rows import PLAYERS, DecisionSpeed, decision_rows
from surrogate_workload import Workload

from jaxarc.benchmarks import Budget, measure_rows
from jaxarc.config import StructuralModelConfig, SurrogateNetworkConfig


def test_every_pair_is_timed_and_printed(capsys, monkeypatch):
    monkeypatch.setattr(kernels, "REPEATS", 1)
    monkeypatch.setattr(kernels, "ROUNDS", 1)
    kernels.main()
    out = capsys.readouterr().out
    assert len(re.findall(r"\d ns$", out, re.MULTILINE)) == 5
    assert len(re.findall(r"\d ns   [\d.]+ times$", out, re.MULTILINE)) == 5


STRUCTURE = StructuralModelConfig(num_variables=2, max_parents=1, num_samples=4)
TINY = Workload(SurrogateNetworkConfig("samples", latent_size=8, num_layers=1, num_heads=2), 2, structure=STRUCTURE)


@pytest.fixture
def one_short_comparison(monkeypatch):
    monkeypatch.setattr(accelerator, "NUM_STEPS", 2)
    monkeypatch.setattr(accelerator, "PRECISIONS", ("float32",))


@pytest.mark.usefixtures("standard_promotion", "one_short_comparison")
def test_losses_are_compared_and_then_everything_is_measured(capsys, monkeypatch):
    commands = []
    monkeypatch.setattr(accelerator, "run_benchmark", commands.append)
    accelerator.main(["--quick"], {"tiny": TINY})
    assert commands == [["surrogate", "--quick"]]
    assert "tiny       float32" in capsys.readouterr().out


@pytest.mark.usefixtures("one_short_comparison")
def test_steps_that_differ_are_not_measured(monkeypatch):
    told = iter([[0.5, 0.4], [0.5, 0.3]])
    monkeypatch.setattr(accelerator, "losses", lambda *_: next(told))
    with pytest.raises(SystemExit, match="tiny in float32 learns something else"):
        accelerator.main([], {"tiny": TINY})


ONCE = Budget(repeats=1, seconds=0.0, longest_scan=1)


@pytest.fixture(scope="module")
def speed():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decision_rows_module, "NUM_CANDIDATES", 24)
        patch.setattr(decision_rows_module, "_FEW_STATES", 2)
        yield DecisionSpeed(side=5, num_states=4)


def test_the_expert_sees_what_steps_bring(speed):
    assert np.asarray(speed.choices("steps")).tolist() == np.asarray(speed.choices("expert"))[:2].tolist()


def test_every_row_is_measured_and_ratios_follow_from_decisions(speed):
    rows = [row for row in decision_rows(lambda side: speed) if not row.row_id.startswith("decisions-30-")]
    value = {
        result.row.row_id.removeprefix("decisions-"): result.value
        for result in measure_rows(rows, ONCE, lambda *_: None)
    }
    assert set(value) >= set(PLAYERS)
    assert value["ratio"] == pytest.approx(value["surrogate"] / value["expert"])
    assert value["steps-ratio"] == pytest.approx(value["surrogate"] / value["steps"])
    assert value["drawing-ratio"] == pytest.approx(value["drawing-surrogate"] / value["drawing-expert"])
    assert set(value) >= {"network", "network-ratio"}
    assert min(value.values()) > 0
