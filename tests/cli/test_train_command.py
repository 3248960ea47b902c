"""`jaxarc train` as a user runs it: a process of its own, to its end and stopped by Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jaxarc.agents import read_metrics

TINY = [
    "experiment=small_grids",
    "agent.num_envs=8",
    "agent.rollout_steps=4",
    "agent.num_minibatches=2",
    "training.updates_per_report=1",
    "environment.max_episode_steps=4",
]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """Environment variables with which both runs share what is compiled."""
    inherited = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    return {**inherited, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("compiled")), "JAXARC_NO_CACHE": "0"}


def start(environment, root, *overrides):
    command = [sys.executable, "-m", "jaxarc.cli.main", "train", *TINY]
    command += [f"logging.run_root={root}", *overrides]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def only_folder(root):
    (folder,) = root.iterdir()
    return folder


def test_a_run_leaves_its_files_and_prints_the_rates_before_and_after(environment, tmp_path):
    process = start(environment, tmp_path, "training.total_steps=96", "training.seed=3", "curriculum=learnability")
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, err
    folder = only_folder(tmp_path)
    files = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert files == {
        "config.json",
        "measured.jsonl",
        "metrics.jsonl",
        "learning_curve.png",
        "checkpoints",
        "tasks.jsonl",
    }
    config = json.loads((folder / "config.json").read_text())
    assert config["training"]["seed"] == 3
    assert {"versions", "git_revision"} <= config.keys()
    rows = [json.loads(line) for line in (folder / "tasks.jsonl").read_text().splitlines()]
    assert len(rows) == 136
    assert len({row["weight"] for row in rows}) > 1
    assert [report.update for report in read_metrics(folder / "metrics.jsonl")] == [0, 1, 2, 3]
    assert (folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert any(Path(environment["XDG_CACHE_HOME"]).rglob("*-cache"))  # compiled programs, for the next run
    for words in (
        "The answer is visible",
        "before",
        "after",
        "136",
        "27",
        "update 0/3",
        "update 1/3",
        "update 3/3",
        "tasks.jsonl",
        "To see every episode: jaxarc replay ",
        str(folder),
    ):
        assert words in out
    assert "Curriculum learnability:" in out


def test_ctrl_c_ends_the_run_cleanly_and_keeps_what_was_learned(environment, tmp_path):
    process = start(environment, tmp_path, "training.total_steps=1_000_000_000")
    deadline = time.monotonic() + 300
    try:
        while len(reports_so_far(tmp_path)) < 3 and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert "Traceback" not in err
    assert "Stopping: what was learned is kept" in err
    assert "Stopped early, and kept what was learned" in out
    folder = only_folder(tmp_path)
    assert list((folder / "checkpoints").iterdir())
    assert (folder / "learning_curve.png").exists()
    reports = read_metrics(folder / "metrics.jsonl")
    assert reports[-1].evaluation_solve_rate is not None
    assert reports[-1].update >= 2


def reports_so_far(root):
    return [line for path in root.glob("*/metrics.jsonl") for line in path.read_text().splitlines()]
