"""Objects of JSON with a checksum of themselves."""

import json

import pytest

from jaxarc.files import CHECKSUM, ChecksumError, add_checksum, verify_checksum, without_checksum

FIELDS = {"name": "é", "numbers": [1, 2.5, None], "inner": {"b": 1, "a": [True]}}


def test_fields_with_a_checksum_come_back_through_json_in_any_order():
    content = json.loads(json.dumps(add_checksum(FIELDS)))
    assert verify_checksum(content) == FIELDS
    assert verify_checksum(dict(reversed(content.items()))) == FIELDS


@pytest.mark.parametrize(
    "change", [{"name": "e"}, {"numbers": [1, 2.5]}, {"more": 1}, {CHECKSUM: "0" * 16}, {CHECKSUM: None}]
)
def test_a_change_is_noticed(change):
    with pytest.raises(ChecksumError, match="'sha256' does not match its other fields"):
        verify_checksum({**add_checksum(FIELDS), **change})


def test_what_never_had_a_checksum_is_taken_as_it_is():
    assert verify_checksum(FIELDS) == FIELDS


def test_what_is_no_object_is_refused():
    with pytest.raises(ChecksumError, match="no JSON object"):
        verify_checksum([1])


def test_a_checksum_that_is_not_compared_is_left_out():
    assert without_checksum({**FIELDS, CHECKSUM: "of other fields"}) == FIELDS
