"""Experts that do not do what they should, time limits, processes, and stopping in between."""

import dataclasses

import numpy as np
import pytest
from trace_experts import (
    BrittleExpert,
    CellExpert,
    CountingExpert,
    DyingExpert,
    ExitingExpert,
    ForkingExpert,
    LoopingExpert,
    MeetingExpert,
    OddExpert,
    tiny_pairs,
)

from jaxarc.experts import ExpertError
from jaxarc.traces import Graph, RecordingFailedError, TraceCache, record_traces

PAIRS = tiny_pairs()
GRAPH = Graph({f"pair {i}": pair for i, pair in enumerate(PAIRS)})
STRATEGIES = ("sequential", "workers", "vmap")


@dataclasses.dataclass
class Tuned(CellExpert):
    """An expert with a setting."""

    patience: object = 1


def failures(recording):
    return {node: recording.failures[one] for node, one in recording.hash_of_node.items() if one in recording.failures}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_what_fails_is_reported_and_the_others_go_on(strategy, tmp_path):
    cache = TraceCache(tmp_path)
    recording = record_traces(GRAPH, OddExpert(), strategy=strategy, cache=cache)
    found = failures(recording)
    assert {node: failure.kind for node, failure in found.items()} == {
        "pair 0": "CannotSolveError",
        "pair 1": "InvalidActionError",
        "pair 2": "NotSolvedError",
    }
    assert found["pair 0"].message == "it is too\\nhard"
    assert "operation 77" in found["pair 1"].message
    assert all(failure.unit_hash == recording.hash_of_node[node] for node, failure in found.items())
    assert [trace.unit_hash for trace in cache.traces()] == [recording.hash_of_node["pair 3"]]
    assert recording.num_recorded == 1


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_error_of_any_class_is_a_failure(strategy):
    recording = record_traces(GRAPH, BrittleExpert(), strategy=strategy)
    assert {failure.kind for failure in recording.failures.values()} == {"BrittleError"}


@pytest.mark.parametrize("actions", [None, [[1, 2]], [["a"]], [[True, 0, 0, 0, 0]], [[34, 0, 0, 0.5, 0]], 5, [], [5]])
def test_what_is_no_list_of_actions_is_a_failure(actions):
    expert = CellExpert()
    expert.solve = lambda pair, action_format: actions
    recording = record_traces(Graph({"a": PAIRS[0]}), expert)
    assert failures(recording)["a"].kind in ("InvalidActionError", "NotSolvedError")


def test_an_expert_that_loops_is_stopped_and_the_others_go_on():
    recording = record_traces(GRAPH, LoopingExpert(), strategy="workers", processes=1, time_limit_s=0.4)
    assert {node: failure.kind for node, failure in failures(recording).items()} == {"pair 2": "TimeLimitError"}
    assert "no answer within 0.4 s" in failures(recording)["pair 2"].message
    assert len(recording.traces) == len(PAIRS) - 1


def test_what_an_expert_started_is_stopped_with_it():
    recording = record_traces(GRAPH, ForkingExpert(), strategy="workers", processes=1, time_limit_s=0.4)
    assert {node: failure.kind for node, failure in failures(recording).items()} == {"pair 2": "TimeLimitError"}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_expert_that_exits_ends_no_more_than_its_pair(strategy):
    recording = record_traces(GRAPH, ExitingExpert(), strategy=strategy)
    assert "sys.exit('that is all')" in failures(recording)["pair 2"].message
    assert len(recording.traces) == len(PAIRS) - 1


def test_an_expert_that_takes_its_process_along_harms_no_other():
    recording = record_traces(GRAPH, DyingExpert(), strategy="workers", processes=1)
    assert {node: failure.kind for node, failure in failures(recording).items()} == {"pair 2": "WorkerDiedError"}
    assert len(recording.traces) == len(PAIRS) - 1


def test_processes_give_what_this_process_gives_and_the_cache_has_it(tmp_path):
    expected, cache = record_traces(GRAPH, CellExpert()), TraceCache(tmp_path)
    record_traces(Graph({"a": PAIRS[1]}), CellExpert(), cache=cache)
    recording = record_traces(GRAPH, CellExpert(), strategy="workers", processes=1, cache=cache)
    assert (recording.traces, recording.num_cached) == (expected.traces, 1)
    assert {trace.unit_hash: trace for trace in cache.traces()} == expected.traces


def test_a_process_does_not_import_jax():
    graph = Graph({"a": PAIRS[0]})
    assert record_traces(graph, ImportWatch(), strategy="workers", processes=1).failures == {}


class ImportWatch(CellExpert):
    """Refuses to work where JAX is loaded."""

    name = "watch"

    def solve(self, pair, action_format):
        import sys

        assert "jax" not in sys.modules
        return super().solve(pair, action_format)


def test_an_expert_that_another_process_cannot_load_is_refused():
    class Local(CellExpert):
        pass

    with pytest.raises(ValueError, match="'cells'"):
        record_traces(GRAPH, Local(), strategy="workers", processes=1)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_cache_that_cannot_be_written_is_reported_as_it_is(strategy, tmp_path):
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OSError, match="file"):
        record_traces(GRAPH, CellExpert(), strategy=strategy, cache=TraceCache(tmp_path / "file"))


def test_whoever_stops_goes_on_where_the_recording_ended(tmp_path):
    expert, cache, seen = CountingExpert(), TraceCache(tmp_path), []
    stop_after_two = lambda done, total: seen.append((done, total)) or done == 2
    first = record_traces(GRAPH, expert, cache=cache, chunk_size=1, progress=stop_after_two)
    assert (seen, first.is_complete, len(first.traces)) == ([(1, 4), (2, 4)], False, 2)
    with pytest.raises(RecordingFailedError, match="stopped after 2 of 4 units"):
        first.require_complete()
    second = record_traces(GRAPH, expert, cache=cache)
    assert (second.is_complete, second.num_cached, second.num_recorded) == (True, 2, 2)
    assert len(expert.asked) == len(PAIRS)


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"name": ""}, "name is a text that is not empty, got ''"),
        ({"name": 5}, "name is a text that is not empty, got 5"),
        ({"version": np.int64(3)}, "version of the expert 'cells' is an int, got "),
        ({"patience": np.zeros(2)}, "settings of the expert 'cells' cannot be written as JSON .*ndarray"),
    ],
)
def test_an_expert_that_cannot_be_identified_is_refused(fields, complaint):
    expert = Tuned()
    for name, value in fields.items():
        setattr(expert, name, value)
    with pytest.raises(ExpertError, match=complaint):
        record_traces(GRAPH, expert)


class InterruptedExpert(CellExpert):
    """Somebody presses Ctrl-C while it is at its second pair."""

    def __init__(self):
        self.num_asked = 0

    def solve(self, pair, action_format):
        self.num_asked += 1
        if self.num_asked == 2:
            raise KeyboardInterrupt
        return super().solve(pair, action_format)


@pytest.mark.parametrize("strategy", ["sequential", "vmap"])
def test_ctrl_c_amid_a_pair_ends_a_recording_at_once_and_without_a_word_of_jax(tmp_path, caplog, strategy):
    expert, cache = InterruptedExpert(), TraceCache(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        record_traces(GRAPH, expert, strategy=strategy, cache=cache)
    assert expert.num_asked == 2
    assert len(list(cache.traces())) == 1
    assert not caplog.records
    assert len(record_traces(GRAPH, CellExpert(), strategy=strategy, cache=cache).traces) == 4


def test_two_processes_work_at_once(tmp_path):
    recording = record_traces(GRAPH, MeetingExpert(tmp_path), strategy="workers", processes=2)
    assert recording.failures == {}
