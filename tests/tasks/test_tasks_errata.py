"""Reported faults: each names a task that is there, and is gone where it was corrected."""

import numpy as np
import pytest

from jaxarc.datasets import known_issues, load_tasks
from jaxarc.datasets.published import ERRATA

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
