"""The folder of a run, and the revision of the code that it notes."""

import errno
import json
import os
import shutil
import subprocess

import pytest
from small_run import LEARNABLE

from jaxarc.agents import Experiment, Report, read_metrics
from jaxarc.config import LoggingConfig, TrainingConfig
from jaxarc.runs import RunFolderError, create_run_folder
from jaxarc.runs.folder import MetricsFile, folder_of_this_job, git_revision, remove_unused


def experiment(root="runs", name="ppo", **training):
    return Experiment(LEARNABLE, training=TrainingConfig(**training), logging=LoggingConfig(str(root), name))


def test_the_folder_is_named_after_time_and_run_and_holds_the_whole_config(tmp_path):
    folder = create_run_folder(experiment(tmp_path / "runs", "first", seed=5))
    assert folder.path.parent == tmp_path / "runs"
    assert folder.path.name.endswith("-first")
    written = json.loads(folder.config.read_text())
    assert written["training"]["seed"] == 5
    assert written["agent"]["num_envs"] == 256
    assert written["environment"]["observation"]["reveal_target"] is True
    assert "jax" in written["versions"]


def test_reports_come_back_in_order(tmp_path):
    file = MetricsFile(tmp_path / "metrics.jsonl", Report)
    reports = [Report(0, 0, 0.0, train_solve_rate=0.0), Report(4, 64, 0.5, mean_return=-0.25, episodes=3)]
    file.append(reports[:1])
    file.append(reports[1:])
    assert read_metrics(file.path) == reports


def test_what_follows_the_lines_that_count_is_cut_off(tmp_path):
    file = MetricsFile(tmp_path / "metrics.jsonl", Report)
    reports = [Report(update, 0, 0.0, seed=seed) for update in (0, 4) for seed in (0, 1)]
    file.append(reports)
    file.path.write_bytes(file.path.read_bytes()[:-5])  # a killed process left half a line
    assert file.cut(2) == reports[:2] == read_metrics(file.path)
    assert file.cut(0) == read_metrics(file.path) == []


def test_a_lock_that_is_let_go_can_be_taken_again(tmp_path):
    folder = create_run_folder(experiment(tmp_path))
    with folder.lock(), pytest.raises(RunFolderError, match="another process is training in"), folder.lock():
        pass
    with folder.lock():
        pass


def test_a_job_that_slurm_starts_again_takes_its_run_from_the_earlier_start(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setattr("jaxarc.runs.folder._LAST_STEP", 0.1)
    earlier = create_run_folder(experiment(tmp_path, seed=1))
    create_run_folder(experiment(tmp_path, seed=2))
    assert (
        folder_of_this_job(experiment(tmp_path, seed=1)) is None
    )  # a second run of the same start is a run of its own
    with earlier.lock():
        monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
        assert folder_of_this_job(experiment(tmp_path, seed=3)) is None
        later = folder_of_this_job(experiment(tmp_path, seed=1))
        assert later == earlier
        with earlier.lock():
            earlier.require_claimed()
            monkeypatch.setenv("SLURM_RESTART_COUNT", "0")
            with pytest.raises(RunFolderError, match=r"goes on with .*slurm_job 17, restarts 1, .*; this one stops"):
                earlier.require_claimed()
            remove_unused(earlier)
            assert earlier.config.exists()


@pytest.mark.parametrize("fault", [errno.ENOLCK, errno.ENOTSUP, errno.EIO])
def test_a_disk_without_locks_has_the_claim_alone(fault, tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl", reason="no flock on this system")

    def refuse(*_):
        raise OSError(fault, os.strerror(fault))

    folder = create_run_folder(experiment(tmp_path))
    monkeypatch.setattr(fcntl, "flock", refuse)
    if fault == errno.EIO:
        with pytest.raises(OSError, match=os.strerror(fault)), folder.lock():
            pass
        return
    with folder.lock():
        folder.require_claimed()
        monkeypatch.setattr("jaxarc.runs.folder._DRAWN", "another")  # process, which starts here
        with folder.lock():
            folder.require_claimed()
        monkeypatch.undo()
        with pytest.raises(RunFolderError, match="another process goes on with"):
            folder.require_claimed()


def test_another_job_does_not_take_a_run(tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    folder = create_run_folder(experiment(tmp_path))
    with folder.lock():
        monkeypatch.setenv("SLURM_JOB_ID", "18")
        monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
        assert folder_of_this_job(experiment(tmp_path)) is None
        with pytest.raises(RunFolderError, match="another process is training in"), folder.lock():
            pass
        assert not folder.is_claimed


def test_a_new_folder_of_a_run_that_was_refused_is_removed(tmp_path):
    folder = create_run_folder(experiment(tmp_path))
    (folder.path / "wandb").mkdir()
    remove_unused(folder)
    assert not list(tmp_path.iterdir())


def test_a_new_folder_with_a_report_of_the_untrained_agent_alone_is_removed(tmp_path):
    folder = create_run_folder(experiment(tmp_path))
    MetricsFile(folder.metrics, Report).append([Report(0, 0, 0.0, seed=seed) for seed in (0, 1)])
    remove_unused(folder)
    assert not list(tmp_path.iterdir())


def test_a_folder_in_which_something_learned_was_reported_stays(tmp_path):
    folder = create_run_folder(experiment(tmp_path))
    MetricsFile(folder.metrics, Report).append([Report(0, 0, 0.0), Report(4, 256, 0.1)])
    remove_unused(folder)
    assert {path.name for path in folder.path.iterdir()} == {"config.json", "metrics.jsonl", ".writer"}


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A repository with one commit, out of reach of the user's own git settings."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", "/dev/null")
    (tmp_path / "file").write_text("one\n")
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    for arguments in (["init", "-q"], ["add", "file"], [*identity, "commit", "-q", "-m", "first"], ["tag", "v1"]):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    return tmp_path


def test_a_commit_is_named_whole_and_changed_files_are_reported(repository):
    revision = git_revision(repository)
    assert revision is not None
    assert len(revision) == 40
    (repository / "file").write_text("two\n")
    assert git_revision(repository) == f"{revision}-dirty"


def test_without_a_repository_there_is_no_revision(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_revision(tmp_path) is None
