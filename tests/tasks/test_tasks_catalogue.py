"""Datasets by name, version and subset; files and folders by path; datasets of one's own."""

import json
from pathlib import Path

import pytest
from small_tasks import TASK

from jaxarc.datasets import (
    DatasetVersion,
    TaskSet,
    UnknownDatasetError,
    catalogue,
    dataset_names,
    find_dataset,
    load_tasks,
    register_dataset,
)
from jaxarc.datasets.installed import install, installed_path
from jaxarc.datasets.published import find_mismatches
from jaxarc.tasks import RawTask, TaskFormatError

ARC_AGI = ["arc-agi-1/training", "arc-agi-1/evaluation", "arc-agi-2/training", "arc-agi-2/evaluation"]


def raw(task_id, color=1, concept=""):
    return RawTask(task_id, (([[color]], [[2]]),), (([[color]], [[2]]),), concept=concept)


@pytest.fixture
def registry(monkeypatch):
    """Forget afterwards what a test registers and loads."""
    monkeypatch.setattr(catalogue, "_REGISTERED", {})
    monkeypatch.setattr(catalogue, "_LOADED", {})


@pytest.mark.parametrize("name", ARC_AGI)
def test_every_version_holds_what_is_pinned(name):
    for version in find_dataset(name).versions:
        tasks = load_tasks(f"{name}@{version.name}")
        assert version.num_tasks == len(tasks)
        assert find_mismatches(version, tasks) == []


def test_plain_name_means_the_default_version_and_is_read_once():
    assert load_tasks("arc-agi-2/evaluation", cache=False) is not load_tasks("arc-agi-2/evaluation")
    assert load_tasks("arc-agi-2/evaluation@f3283f7") is load_tasks("arc-agi-2/evaluation")
    assert load_tasks("arc-agi-2/evaluation@kaggle2025").name == "arc-agi-2/evaluation@kaggle2025"


def test_contradiction_with_the_pins_is_named():
    version = find_dataset("arc-agi-2/evaluation").version()
    other = load_tasks("arc-agi-2/evaluation@kaggle2025")
    found = find_mismatches(version, other)
    assert [complaint.partition(", found")[0].partition("expected ")[2] for complaint in found][:2] == [
        "359 train pairs",
        "167 test pairs",
    ]
    assert f"expected {version.digest} as digest" in found[-1]


def test_name_may_choose_tasks():
    whole = load_tasks("arc-agi-1/training")
    assert load_tasks("arc-agi-1/training:first 3").task_ids == whole.task_ids[:3]
    assert load_tasks("arc-agi-1/training@kaggle2019:ids=007bbfb7+00d62c1b").task_ids == ("007bbfb7", "00d62c1b")
    small = load_tasks("arc-agi-1/training:max_side=5,same_shape,first 2")
    assert small.task_ids == whole.select(max_side=5, same_shape=True, first=2).task_ids


@pytest.mark.parametrize("as_path", [str, lambda path: path])
def test_path_is_read_again_on_every_call(tmp_path, as_path):
    (tmp_path / "a.json").write_text(json.dumps(TASK))
    assert load_tasks(as_path(tmp_path)).task_ids == ("a",)
    (tmp_path / "b.json").write_text(json.dumps(TASK))
    assert load_tasks(as_path(tmp_path)).task_ids == ("a", "b")
    (tmp_path / "b.json").write_text("{")
    with pytest.raises(TaskFormatError, match=r"b\.json: not JSON"):
        load_tasks(as_path(tmp_path))


def test_path_takes_clauses_and_one_that_exists_whole_comes_first(tmp_path):
    odd = tmp_path / "me@home:first 1"
    odd.mkdir()
    for name in "ab":
        (odd / f"{name}.json").write_text(json.dumps(TASK))
    assert load_tasks(str(odd)).task_ids == ("a", "b")
    plain = tmp_path / "me@home"
    odd.rename(plain)
    assert load_tasks(f"{plain}:first 1").task_ids == ("a",)
    with pytest.raises(UnknownDatasetError, match="is a path, and files have no version 'x'"):
        load_tasks(f"{plain}@x")
    with pytest.raises(FileNotFoundError):
        load_tasks(Path(f"{plain}:first 1"))


@pytest.mark.parametrize("name", ["arc-agi-1/trainin", "no/such/folder", "", "no:first 10", "no@1"])
def test_unknown_name_lists_the_known_ones(name):
    with pytest.raises(UnknownDatasetError) as caught:
        load_tasks(name)
    message = str(caught.value)
    assert message.startswith(f"no dataset, file or folder {name!r}")
    assert all(known in message for known in (*ARC_AGI, "concept-arc/corpus", "mini-arc", "procedural/<rule>"))


def test_parts_of_concept_arc_are_chosen_from_the_installed_set():
    tasks = [raw("Copy1", 1, "Copy"), raw("CopyMinimal", 2, "Copy"), raw("AboveBelow1", 3, "AboveBelow")]
    install(TaskSet("concept-arc", tuple(tasks)), "concept-arc")
    assert load_tasks("concept-arc").task_ids == ("Copy1", "CopyMinimal", "AboveBelow1")
    assert load_tasks("concept-arc/corpus").task_ids == ("Copy1", "AboveBelow1")
    assert load_tasks("concept-arc/minimal").task_ids == ("CopyMinimal",)
    for spelling in ("AboveBelow", "above-below", "above_below", "ABOVE BELOW"):
        assert load_tasks(f"concept-arc/corpus:concept={spelling}").task_ids == ("AboveBelow1",)


def test_imported_set_is_found_by_name_and_read_again_when_it_changes():
    assert "lab/easy" not in dataset_names()
    install(TaskSet("x", (raw("one"),)), "lab/easy")
    assert "lab/easy" in dataset_names()
    assert load_tasks("lab/easy").task_ids == ("one",)
    install(TaskSet("x", (raw("two"),)), "lab/easy")
    assert load_tasks("lab/easy").task_ids == ("two",)
    installed_path("lab/easy").write_text("{")
    with pytest.raises(TaskFormatError, match="damaged"):
        load_tasks("lab/easy")


def test_dataset_of_ones_own_is_loaded_by_name_once(registry):
    calls = []

    def load():
        calls.append(1)
        return TaskSet("anything", (raw("mine"), raw("other")))

    register_dataset("lab/mine", load, description="two tasks", version=DatasetVersion(num_tasks=2))
    assert not calls
    assert "lab/mine" in dataset_names()
    assert load_tasks("lab/mine:first 1").task_ids == ("mine",)
    assert load_tasks("lab/mine").name == "lab/mine"
    assert len(calls) == 1
    assert find_mismatches(find_dataset("lab/mine").version(), load_tasks("lab/mine")) == []


def test_name_that_is_taken_or_wrong_cannot_be_registered(registry):
    load = lambda: TaskSet("x", (raw("mine"),))
    register_dataset("mine", load)
    with pytest.raises(ValueError, match=r"'mine'.*replace=True"):
        register_dataset("mine", load)
    assert load_tasks("mine").task_ids == ("mine",)
    register_dataset("mine", lambda: TaskSet("x", (raw("new"),)), replace=True)
    assert load_tasks("mine").task_ids == ("new",)
    for name in ("arc-agi-1/training", "arc-agi-1/mine", "concept-arc/mine", "procedural/mine"):
        with pytest.raises(ValueError, match="among jaxarc's own"):
            register_dataset(name, load, replace=True)
    for name in ("", "a b", "a@1", "a:first", "../a", "a/b/c"):
        with pytest.raises(ValueError, match="cannot name a task set"):
            register_dataset(name, load)


def test_loader_must_return_a_task_set(registry):
    register_dataset("wrong", lambda: [raw("mine")])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="must return a TaskSet, got list"):
        load_tasks("wrong")


def test_endless_tasks_are_shown_by_a_sample():
    tasks = load_tasks("procedural/gravity:first 3")
    assert len(tasks) == 3
    assert len(load_tasks("procedural/gravity")) == 16
    assert max(tasks.max_grid_shape) <= 10
