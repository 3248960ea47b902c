"""A portion of ``make kills`` and ``make corrupt``; kills of training have tests of their own."""

import json
import random

import pytest

from campaign.faults.corruption import Kind, damage_often, make_kinds
from campaign.faults.kills import SHARES, Killing, shared, workshop

KILLS = {"play": 1, "evaluate": 1, "replay": 1}  # those that take seconds to begin; 2 of the others
NAMES = [name for name in SHARES if name != "training"]


@pytest.fixture(scope="module")
def make(tmp_path_factory):
    with workshop(tmp_path_factory.mktemp("shared")) as made:
        yield made


@pytest.mark.parametrize("name", NAMES)
def test_what_is_killed_and_goes_on_ends_as_what_is_left_alone(make, name, tmp_path):
    killing = Killing(make(name), tmp_path, random.Random(name))
    tally = killing.kill(KILLS.get(name, 2))
    assert tally.kills == KILLS.get(name, 2)
    assert not tally.findings, "\n".join(tally.findings)


class Forgetful:
    """Work that tells of what it has not saved."""

    name = "forgetful"

    def run(self, folder, tell):
        for number in range(20):
            tell(str(number))
            (folder / "file").write_text(str(number - 1))

    def check(self, folder, told):
        there = (folder / "file").read_text() if (folder / "file").exists() else "-1"
        assert int(there) >= max(map(int, told), default=-1), "something is lost"

    def result(self, folder):
        return {"file": (folder / "file").read_text()}


def test_work_that_loses_what_it_reported_is_found_out(tmp_path):
    with pytest.raises(AssertionError, match="something is lost"):
        Killing(Forgetful(), tmp_path, random.Random(0))


def test_all_kills_are_shared_out():
    assert sum(shared(200, list(SHARES)).values()) == 200
    assert shared(2, ["play"]) == {"play": 2}


NUM_KINDS = 9


@pytest.fixture(scope="module")
def kinds(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAXARC_CACHE", "")  # set for a while, and put back at the end
        yield make_kinds(tmp_path_factory.mktemp("kinds"))


@pytest.mark.parametrize("place", range(NUM_KINDS))
def test_a_damaged_file_is_refused_by_name_or_made_anew(kinds, place):
    assert len(kinds) == NUM_KINDS
    tally = damage_often(kinds[place], 100, random.Random(place))
    assert not tally.findings, "\n".join([tally.name, *tally.findings])


def test_a_reader_that_notices_nothing_is_found_out(tmp_path):
    (tmp_path / "file.json").write_text(json.dumps({"number": 12345}))
    read = lambda: (tmp_path / "file.json").read_bytes()
    tally = damage_often(Kind("careless", tmp_path, read), 10, random.Random(0))
    assert len(tally.findings) == 10
    assert "other contents are read" in tally.findings[0]
    assert read() == b'{"number": 12345}'


def test_a_reader_that_fails_without_a_word_is_found_out(tmp_path):
    (tmp_path / "file.json").write_text(json.dumps({"number": 12345}))

    def read():
        text = (tmp_path / "file.json").read_bytes()
        if text != b'{"number": 12345}':
            raise KeyError("number")
        return text

    tally = damage_often(Kind("clumsy", tmp_path, read, (ValueError,)), 5, random.Random(0))
    assert "a reader fails with KeyError" in tally.findings[0]
    tally = damage_often(Kind("nameless", tmp_path, read, (KeyError,)), 5, random.Random(0))
    assert "no file is named by" in tally.findings[0]
