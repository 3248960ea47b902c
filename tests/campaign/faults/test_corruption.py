"""A hundred damages of every kind of file; ``make corrupt`` makes a thousand of each."""

import json
import random

import pytest

from campaign.faults.corruption import Kind, damage_often, make_kinds

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
