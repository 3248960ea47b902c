"""Datasets by name and by path."""

import json

import pytest

from jaxarc.tasks import UnknownDatasetError, dataset_names, load_tasks

TASK = {"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[1]], "output": [[2]]}]}


def test_named_dataset_is_read_once():
    assert load_tasks("arc-agi-2/evaluation") is load_tasks("arc-agi-2/evaluation")


def test_set_is_called_by_its_name():
    assert load_tasks("arc-agi-2/evaluation").name == "arc-agi-2/evaluation"


@pytest.mark.parametrize("as_path", [str, lambda path: path])
def test_path_is_read_again_on_every_call(tmp_path, as_path):
    (tmp_path / "a.json").write_text(json.dumps(TASK))
    assert load_tasks(as_path(tmp_path)).task_ids == ("a",)
    (tmp_path / "b.json").write_text(json.dumps(TASK))
    assert load_tasks(as_path(tmp_path)).task_ids == ("a", "b")


@pytest.mark.parametrize("name", ["arc-agi-1/trainin", "arc-agi-1", "no/such/folder", ""])
def test_unknown_name_lists_the_known_ones(name):
    with pytest.raises(UnknownDatasetError) as caught:
        load_tasks(name)
    message = str(caught.value)
    assert message.startswith(f"no dataset, file or folder {name!r}")
    assert all(known in message for known in dataset_names())


def test_unknown_name_names_the_nearest_first():
    with pytest.raises(KeyError, match="did you mean 'arc-agi-1/training'"):
        load_tasks("arc-agi-1/trainin")
