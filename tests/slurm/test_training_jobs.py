"""Training as a job of SLURM: processes find each other, stop at a signal, and leave a lost node behind."""

import json
import shlex
import sys
from pathlib import Path

import pytest
from small_run import only_folder, small_run, write_small_tasks

from jaxarc.agents import read_metrics

pytest_plugins = ["slurm_cluster"]

UPDATES = 1_000_000  # more than are learned before a signal
CHOICES = (
    "network.hidden_size=8",
    "action.allowed_operations=[1,2,33,34]",
    "training.num_seeds=2",
    "training.reports_per_evaluation=4",
    "checkpoint.min_seconds=0",
)


@pytest.fixture(scope="module")
def overrides(tmp_path_factory):
    return small_run(write_small_tasks(tmp_path_factory.mktemp("dataset")), UPDATES, *CHOICES)


def script(folder, *arguments):
    """Return a batch script that runs ``jaxarc train``, with a device for each process."""
    exports = f"export JAX_NUM_CPU_DEVICES=1 JAXARC_NO_CACHE=0 XDG_CACHE_HOME={folder / 'cache'}"
    command = shlex.join([sys.executable, "-m", "jaxarc", "train", *map(str, arguments)])
    return f"#!/bin/bash\n{exports}\nexec srun {command}\n"


def num_reports(root):
    return sum(len(file.read_bytes().splitlines()) for file in root.glob("*/metrics.jsonl"))


def learn_on_and_stop(slurm, job, root, folder):
    """Wait until a job has learned some more, and stop it as --signal=TERM@120 does 120 s before the time limit."""
    before = num_reports(root)
    ended = lambda: slurm.state(job) not in ("PENDING", "RUNNING", "COMPLETING")
    slurm.wait_until(lambda: num_reports(root) > before + 8 or ended())
    slurm.run("scancel", "--signal=TERM", job)
    slurm.wait_until(ended)
    told = (folder / f"slurm-{job}.out").read_text()
    assert slurm.state(job) == "COMPLETED", told
    assert "Stopped early, and kept what was learned" in told


def require_whole(folder):
    """Check that each of two seeds has one report of each update, and the newest checkpoint is of the last one."""
    updates = [report.update for report in read_metrics(folder.metrics)]
    saved = folder.checkpoints.newest().record
    assert updates[: saved.num_lines] == [number // 2 for number in range(2 * (saved.update + 1))]
    assert set(updates[saved.num_lines :]) <= {saved.update}  # which is measured when the run stops


def test_two_processes_meet_by_themselves_stop_at_sigterm_and_go_on(slurm, overrides, tmp_path):
    root = tmp_path / "runs"
    nodes = ("--nodes=2", "--ntasks-per-node=1")
    first = script(tmp_path, "parallel=multihost", *overrides, f"logging.run_root={root}")
    learn_on_and_stop(slurm, slurm.submit(first, *nodes, folder=tmp_path), root, tmp_path)
    folder = only_folder(root)
    again = script(tmp_path, "--resume", folder.path)
    learn_on_and_stop(slurm, slurm.submit(again, *nodes, folder=tmp_path), root, tmp_path)
    assert only_folder(root) == folder
    require_whole(folder)


def test_a_job_whose_node_is_lost_goes_on_elsewhere_while_its_process_there_still_runs(slurm, overrides, tmp_path):
    root = tmp_path / "runs"
    job = slurm.submit(script(tmp_path, *overrides, f"logging.run_root={root}"), folder=tmp_path)
    slurm.wait_until(lambda: num_reports(root) > 8)
    folder = only_folder(root)
    writer = lambda: json.loads((folder.path / ".writer").read_bytes())
    process = Path("/proc", writer()["process"].partition("-")[0])
    node = int(slurm.run("squeue", "-h", "-j", job, "-o", "%N").strip().removeprefix("node"))
    slurm.kill(node)
    try:
        slurm.wait_until(lambda: "Restarts=1" in slurm.run("scontrol", "show", "job", job))
        assert process.exists()
        slurm.wait_until(lambda: writer()["restarts"] == 1)
        slurm.wait_until(lambda: not process.exists())
        learn_on_and_stop(slurm, job, root, tmp_path)
    finally:
        slurm.revive(node)
    assert only_folder(root) == folder
    require_whole(folder)
