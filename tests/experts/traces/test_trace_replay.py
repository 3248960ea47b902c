"""Traces in the environment itself: of every format, the greedy painter's, right and wrong ones."""

import numpy as np
import pytest
from trace_experts import CellExpert, tiny_pairs

from jaxarc.experts import ExpertError, Pair
from jaxarc.experts.traces import Graph, greedy, record_traces
from jaxarc.experts.traces import replay as replay_module
from jaxarc.experts.traces.greedy import GreedyExpert
from jaxarc.experts.traces.replay import replay

PAIRS = tiny_pairs()


@pytest.fixture(autouse=True, scope="module")
def small_batches():
    """Fewer traces side by side, and small canvases for them: what is compiled runs only a little."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(replay_module, "_BATCH", {"point": 3, "bbox": 3, "mask": 3})
        patch.setattr(replay_module, "_STEPS", 4)
        patch.setattr(replay_module, "_SIDE", 5)
        patch.setattr(greedy, "_SIDES", (5,))
        patch.setattr(greedy, "_SLOTS", 8)
        yield


@pytest.mark.parametrize("action_format", ["point", "mask"])
def test_the_environment_agrees_on_what_solves(action_format):
    traces = [CellExpert().solve(pair, action_format) for pair in PAIRS]
    wrong = [traces[0][:-1], [*traces[1][:-2], traces[1][-1]], traces[1], []]
    solved = replay([*PAIRS, PAIRS[0], PAIRS[1], PAIRS[0], PAIRS[0]], [*traces, *wrong], action_format)
    np.testing.assert_array_equal(solved, [True] * 4 + [False] * 4)


def test_as_many_traces_as_pairs_are_needed():
    with pytest.raises(ValueError, match="got 4 pairs and 0 traces"):
        replay(PAIRS, [], "bbox")


def test_the_greedy_painter_solves_every_pair_and_repeats_itself():
    draw = np.random.default_rng(0)
    sizes = [(int(draw.integers(1, 6)), int(draw.integers(1, 6))) for _ in range(70)]
    pairs = [
        Pair(draw.integers(0, 3, a).astype(np.int8), draw.integers(0, 3, b).astype(np.int8))
        for a, b in zip(sizes, sizes[::-1], strict=True)
    ]
    graph = Graph({f"pair {i}": pair for i, pair in enumerate(pairs)})
    recording = record_traces(graph, GreedyExpert())
    assert recording.failures == {}
    assert len(recording.traces) + recording.num_duplicates == 70
    assert recording.traces == record_traces(graph, GreedyExpert()).traces
    listed = [recording.trace_of(node) for node in recording.hash_of_node]
    assert replay(pairs[:6], [trace.actions for trace in listed[:6]], "bbox").all()


def test_the_greedy_painter_fills_boxes_only():
    with pytest.raises(ExpertError, match="must be 'bbox', got 'mask'"):
        record_traces(Graph({"a": PAIRS[0]}), GreedyExpert(), "mask")
