"""A run is loaded while its training saves and removes checkpoints: each load is of one checkpoint, and none fails."""

import dataclasses
import json
import shutil
import threading
from pathlib import Path

import jax
import numpy as np
import pytest

import jaxarc
from jaxarc.agents.saved_agent import policy_shapes
from jaxarc.files import TRAINED
from jaxarc.runs import CheckpointError, Checkpoints, RunFolder
from jaxarc.runs.checkpoint import CheckpointRecord
from jaxarc.runs.kind import SavedRun


@pytest.fixture
def training(tmp_path):
    """Return how to let a thread write checkpoints into a run; update ``u`` has weights and a step limit of ``u``."""
    path = Path(shutil.copytree(TRAINED / "ladder_l2_small", tmp_path / "run"))
    saved = SavedRun.open(RunFolder(path), "last")
    ((part, like),) = policy_shapes(saved.experiment, saved.experiment.environment).items()
    shutil.rmtree(path / "checkpoints")
    checkpoints = RunFolder(path).checkpoints
    ended = threading.Event()

    def save(update):
        policy = jax.tree.map(lambda leaf: np.full(leaf.shape, update, leaf.dtype), like)
        for name in reversed(part.split(".")):
            policy = {name: policy}
        config = json.loads(json.dumps(saved.checkpoint.record.config))
        config["environment"]["environment"]["max_episode_steps"] = update
        score = [0.1, 0.9, 0.2, 0.95][update % 4] + update / 1e6  # often it is a new best one
        checkpoints.save(
            policy, dataclasses.replace(saved.checkpoint.record, update=update, score=score, config=config)
        )
        checkpoints.keep(last=1, best=1)

    def write(pause_s):
        update = 1
        while not ended.wait(pause_s):
            update += 1
            save(update)

    def start(pause_s):
        save(1)
        threads.append(threading.Thread(target=write, args=[pause_s]))
        threads[0].start()
        return path

    threads = []
    yield start
    ended.set()
    for thread in threads:
        thread.join()


@pytest.mark.parametrize(("num_loads", "pause_s"), [(20, 0.02), (500, 0.25)])
def test_each_load_is_of_one_checkpoint(training, num_loads, pause_s):
    path = training(pause_s)
    seen = set()
    for index in range(num_loads):
        agent = jaxarc.load_agent(path, checkpoint=("best", "last")[index % 2])
        (weight,) = {float(leaf.ravel()[0]) for leaf in jax.tree.leaves(agent.policy)}
        assert agent.config.environment.max_episode_steps == weight
        seen.add(weight)
    assert len(seen) > 2, "the writer wrote nothing meanwhile"


@pytest.mark.parametrize("which", ["newest", "best"])
def test_what_a_training_removes_meanwhile_is_chosen_anew(tmp_path, monkeypatch, which):
    checkpoints = Checkpoints(tmp_path)
    save = lambda update: checkpoints.save(
        {"weights": np.full(3, update)}, CheckpointRecord(update, 0, 0.0, update / 10, {}, {})
    )
    for update in (1, 2):
        save(update)
    updates = Checkpoints.updates

    def list_and_remove(self):
        found = updates(self)
        if 2 in found:
            save(3)
            shutil.rmtree(self.at(2))
        return found

    monkeypatch.setattr(Checkpoints, "updates", list_and_remove)
    chosen = getattr(checkpoints, which)()
    shutil.rmtree(tmp_path)  # it was read whole
    assert (chosen.record.update, chosen.load({"weights": np.zeros(3, int)})["weights"].tolist()) == (3, [3, 3, 3])


@pytest.mark.parametrize("entry", ["file", "dangling link"])
def test_an_entry_that_is_no_checkpoint_is_no_endless_search(tmp_path, entry):
    if entry == "file":
        (tmp_path / "7").touch()
    else:
        (tmp_path / "7").symlink_to(tmp_path / "nothing")
    for choose in (Checkpoints(tmp_path).newest, Checkpoints(tmp_path).best):
        with pytest.raises(CheckpointError, match=r"no checkpoint .*7"):
            choose()


def test_a_part_is_told_from_one_whose_name_begins_alike(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    both = {"policy": np.ones(2), "policy_old": np.zeros(2)}
    checkpoints.save(both, CheckpointRecord(1, 0, 0.0, None, {}, {}))
    chosen = checkpoints.newest()
    assert chosen is not None
    assert chosen.load(np.ones(2), within="policy").tolist() == [1, 1]
