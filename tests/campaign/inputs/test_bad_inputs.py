"""A small portion of the fuzzing of readers, without its guide: right inputs, changed by hypothesis."""

import warnings

import pytest
from hypothesis import HealthCheck, given, settings

from campaign.inputs.input_feeding import MAKERS, feed, wrong_inputs

NUM_INPUTS = 60
FEW = {
    "composed_overrides": 5,
    "play_requests": 40,
    "config_file": 40,
    "override": 40,
    "sweep": 40,
    "checked_state": 40,
}


@pytest.mark.parametrize("name", list(MAKERS))
def test_every_reader_gives_an_object_or_a_documented_error(name, tmp_path):
    target = MAKERS[name](tmp_path)
    assert [feed(target, seed) for seed in target.seeds] == [None] * len(target.seeds)

    @settings(max_examples=FEW.get(name, NUM_INPUTS), suppress_health_check=list(HealthCheck))
    @given(wrong_inputs(target))
    def check(content):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            finding = feed(target, content)
        assert finding is None, f"{finding.place}: {finding.what}"

    check()
