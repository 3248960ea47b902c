"""Recorded actions, played in every format."""

import json

import pytest
from small_exam import EXAM, ONE_RIGHT, painting, rules, task, task_set

from jaxarc import constants as c
from jaxarc.evaluation import RecordedAgent, evaluate, read_recordings
from jaxarc.traces.trace_files import ShortTraceFileWarning

TASKS = task_set(task("columns", ([[5, 5], [6, 6]], [[1, 5], [1, 6]]), ([[7]], [[7]])))
IN_EACH_FORMAT = {  # paint the left column with color 1, submit
    "point": [[1, 0, 0], [1, 1, 0], [c.SUBMIT, 0, 0]],
    "bbox": [[1, 1, 0, 0, 0], [c.SUBMIT, 0, 0, 0, 0]],
    "mask": [[1, 0, 0, 1, 0], [c.SUBMIT]],
}


@pytest.mark.parametrize("selection_format", IN_EACH_FORMAT)
def test_a_recording_is_played_and_where_there_is_none_the_agent_submits(selection_format):
    played = rules(2, selection_format=selection_format, max_episode_steps=5)
    actions = IN_EACH_FORMAT[selection_format]
    result = evaluate(RecordedAgent.create({("columns", 0): actions}, TASKS, played), TASKS, played)
    assert result.score.solved == {"columns": (True, True)}
    (row,) = result.rows
    assert row.mean_steps == (len(actions) + 1) / 2
    assert row.first_solving_step == 1


def test_after_the_end_of_a_recording_comes_a_submit():
    played = rules(2, max_episode_steps=5)
    result = evaluate(RecordedAgent.create({("columns", 0): [[1, 0, 0, 1, 0]]}, TASKS, played), TASKS, played)
    assert result.score.solved == {"columns": (True, True)}
    assert result.rows[0].submitted == 4


def line(**changes):
    return json.dumps({"task_id": "right", "pair_index": 0, "actions": [[34, 0, 0, 0, 0]], **changes})


def test_a_file_comes_back_as_actions(tmp_path):
    file = tmp_path / "actions.jsonl"
    file.write_text("\n".join([line(), line(task_id="three", pair_index=2, actions=painting([[4]]))]))
    expected = {("right", 0): ((34, 0, 0, 0, 0),), ("three", 2): tuple(map(tuple, painting([[4]])))}
    assert read_recordings(file) == expected


def test_a_file_of_traces_that_lacks_lines_is_reported(tmp_path):
    file = tmp_path / "traces.jsonl"
    file.write_text("\n".join([line(of=2), line(of=2, pair_index=1)]))
    assert len(read_recordings(file)) == 2
    file.write_text(line(of=2) + "\n")
    with pytest.warns(ShortTraceFileWarning, match="1 of the 2"):
        assert len(read_recordings(file)) == 1


def test_traces_of_demonstrations_are_left_out(tmp_path):
    lines = [
        {"task_id": "a", "pair_index": 0, "actions": [[n, 0, 0]], "split": s} for n, s in ((1, "train"), (2, "test"))
    ]
    file = tmp_path / "traces.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)))
    assert read_recordings(file) == {("a", 0): ((2, 0, 0),)}


def test_the_painting_of_the_exam_is_made_of_legal_actions():
    recordings = {("right", 0): painting(ONE_RIGHT.test[0][1])}
    assert RecordedAgent.create(recordings, EXAM, rules()).actions.operation.tolist()[-1] == c.SUBMIT
