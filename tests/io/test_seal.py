"""Objects of JSON with a checksum of themselves."""

import json

import pytest

from jaxarc.io.seal import SEAL, SealError, sealed, unsealed

FIELDS = {"name": "é", "numbers": [1, 2.5, None], "inner": {"b": 1, "a": [True]}}


def test_what_is_sealed_comes_back_through_json_in_any_order():
    content = json.loads(json.dumps(sealed(FIELDS)))
    assert unsealed(content) == FIELDS
    assert unsealed(dict(reversed(content.items()))) == FIELDS


@pytest.mark.parametrize("change", [{"name": "e"}, {"numbers": [1, 2.5]}, {"more": 1}, {SEAL: "0" * 16}, {SEAL: None}])
def test_a_change_is_noticed(change):
    with pytest.raises(SealError, match=r"not as it was written.*take 'sha256' out if it was changed on purpose"):
        unsealed({**sealed(FIELDS), **change})


def test_what_never_had_a_checksum_is_taken_as_it_is():
    assert unsealed(FIELDS) == FIELDS


def test_what_is_no_object_is_refused():
    with pytest.raises(SealError, match="no JSON object"):
        unsealed([1])
