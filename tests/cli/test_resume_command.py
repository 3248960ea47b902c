"""`jaxarc train --resume` as a user runs it: processes that are killed and stopped, on one device and on four."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from killable_training import arrays_of
from run_command import run_command
from small_run import reports_of, small_run, write_small_tasks

from jaxarc.runs import RunFolder

UPDATES = 40


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return write_small_tasks(tmp_path_factory.mktemp("dataset"))


@pytest.fixture
def train(dataset, tmp_path):
    """Start `jaxarc train`, by default with a checkpoint at each update, and with few devices."""
    variables = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "JAXARC_NO_CACHE": "0"}
    started = []

    def start(*arguments, devices=1):
        command = [sys.executable, "-m", "jaxarc.cli.main", "train", *map(str, arguments)]
        flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}"
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**variables, "XLA_FLAGS": flags},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def run_in(root, dataset):
    return small_run(dataset, UPDATES, f"logging.run_root={root}")


def wait_for_lines(process, root, more):
    """Wait until the run has so many lines of metrics more, and return its folder."""
    count = lambda: sum(len(path.read_bytes().splitlines()) for path in root.glob("*/metrics.jsonl"))
    before, deadline = count(), time.monotonic() + 300
    while count() < before + more and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert process.poll() is None, process.communicate()
    return RunFolder(next(root.iterdir()))


def finish(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    return out, err


def test_a_run_that_is_killed_and_stopped_ends_the_same_on_whatever_devices(train, dataset, tmp_path):
    whole = tmp_path / "whole"
    finish(train(*run_in(whole, dataset), "checkpoint.min_seconds=1000"))
    expected = RunFolder(next(whole.iterdir()))

    root = tmp_path / "broken"
    process = train(*run_in(root, dataset), "checkpoint.min_seconds=0")
    folder = wait_for_lines(process, root, 3)
    process.kill()
    process.wait()
    process = train("--resume", folder.path, devices=4)
    wait_for_lines(process, root, 2)
    process.send_signal(signal.SIGTERM)
    out, err = finish(process)
    assert "Stopping: what was learned is kept" in err
    assert "Stopped early, and kept what was learned" in out
    assert 1 < folder.checkpoints.newest().record.update < 40
    out, _ = finish(train("--resume", folder.path))
    assert "update 40/40" in out
    assert reports_of(folder) == reports_of(expected)
    assert folder.tasks.read_bytes() == expected.tasks.read_bytes()
    assert arrays_of(folder.checkpoints.at(40)) == arrays_of(expected.checkpoints.at(40))
    assert json.loads(folder.config.read_text())["checkpoint"]["min_seconds"] == 0

    again = run_command("train", "--resume", folder.path)
    assert again.exit_code == 0
    assert "is finished: all 40 updates are learned" in again.stdout.replace("\n", " ")


OWN = """
import jax.numpy as jnp
from jaxarc.agents.cell_network import CellNetwork
from jaxarc.wrappers import RewardWrapper

class Doubled(RewardWrapper):
    def reward(self, reward, info, before, after, params):
        return 2 * reward

class Deaf(CellNetwork):
    def value(self, features):
        return jnp.zeros_like(super().value(features))
"""


def test_a_run_by_a_reward_and_a_network_of_ones_own_is_stopped_resumed_and_evaluated(train, dataset, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    own = [f"reward={tmp_path}/own.py:Doubled", f"network.kind={tmp_path}/own.py:Deaf"]
    process = train(*run_in(tmp_path / "runs", dataset), "checkpoint.min_seconds=0", *own)
    folder = wait_for_lines(process, tmp_path / "runs", 3)
    process.send_signal(signal.SIGTERM)
    finish(process)
    _, err = train("--resume", folder.path).communicate(timeout=300)
    assert "there is no reward 'Doubled'" in err
    assert "there is no network 'Deaf'" in err
    assert err.count("\n") <= 4
    assert "update 40/40" in finish(train("--resume", folder.path, *own))[0]
    command = [sys.executable, "-m", "jaxarc.cli.main", "evaluate", str(dataset), "--agent", str(folder.path)]
    options = [
        "--reward",
        own[0].partition("=")[2],
        "--network",
        own[1].partition("=")[2],
        "--answers-visible",
        "--json",
    ]
    evaluate = lambda *more: subprocess.run([*command, *more], capture_output=True, text=True, check=False)
    assert "--network file.py:NAME of a run" in " ".join(evaluate().stderr.split())
    assert json.loads(evaluate(*options).stdout)


@pytest.fixture(scope="module")
def begun(dataset, tmp_path_factory):
    """The folder of a run that was killed before its first checkpoint."""
    from jaxarc.cli.settings import read_experiment
    from jaxarc.runs import create_run_folder

    return create_run_folder(read_experiment(run_in(tmp_path_factory.mktemp("runs"), dataset))).path


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["schedule.learning_rate=1e-3"], "schedule.learning_rate is 0.004 in the run, but 0.001 now"),
        (["training.total_steps=9999999"], "training.total_steps is 1280 in the run, but 9999999 now"),
        (["curriculum=replay"], "'curriculum=replay' does not go with --resume, since a run keeps its choices"),
        (["--multirun", "training.seed=1,2"], "leave --multirun out"),
    ],
)
def test_what_a_resumed_run_cannot_change_is_one_line(begun, arguments, complaint):
    result = run_command("train", "--resume", begun, *arguments)
    assert result.exit_code == 2
    assert complaint in " ".join(result.stderr.replace("│", " ").split())
    assert "Traceback" not in result.stderr


def test_a_folder_without_a_run_and_one_in_use_are_named(begun, tmp_path):
    cases = ((tmp_path, 2, "there is no config.json in"), (begun, 1, "another process is training in"))
    for folder, code, complaint in cases:
        with RunFolder(begun).lock():
            result = run_command("train", "--resume", folder)
        assert result.exit_code == code
        assert complaint in result.stderr
