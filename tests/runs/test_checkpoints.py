import dataclasses

import jax.numpy as jnp
import pytest

from jaxarc.runs import Checkpoints, DamagedCheckpointWarning
from jaxarc.runs.checkpoint import CheckpointRecord

RECORD = CheckpointRecord(0, 0, 0.0, None, {}, {})


@pytest.fixture
def checkpoints(tmp_path):
    return Checkpoints(tmp_path / "checkpoints")


def save(checkpoints, update, rate=None):
    record = dataclasses.replace(RECORD, update=update, score=rate)
    checkpoints.save({"weights": jnp.full(3, update)}, record)


def damage(checkpoints, update):
    file = checkpoints.at(update) / "arrays.npz"
    file.write_bytes(file.read_bytes()[1:])


def test_the_newest_and_the_best_stay_and_of_equal_ones_the_later(checkpoints):
    for update, rate in ((2, 0.5), (4, 0.75), (6, None), (8, 0.75), (10, 0.25), (12, 0.5)):
        save(checkpoints, update, rate)
        checkpoints.keep(last=2, best=1)
    assert checkpoints.updates() == [8, 10, 12]
    assert checkpoints.newest().record.update == 12
    assert checkpoints.best().record.update == 8


def test_where_nothing_was_measured_the_best_is_the_newest(checkpoints):
    for update in (2, 10):
        save(checkpoints, update)
    assert checkpoints.best().record.update == 10


def test_a_damaged_one_is_named_and_the_one_before_it_used(checkpoints):
    for update, rate in ((2, 0.5), (4, 0.25), (6, 0.75)):
        save(checkpoints, update, rate)
    damage(checkpoints, 6)
    with pytest.warns(DamagedCheckpointWarning, match="6 is damaged"):
        assert checkpoints.newest().record.update == 4
    with pytest.warns(DamagedCheckpointWarning, match="6 is damaged"):
        assert checkpoints.best().record.update == 2


def test_what_is_to_be_learned_again_goes_with_what_a_killed_process_left(checkpoints):
    for update in (2, 4, 6):
        save(checkpoints, update)
    (checkpoints.path / ".8.part").mkdir(parents=True)
    (checkpoints.path / ".1.removed").mkdir()
    (checkpoints.path / ".DS_Store").touch()  # what other programs leave is not ours
    assert checkpoints.updates() == [2, 4, 6]
    checkpoints.remove_after(4)
    assert sorted(path.name for path in checkpoints.path.iterdir()) == [".DS_Store", "2", "4"]
