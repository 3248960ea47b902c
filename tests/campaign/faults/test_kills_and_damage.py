"""A portion of ``make kills`` and ``make corrupt``."""

import random

import pytest

from campaign.faults.corruption import damage_often, make_kinds
from campaign.faults.kills import SHARES, Killing, workshop

KILLS = {"play": 1, "evaluate": 1, "training": 6}  # those that take seconds to begin; one chain; 2 of the others


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    with workshop(tmp_path_factory.mktemp("shared")) as made:
        yield made


@pytest.mark.parametrize("name", SHARES)
def test_what_is_killed_and_goes_on_ends_as_what_is_left_alone(make, name, tmp_path):
    killing = Killing(make(name), tmp_path, random.Random(name))
    findings = killing.kill(KILLS.get(name, 2))
    assert killing.kills == KILLS.get(name, 2)
    assert not findings, "\n".join(findings)


NUM_KINDS = 7


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAXARC_CACHE", "")  # set for a while, and put back at the end
        yield make_kinds(tmp_path_factory.mktemp("kinds"))


@pytest.mark.parametrize("place", range(NUM_KINDS))
def test_a_damaged_file_is_refused_by_name_or_made_anew(kinds, place):
    assert len(kinds) == NUM_KINDS
    outcomes, findings = damage_often(kinds[place], 100, random.Random(place))
    assert not findings, "\n".join([kinds[place].name, *findings])
    assert outcomes["refused"] + outcomes["made anew"] >= 10
