"""A small portion of the fuzzing of readers, without its guide: right inputs, changed at random."""

import random
import warnings
import zlib

import pytest

from campaign.inputs.input_mutation import mutate
from campaign.inputs.input_target import feed
from campaign.inputs.input_targets import MAKERS

NUM_INPUTS = 300
FEW = {"composed_overrides": 5, "play_requests": 60, "config_file": 60, "override": 60, "sweep": 60, "sealed_state": 60}


@pytest.mark.parametrize("name", list(MAKERS))
def test_every_reader_gives_an_object_or_a_documented_error(name, tmp_path):
    target = MAKERS[name](tmp_path)
    random_ = random.Random(zlib.crc32(name.encode()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs = [
            *target.seeds,
            *(mutate(random_.choice(target.seeds), random_, target.words) for _ in range(FEW.get(name, NUM_INPUTS))),
        ]
        found = [finding for content in inputs if (finding := feed(target, content))]
    assert not found, f"{found[0].place}: {found[0].what}: {found[0].content[:300]!r}"
