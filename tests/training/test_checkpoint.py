import jax.numpy as jnp
import numpy as np
import pytest

from jaxarc.training.checkpoint import CheckpointError, load_checkpoint, read_config, save_checkpoint, write_whole

CONFIG = {"ppo": {"learning_rate": 0.004}, "training": {"seed": 3}}


def tree(offset=0.0):
    return {
        "weights": jnp.arange(6.0).reshape(2, 3) + offset,
        "count": jnp.int32(7),
        "key": jnp.array([1, 2], jnp.uint32),
    }


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "checkpoint.eqx"
    save_checkpoint(path, tree(), CONFIG)
    return path


def test_a_saved_tree_comes_back_bit_for_bit_with_its_config(saved):
    loaded = load_checkpoint(saved, tree(5.0))
    for name, array in tree().items():
        np.testing.assert_array_equal(loaded[name], array)
        assert loaded[name].dtype == array.dtype
    assert read_config(saved) == CONFIG


def test_nothing_but_the_checkpoint_is_left_behind(saved):
    assert [path.name for path in saved.parent.iterdir()] == ["checkpoint.eqx"]


@pytest.mark.parametrize("place", [-1, -100, 200])
def test_one_flipped_bit_is_found(saved, place):
    content = bytearray(saved.read_bytes())
    content[place] ^= 1
    saved.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"checkpoint\.eqx is damaged"):
        load_checkpoint(saved, tree())


def test_a_file_that_was_cut_short_is_found(saved):
    saved.write_bytes(saved.read_bytes()[:-20])
    with pytest.raises(CheckpointError, match="is damaged: its header promises"):
        load_checkpoint(saved, tree())


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 something else", b"jaxarc checkpoint 2\n{}\n"])
def test_a_foreign_file_is_refused(tmp_path, content):
    path = tmp_path / "other.eqx"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"other\.eqx is not a jaxarc checkpoint of format 1"):
        read_config(path)


def test_a_damaged_header_is_refused(tmp_path):
    path = tmp_path / "checkpoint.eqx"
    path.write_bytes(b"jaxarc checkpoint 1\n{not json\n")
    with pytest.raises(CheckpointError, match="header cannot be read"):
        read_config(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CheckpointError, match=r"cannot read the checkpoint .*nowhere\.eqx: No such file"):
        load_checkpoint(tmp_path / "nowhere.eqx", tree())


@pytest.mark.parametrize(
    "like",
    [
        {**tree(), "weights": jnp.zeros((3, 3))},
        {**tree(), "count": jnp.float32(7)},
        {name: array for name, array in tree().items() if name != "weights"},
    ],
    ids=["other shape", "other dtype", "fewer arrays"],
)
def test_a_checkpoint_of_another_configuration_is_refused(saved, like):
    with pytest.raises(CheckpointError, match="belongs to another configuration"):
        load_checkpoint(saved, like)


def test_a_write_that_fails_leaves_the_old_file_alone(saved, monkeypatch):
    before = saved.read_bytes()

    def fail(descriptor):
        raise OSError("no space left on device")

    monkeypatch.setattr("jaxarc.training.checkpoint.os.fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        write_whole(saved, b"half a file")
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["checkpoint.eqx"]
