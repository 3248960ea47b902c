"""Traces in the environment itself: of every format, right and wrong ones."""

import numpy as np
import pytest
from trace_experts import CellExpert, tiny_pairs

from jaxarc.traces import replay as replay_module
from jaxarc.traces.replay import replay

PAIRS = tiny_pairs()


@pytest.fixture(autouse=True, scope="module")
def small_batches():
    """Few traces side by side, on small canvases."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay_module, "_BATCH", {"point": 3, "bbox": 3, "mask": 3})
        patch.setattr(replay_module, "_STEPS", 4)
        patch.setattr(replay_module, "_SIDE", 5)
        yield


@pytest.mark.parametrize("action_format", ["point", "mask"])
def test_the_environment_agrees_on_what_solves(action_format):
    traces = [CellExpert().solve(pair, action_format) for pair in PAIRS]
    wrong = [traces[0][:-1], [*traces[1][:-2], traces[1][-1]], traces[1], []]
    solved = replay([*PAIRS, PAIRS[0], PAIRS[1], PAIRS[0], PAIRS[0]], [*traces, *wrong], action_format)
    np.testing.assert_array_equal(solved, [True] * 4 + [False] * 4)
