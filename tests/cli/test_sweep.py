"""``jaxarc train --multirun`` with a stand-in for the training itself."""

import functools
import os
import subprocess
import sys
import time

import pytest
from run_command import run_command
from small_run import reports_of, small_run, write_small_tasks

from jaxarc.agents import Report
from jaxarc.cli.train_command import _say_where_it_stopped, expand
from jaxarc.datasets.training_pairs import load_pairs
from jaxarc.runs import RunFolder, TrainingDivergedError, TrainResult

_load_pairs_once = functools.cache(load_pairs)


@pytest.fixture
def trained(monkeypatch):
    """The experiments that came to be trained; a learning rate of 1 diverges, seed 9 is stopped by the user."""
    experiments = []

    def run(training, experiment, folder, on_report, should_stop, **_):
        experiments.append(experiment)
        if experiment.schedule.learning_rate == 1.0:
            raise TrainingDivergedError("a loss is not finite")
        reports = [
            Report(update, 100 * update, 2.0 * update, seed=seed, evaluation_solve_rate=0.25 * update)
            for update in (0, 1)
            for seed in experiment.training.seeds
        ]
        for report in reports:
            on_report(report)
        return TrainResult(state=None, reports=reports, compile_seconds=0.0, interrupted=experiment.training.seed == 9)

    monkeypatch.setattr("jaxarc.cli.train_command.run", run)
    monkeypatch.setattr("jaxarc.agents.editing_kind.load_pairs", _load_pairs_once)
    return experiments


def sweep(*overrides):
    result = run_command("train", "--multirun", "experiment=small_grids", *overrides)
    return result.exit_code, result.stdout


def test_every_combination_is_made_in_the_order_of_the_overrides():
    combinations = expand(["training.seed=0,1", "reward=editing", "schedule.learning_rate=range(1,3)"])
    assert combinations == [
        [f"training.seed={seed}", "reward=editing", f"schedule.learning_rate={rate}"]
        for seed in (0, 1)
        for rate in (1, 2)
    ]


def test_runs_follow_each_other_in_folders_of_their_own_below_one(tmp_path, trained):
    code, out = sweep(f"logging.run_root={tmp_path}", "training.seed=0,1,2", "logging.run_name=rates")
    assert code == 0
    assert [experiment.training.seed for experiment in trained] == [0, 1, 2]
    (folder,) = tmp_path.iterdir()
    assert folder.name.endswith("-rates-sweep")
    assert [path.name.split("-rates-")[1] for path in sorted(folder.iterdir())] == ["1", "2", "3"]
    assert "2 of 3: training.seed=1" in out
    assert out.count("25.0 %") == 6  # in the table of each run and in that of all
    assert f"Sweep folder: {folder}" in out


def test_a_run_that_diverges_does_not_end_the_sweep_but_its_exit_code_tells(tmp_path, trained):
    code, out = sweep(f"logging.run_root={tmp_path}", "schedule.learning_rate=1e-3,1.0,2e-3")
    assert code == 1
    assert [experiment.schedule.learning_rate for experiment in trained] == [1e-3, 1.0, 2e-3]
    assert "Diverged: a loss is not finite" in out
    assert out.count("diverged") == 1
    assert out.count(" done ") == 2


def test_a_stopped_run_ends_the_sweep_cleanly(tmp_path, trained):
    code, out = sweep(f"logging.run_root={tmp_path}", "training.seed=1,9,2")
    assert code == 0
    assert [experiment.training.seed for experiment in trained] == [1, 9]
    assert "stopped" in out


def test_a_sweep_goes_on_in_a_job_of_slurm_that_is_started_again(tmp_path, trained, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    choices = (f"logging.run_root={tmp_path}", "training.seed=0,9,1")
    sweep(*choices)
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    sweep(*choices)
    assert [experiment.training.seed for experiment in trained] == [0, 9, 9]
    assert len(list(tmp_path.iterdir())) == 1
    sweep(choices[0], "training.seed=2,3")
    sweep(*choices)  # by the same start
    assert [experiment.training.seed for experiment in trained[3:]] == [2, 3, 0, 9]
    assert len(list(tmp_path.iterdir())) == 3


def test_runs_side_by_side_are_those_of_one_after_the_other_and_a_killed_sweep_goes_on(tmp_path):
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache")}  # one compiles for all
    choices = small_run(write_small_tasks(tmp_path / "tasks"), 4, "training.seed=0,1,2", "checkpoint.min_seconds=0")
    command = [sys.executable, "-m", "jaxarc", "train", "--multirun", *choices]
    side_by_side = [*command, f"logging.run_root={tmp_path / 'two'}", "--shards", "2"]
    subprocess.run([*command, f"logging.run_root={tmp_path / 'one'}", "-q"], env=environment, check=True)
    with subprocess.Popen(side_by_side, env=environment) as process:
        while not list(tmp_path.glob("two/*/jobs/????????????*.json")):
            assert process.poll() is None
            time.sleep(0.1)
        process.kill()
    (folder,) = (tmp_path / "two").iterdir()
    goes_on = [*side_by_side, "--resume", folder]
    done = subprocess.run(goes_on, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.count(" done ") == 3
    first, second = runs_of(tmp_path / "one"), runs_of(tmp_path / "two")
    assert [reports_of(run) for run in first] == [reports_of(run) for run in second]
    assert len(second) == 3
    assert not (folder / "jobs").exists()


def runs_of(root):
    """The run folders of a sweep, in the order of their numbers."""
    configs = sorted(root.glob("*/*-small_grids-*/config.json"), key=lambda path: path.parent.name[-1])
    return [RunFolder(config.parent) for config in configs]


def test_shards_are_of_sweeps_and_only_a_sweep_goes_on_as_one(tmp_path, trained):
    for words, hint in (
        (["--shards", "2"], "--multirun"),
        (["--multirun", "training.seed=1,2", "--resume", tmp_path / "no"], "sweep"),
    ):
        done = run_command("train", "experiment=small_grids", *words)
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
        assert hint in done.stderr
    assert trained == []


@pytest.mark.parametrize("wrong", ["training.num_seeds=1,0", "training.seed=range(0)", "training.seed=interval(0,1)"])
def test_a_wrong_combination_is_found_before_the_first_run(tmp_path, trained, wrong):
    code, _ = sweep(f"logging.run_root={tmp_path}", wrong)
    assert code == 2
    assert trained == []
    assert not list(tmp_path.iterdir())


def test_several_processes_are_refused(tmp_path, trained):
    assert sweep(f"logging.run_root={tmp_path}", "parallel=multihost", "training.seed=1,2")[0] == 2
    assert trained == []


def test_seeds_side_by_side_are_reported_as_mean_and_spread(tmp_path, trained):
    _, out = sweep(f"logging.run_root={tmp_path}", "training.num_seeds=3,4")
    assert "3 agents learn side by side, seeds 0 to 2." in out
    assert "25.0 ± 0.0 %" in out
    assert "update 0/124  solved: evaluation 0 % (0-0)" in out


def test_a_sweep_that_is_stopped_says_in_one_line_how_far_it_came(tmp_path, trained, capfd):
    sweep(f"logging.run_root={tmp_path}", "training.seed=1,9,2")
    (folder,) = tmp_path.iterdir()
    assert capfd.readouterr().err == f"The sweep stopped: 2 of 3 runs are done; they are in {folder}\n"
    sweep(f"logging.run_root={tmp_path}", "training.seed=1,2")
    assert "stopped" not in capfd.readouterr().err


def test_a_sweep_that_a_signal_ends_before_anything_is_learned_leaves_no_folder(tmp_path, capfd):
    folder = tmp_path / "sweep"
    folder.mkdir()
    _say_where_it_stopped(folder, 0, 3)
    assert capfd.readouterr().err == "The sweep stopped: 0 of 3 runs are done\n"
    assert not folder.exists()
