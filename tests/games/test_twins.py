"""Five games show, frame by frame, what the same games show that are written with arcengine."""

import importlib.util
import json
import sys

import pytest
from games.record_twins import KEPT, LENGTHS, TWINS, our_digests, play_twin

KEPT_MARKS = json.loads(KEPT.read_text())


@pytest.mark.parametrize("name", TWINS)
def test_frames_states_and_levels_are_those_of_arcengine(name):
    kept = KEPT_MARKS[name]
    assert our_digests(name, kept["solutions"], *LENGTHS["short"]) == kept["short"]


@pytest.mark.parametrize("name", TWINS)
def test_many_more_actions_show_what_arcengine_shows(name):
    kept = KEPT_MARKS[name]
    seeds, length = LENGTHS["long"]
    assert our_digests(name, kept["solutions"], seeds[: len(kept["long"])], length) == kept["long"]


@pytest.mark.skipif(importlib.util.find_spec("arcengine") is None, reason="nox -s games installs arcengine")
@pytest.mark.parametrize("name", TWINS)
def test_what_is_kept_is_what_the_twins_show(name):
    kept = KEPT_MARKS[name]
    assert play_twin(sys.executable, name, kept["solutions"], *LENGTHS["short"])["digests"] == kept["short"]
