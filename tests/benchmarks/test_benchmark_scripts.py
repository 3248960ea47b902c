"""The scripts that time two forms of the same work, and an accelerator beside the processor."""

import re

import accelerator
import kernels
import pytest
from surrogate_workload import Workload

from jaxarc.config import StructuralModelConfig, SurrogateNetworkConfig


def test_every_pair_is_timed_and_printed(capsys, monkeypatch):
    monkeypatch.setattr(kernels, "REPEATS", 1)
    monkeypatch.setattr(kernels, "ROUNDS", 1)
    kernels.main()
    out = capsys.readouterr().out
    assert len(re.findall(r"\d ns$", out, re.MULTILINE)) == 5
    assert len(re.findall(r"\d ns   [\d.]+ times$", out, re.MULTILINE)) == 5


STRUCTURE = StructuralModelConfig(num_variables=2, max_parents=1, num_samples=4)
TINY = Workload(SurrogateNetworkConfig(latent_size=8, num_layers=1, num_heads=2), 2, structure=STRUCTURE)


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
