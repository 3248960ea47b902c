"""Right inputs of every reader, changed by hypothesis: 60 of each, or as many as the variable INPUTS says."""

import os
import warnings

import pytest
from hypothesis import HealthCheck, given, settings

from campaign.inputs.input_feeding import MAKERS, feed, wrong_inputs

NUM_INPUTS = int(os.environ.get("INPUTS", "60"))
SLOW = {"composed_overrides": 12}  # so many times fewer, because each takes long


@pytest.mark.parametrize("name", list(MAKERS))
def test_every_reader_gives_an_object_or_a_documented_error(name, tmp_path):
    target = MAKERS[name](tmp_path)
    assert [feed(target, seed) for seed in target.seeds] == [None] * len(target.seeds)

    @settings(max_examples=-(-NUM_INPUTS // SLOW.get(name, 1)), suppress_health_check=list(HealthCheck))
    @given(wrong_inputs(target))
    def check(content):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            finding = feed(target, content)
        assert finding is None, f"{finding.place}: {finding.what}"

    check()
