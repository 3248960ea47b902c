"""Each kind of work is killed a few times; ``make kills`` does it 200 times. Training has tests of its own."""

import random

import pytest

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


def test_work_that_loses_what_it_told_of_is_found_out(tmp_path):
    with pytest.raises(AssertionError, match="something is lost"):
        Killing(Forgetful(), tmp_path, random.Random(0))


def test_all_kills_are_shared_out():
    assert sum(shared(200, list(SHARES)).values()) == 200
    assert shared(2, ["play"]) == {"play": 2}
