"""Traces as lines of JSON, and that evaluation reads the same lines."""

import json

import pytest

from jaxarc.evaluation import read_recordings
from jaxarc.traces import ExpertSpec, PairId, Trace
from jaxarc.traces.trace_files import TraceFileError, read_trace_file, write_trace_file

SPEC = ExpertSpec("cells", 3, '{"a":1}', "bbox")
TRACES = {
    PairId("t1", "test", 0): Trace("0" * 64, SPEC, ((2, 0, 0, 0, 0), (34, 0, 0, 0, 0))),
    PairId("t2", "train", 1): Trace("1" * 64, SPEC, ((34, 0, 0, 0, 0),)),
}


def test_traces_come_back_as_they_were(tmp_path):
    lines = read_trace_file(write_trace_file(tmp_path / "traces.jsonl", TRACES))
    assert [(line.pair_id, line.spec, line.actions) for line in lines] == [
        (place, trace.spec, trace.actions) for place, trace in TRACES.items()
    ]
    assert lines[1].where.endswith("traces.jsonl, line 2")


def test_evaluation_reads_the_same_lines(tmp_path):
    path = write_trace_file(tmp_path / "traces.jsonl", TRACES)
    assert read_recordings(path)["t1", 0] == ((2, 0, 0, 0, 0), (34, 0, 0, 0, 0))


def test_a_line_of_recorded_actions_is_a_test_pair(tmp_path):
    (tmp_path / "actions.jsonl").write_text('{"task_id": "t", "pair_index": 2, "actions": [[34, 0, 0, 0, 0]]}\n\n')
    (line,) = read_trace_file(tmp_path / "actions.jsonl")
    assert line[:2] == (PairId("t", "test", 2), ExpertSpec("recorded", 1, "", "bbox"))


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"task_id": 5}, "'task_id'.*5"),
        ({"pair_index": True}, "'pair_index'.*True"),
        ({"split": "exam"}, "split"),
        ({"action_format": "circle"}, "'circle'"),
        ({"actions": [[]]}, "'actions'"),
        ({"actions": [[34, 0.5]]}, "actions"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, change, complaint):
    line = {"task_id": "t", "pair_index": 0, "actions": [[34, 0, 0, 0, 0]]}
    (tmp_path / "bad.jsonl").write_text(json.dumps(line) + "\n" + json.dumps(line | change))
    with pytest.raises(TraceFileError, match=f"bad.jsonl, line 2: .*{complaint}"):
        read_trace_file(tmp_path / "bad.jsonl")


def test_a_text_may_hold_a_separator_of_lines_and_a_byte_order_mark(tmp_path):
    line = {"task_id": "a\u2028b\x85", "pair_index": 0, "actions": [[34, 0, 0, 0, 0]]}
    (tmp_path / "odd.jsonl").write_text(json.dumps(line, ensure_ascii=False) + "\r\n", encoding="utf-8-sig")
    (found,) = read_trace_file(tmp_path / "odd.jsonl")
    assert found.pair_id.task_id == "a\u2028b\x85"
