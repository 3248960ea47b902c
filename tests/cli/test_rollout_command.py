import os
import re
import subprocess
import sys

import jax
import pytest
from run_command import run_command

SHORT = ["--num-envs", "6", "--steps", "501", "--repeats", "3", "--format", "point", "--max-steps", "10"]


def run_alone(*arguments, **environment):
    """Run the command in a process of its own, where JAX has not started."""
    return subprocess.run(
        [sys.executable, "-m", "jaxarc.cli.main", "rollout", *arguments],
        env={**os.environ, "COLUMNS": "200", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def row(out, name):
    return re.search(rf"{name} +│ +(.*?) +│", out)[1]


@pytest.fixture(scope="module")
def printed():
    """What a short rollout prints, in a process where JAX runs already."""
    result = run_command("rollout", *SHORT)
    assert (result.exit_code, result.stderr) == (0, "")
    return result.stdout


def test_a_rollout_reports_speed_and_what_random_actions_gain(printed):
    assert row(printed, "environments × steps") == "6 × 501, 3 times"
    assert row(printed, "devices") == f"{len(jax.local_devices())} cpu"
    median, low, high = (float(x.replace(",", "")) for x in re.findall(r"[\d,]+", row(printed, "steps per second")))
    assert low <= median <= high
    assert int(row(printed, "episodes").replace(",", "")) >= 6 * 3 * 501 // 10
    assert re.fullmatch(r"-?\d+\.\d{3}", row(printed, "mean return"))


def test_devices_do_not_change_what_happens(printed):
    shared = run_alone(*SHORT, JAX_NUM_CPU_DEVICES="4")
    assert shared.returncode == 0, shared.stderr
    assert row(shared.stdout, "devices") == "4 cpu"  # which do not divide 6 environments
    for name in ("environments × steps", "episodes", "mean return", "solved episodes"):
        assert row(shared.stdout, name) == row(printed, name)


@pytest.mark.parametrize("command", [("rollout", "--num-envs"), ("train", "agent.num_minibatches=1")])
def test_a_batch_that_does_not_fit_is_one_line_on_stderr(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    batch = "agent.num_envs=100000000" if command[0] == "train" else "100000000"
    result = run_command(*command, batch)
    assert result.exit_code == 1
    assert re.fullmatch(r"error: num_envs=100000000 needs .* would fit\n", result.stderr)
