import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest
from small_run import same

from jaxarc.runs import CheckpointError, load_checkpoint
from jaxarc.runs.checkpoint import CheckpointRecord, DamagedCheckpointError, read_record, save_checkpoint

RECORD = CheckpointRecord(7, 3, 1.5, 0.25, {"training": {"seed": 3}}, {"jax": "1"})

FEW_FILES = """
import os, resource, sys, threading
from pathlib import Path
import jax, numpy as np
from jaxarc.runs.checkpoint import CheckpointRecord, load_checkpoint, save_checkpoint
jax.devices()
tree = {f"array {i}": np.full((9, 9), i) for i in range(200)}
count = lambda folder: len(os.listdir(f"/proc/self/{folder}"))
threads, files = count("task"), count("fd")
resource.setrlimit(resource.RLIMIT_NOFILE, (files + 4, files + 4))
save_checkpoint(Path(sys.argv[1]), tree, CheckpointRecord(1, 1, 0.0, None, {}, {}))
jax.tree.map(np.testing.assert_array_equal, load_checkpoint(Path(sys.argv[1]), tree), tree)
assert (count("task"), count("fd")) == (threads, files)
"""


def tree(offset=0.0):
    return {
        "policy": {"weights": jnp.arange(6.0).reshape(2, 3) + offset, "empty": jnp.zeros((2, 0), jnp.int8)},
        "steps": (jnp.int32(7), jnp.array([True, False])),
        "key": jnp.array([1, 2**31], jnp.uint32),
    }


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "7"
    save_checkpoint(path, tree(), RECORD)
    return path


def files_of(path):
    return [file for file in sorted(path.rglob("*")) if file.is_file()]


def test_a_saved_tree_comes_back_bit_for_bit_with_its_record(saved):
    assert same(load_checkpoint(saved, jax.eval_shape(tree)), tree())
    assert read_record(saved) == RECORD


def test_a_part_of_a_tree_comes_back_alone(saved):
    assert same(load_checkpoint(saved, tree(5.0)["policy"], within="policy"), tree()["policy"])


def test_a_save_opens_few_files_and_starts_no_thread(tmp_path):
    """A run saves for weeks, maybe on a crowded machine with low limits."""
    command = [sys.executable, "-c", FEW_FILES, str(tmp_path / "1")]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "JAX_PLATFORMS": "cpu"})
    assert done.returncode == 0, done.stderr


def test_a_file_that_is_missing_or_cut_short_is_found(saved):
    for file in files_of(saved):
        content = file.read_bytes()
        file.write_bytes(content[:-5])
        with pytest.raises(DamagedCheckpointError, match="is damaged"):
            load_checkpoint(saved, tree())
        file.unlink()
        with pytest.raises(DamagedCheckpointError, match="is damaged"):
            load_checkpoint(saved, tree())
        file.write_bytes(content)


def test_a_checkpoint_of_another_format_is_refused(saved, monkeypatch):
    monkeypatch.setattr("jaxarc.runs.checkpoint._FORMAT", 9)
    with pytest.raises(CheckpointError, match=r"format 5\b.* format 9\b"):
        read_record(saved)


@pytest.mark.parametrize(
    ("like", "complaint"),
    [
        ({**tree(), "key": jnp.zeros((3,), jnp.uint32)}, r"key: saved uint32\[2\], wanted .*3"),
        ({**tree(), "key": jnp.zeros((2,), jnp.int32)}, r"wanted int32\[2\]"),
        ({name: array for name, array in tree().items() if name != "key"}, "key: .*wanted nothing"),
        ({**tree(), "more": jnp.int32(1)}, "more: saved nothing"),
    ],
    ids=["other shape", "other dtype", "fewer arrays", "more arrays"],
)
def test_a_checkpoint_of_another_configuration_is_refused(saved, like, complaint):
    with pytest.raises(CheckpointError, match=complaint):
        load_checkpoint(saved, like)


def test_a_checkpoint_that_is_half_written_has_no_name_yet(tmp_path, monkeypatch):
    def fail(*_):
        raise OSError("no space left on device")

    monkeypatch.setattr("jaxarc.runs.checkpoint._digests", fail)
    with pytest.raises(OSError, match="no space left"):
        save_checkpoint(tmp_path / "7", tree(), RECORD)
    assert not (tmp_path / "7").exists()
    monkeypatch.undo()
    save_checkpoint(tmp_path / "7", tree(), RECORD)
    assert [path.name for path in tmp_path.iterdir()] == ["7"]
