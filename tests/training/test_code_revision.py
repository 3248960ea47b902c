import shutil
import subprocess

import pytest

from jaxarc.training.run_folder import git_revision


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


def test_a_commit_is_named_whole_and_changed_files_are_told(repository):
    revision = git_revision(repository)
    assert revision is not None
    assert len(revision) == 40
    (repository / "file").write_text("two\n")
    assert git_revision(repository) == f"{revision}-dirty"


def test_without_a_repository_there_is_no_revision(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert git_revision(tmp_path) is None


def test_without_git_there_is_no_revision(repository, monkeypatch):
    monkeypatch.setenv("PATH", str(repository))
    assert git_revision(repository) is None
