"""Commands keep what they compile for later commands, unless that is refused or impossible."""

import json
import os
import subprocess
import sys

import pytest
from small_tasks import TASK

from jaxarc.native.library import native_library

PLAY = ["--num-envs", "2", "--steps", "2", "--repeats", "1", "--cores", "1"]


@pytest.fixture
def rollout(tmp_path):
    native_library()  # built, so that no command says that it builds it
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "one.json").write_text(json.dumps(TASK))

    def rollout(*options):
        command = [sys.executable, "-m", "jaxarc", *options, "rollout", *PLAY, str(tmp_path / "tasks")]
        environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
        environment |= {"JAXARC_NO_CACHE": "0", "XDG_CACHE_HOME": str(tmp_path / "cache")}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
        assert done.returncode == 0, done.stderr
        # XLA of jaxlib 0.8 logs features of the processor that it asked LLVM for itself.
        return "".join(line for line in done.stderr.splitlines(True) if " cpu_aot_loader.cc:" not in line)

    return rollout


def test_the_second_command_compiles_nothing(rollout, tmp_path):
    assert not rollout("--no-cache")
    assert not (tmp_path / "cache").exists()
    assert not rollout()
    folder = tmp_path / "cache" / "jaxarc" / "compiled"
    programs = {path.name for path in folder.glob("*-cache")}
    assert len(programs) > 1
    assert not rollout()
    assert {path.name for path in folder.glob("*-cache")} == programs


def test_a_folder_that_cannot_be_written_costs_one_warning(rollout, tmp_path):
    (tmp_path / "cache").write_text("a file")
    (warning,) = rollout().strip().splitlines()
    assert warning.startswith("warning: ")
    assert str(tmp_path / "cache") in warning
    assert "--no-cache" in warning
