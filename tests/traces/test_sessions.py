"""Sessions of people in the O2ARC editor: both formats, steps that we have not, and what is rejected."""

import csv
import json

import numpy as np
import pytest

from jaxarc.datasets import TaskSet
from jaxarc.experts import Pair
from jaxarc.experts.host_canvas import check_solution
from jaxarc.tasks import RawTask
from jaxarc.traces.sessions import HUMAN, SessionFileError, convert_sessions, read_human_sessions

INPUT, OUTPUT = [[1, 0], [0, 0]], [[0, 1], [0, 3]]
TASKS = TaskSet("people", (RawTask("l6ab", ((INPUT, OUTPUT),), ((INPUT, OUTPUT),), "Turn it"),))
PLACE = ("l6ab", "test", 0)
CELL = {"row": 0, "col": 0, "val": "1", "selected": True}
START = ({"tool": "start"}, [[0, 0], [0, 0]])
COPIED = ({"tool": "copyFromInput"}, INPUT)
MOVED = ({"tool": "translate", "selected_cells": [CELL], "row_change": 0, "col_change": 1}, [[0, 1], [0, 0]])
PAINTED = ({"tool": "edit", "symbol": "3", "row": "1", "col": "1"}, OUTPUT)


def mini_arc(folder, *steps, task_id="turn_it_l6ab"):
    entries = [{"action": action, "grid": [[str(cell) for cell in row] for row in grid]} for action, grid in steps]
    record = {"id": 1, "task_id": task_id, "action_sequence": json.dumps({"action_sequence": entries})}
    (folder / "trace_1.json").write_text(json.dumps(record))
    return convert_sessions(read_human_sessions(folder / "trace_1.json"), TASKS)


def arctraj(folder, *rows):
    with (folder / "people.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, ["logId", "taskId", "actionSequence"])
        table.writeheader()
        for number, (task_id, entries) in enumerate(rows):
            table.writerow({"logId": number, "taskId": task_id, "actionSequence": entries})
    return convert_sessions(read_human_sessions(folder / "people.csv"), TASKS)


def only_trace(found):
    assert found.rejected == []
    ((place, trace),) = found.traces.items()
    assert place == PLACE
    assert trace.spec == HUMAN
    check_solution(Pair(np.array(INPUT), np.array(OUTPUT)), trace.actions, "mask")
    return trace.actions


def test_tools_of_mini_arc_become_our_actions(tmp_path):
    found = mini_arc(tmp_path, START, COPIED, MOVED, PAINTED)
    assert only_trace(found) == ((31,), (32,), (23, 0, 0), (3, 1, 1), (34,))
    assert [(one.verdict, one.num_steps, one.num_rewritten) for one in found.verdicts] == [("exact", 3, 0)]


@pytest.mark.parametrize("tool", ["undo", "paste", "rotate"])
def test_a_step_that_we_have_not_becomes_fills(tmp_path, tool):
    found = mini_arc(tmp_path, START, COPIED, ({"tool": tool, "selected_cells": [CELL]}, OUTPUT))
    assert only_trace(found) == ((31,), (32,), (0, 0, 0), (1, 0, 1), (3, 1, 1), (34,))
    assert [(one.verdict, one.num_rewritten) for one in found.verdicts] == [("rewritten", 1)]


def test_an_action_that_leaves_another_grid_is_not_taken(tmp_path):
    stranger = ({**MOVED[0], "col_change": -1}, MOVED[1])
    actions = only_trace(mini_arc(tmp_path, START, COPIED, stranger, PAINTED))
    assert 22 not in [action[0] for action in actions]


def test_steps_that_leave_the_grid_alone_are_left_out(tmp_path):
    found = mini_arc(tmp_path, START, COPIED, ({"tool": "select"}, INPUT), MOVED, ({"tool": "copy"}, MOVED[1]), PAINTED)
    assert len(only_trace(found)) == 5


def entries(*steps):
    return json.dumps([{"category": "O2", "operation": name, **fields, "grid": grid} for name, grid, fields in steps])


SOLVING = [
    ("ResizeGrid", [[1, 0]], {}),
    ("SelectCell", INPUT, {"position": {"x": 0, "y": 0}}),
    ("Move", INPUT, {"direction": "right", "object": [{"x": 0, "y": 0, "color": 1}]}),
    ("Paint", [[0, 1], [0, 0]], {"color": 3, "object": [{"x": 1, "y": 1, "color": 0}]}),
    ("Submit", OUTPUT, {}),
]


def test_operations_of_arctraj_become_our_actions(tmp_path):
    found = arctraj(tmp_path, ("l6ab", entries(*SOLVING)))
    assert only_trace(found) == ((33, 0, 1), (33, 1, 1), (23, 0, 0), (3, 1, 1), (34,))
    assert [one.verdict for one in found.verdicts] == ["exact"]


def test_of_several_sessions_on_a_pair_the_shortest_is_kept(tmp_path):
    longer = [
        *SOLVING[:3],
        ("Paint", MOVED[1], {"color": 5, "object": [{"x": 0, "y": 0}]}),
        ("Undo", [[5, 1], [0, 0]], {}),
    ]
    found = arctraj(tmp_path, ("l6ab", entries(*longer, *SOLVING[3:])), ("l6ab", entries(*SOLVING)))
    assert len(found.verdicts) == 2
    assert len(only_trace(found)) == 5


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (("l6ab", "["), "Expecting value"),
        (("l6ab", '[{"operation": "Submit"}]'), "'grid'"),
        (("l6ab", entries(("Submit", [[11]], {}))), "11"),
        (("l6ab", entries(("Submit", INPUT, {}))), "1 tests"),
        (("other", entries(*SOLVING)), "'other'"),
    ],
)
def test_what_cannot_be_mapped_is_rejected_with_the_reason(tmp_path, row, reason):
    found = arctraj(tmp_path, row, ("l6ab", entries(*SOLVING)))
    (rejected,) = found.rejected
    assert rejected.name == "people.csv, row 1, log 0"
    assert reason in rejected.reason
    assert len(found.traces) == 1


def test_a_mini_arc_trace_that_does_not_start_is_rejected(tmp_path):
    (rejected,) = mini_arc(tmp_path, PAINTED).rejected
    assert "does not begin with the tool 'start'" in rejected.reason


@pytest.mark.parametrize("fields", [{}, {"color": "red"}, {"color": 3, "object": [{"x": None, "y": 1}]}], ids=str)
def test_fields_that_cannot_be_read_leave_the_session_its_grids(tmp_path, fields):
    painted = ("Paint", [[0, 1], [0, 0]], {"object": [{"x": 1, "y": 1}], **fields})
    found = arctraj(tmp_path, ("l6ab", entries(*SOLVING[:3], painted, SOLVING[4])))
    assert [(one.verdict, one.num_rewritten) for one in found.verdicts] == [("rewritten", 1)]


SESSION = entries(*SOLVING)
MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"  # at the start of a file a byte order mark, as spreadsheets write it


@pytest.mark.parametrize("name", ["people.csv", "PEOPLE.CSV", "People.Csv"])
@pytest.mark.parametrize("mark", ["", MARK])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_table_is_read_whatever_program_wrote_it(tmp_path, name, mark, end):
    with (tmp_path / name).open("w", encoding="utf-8", newline="") as file:
        file.write(mark)
        csv.writer(file, lineterminator=end).writerows(
            [["taskId", "note", "actionSequence"], ["l6ab", "a\u2028b\x85c", SESSION]]
        )
    for path in (tmp_path / name, tmp_path):
        assert len(only_trace(convert_sessions(read_human_sessions(path), TASKS))) == 5


def test_a_mini_arc_trace_may_begin_with_a_mark_and_end_in_capitals(tmp_path):
    mini_arc(tmp_path, START, COPIED, MOVED, PAINTED)
    trace = tmp_path / "trace_1.json"
    (tmp_path / "TRACE.JSON").write_text(MARK + trace.read_text(), encoding="utf-8")
    trace.unlink()
    for path in (tmp_path, tmp_path / "TRACE.JSON"):
        assert len(only_trace(convert_sessions(read_human_sessions(path), TASKS))) == 5


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("taskId;actionSequence\nl6ab;[]\nl6ab;[]\n", "'taskId;actionSequence'"),
        ("hashed_id,task_name,grid\n1,2,3\n4,5,6\n", "'hashed_id', 'task_name', 'grid'"),
        ("", "none"),
        ("taskId,actionSequence\rl6ab,[]\r", "new-line"),
        ("taskId,actionSequence\n\xe9,[]\n", "line 2: not UTF-8"),
    ],
)
def test_another_table_is_refused_in_one_line(tmp_path, content, complaint):
    (tmp_path / "table.csv").write_bytes(content.encode("latin-1"))
    with pytest.raises(SessionFileError, match=rf"table\.csv.*{complaint}"):
        list(read_human_sessions(tmp_path / "table.csv"))
    mini_arc(tmp_path, START, COPIED, MOVED, PAINTED)
    found = convert_sessions(read_human_sessions(tmp_path), TASKS)
    assert [one.verdict for one in found.verdicts] == ["rejected", "exact"]
    assert complaint in found.rejected[0].reason


def test_a_folder_without_sessions_is_refused(tmp_path):
    with pytest.raises(SessionFileError, match=str(tmp_path)):
        list(read_human_sessions(tmp_path))


@pytest.mark.parametrize(
    "cell", [3.5, "3.5", True, None, float("nan"), float("inf"), [3], "\u0663", "3_0", 1e30], ids=repr
)
def test_a_cell_that_is_no_whole_number_is_not_rounded(tmp_path, cell):
    (rejected,) = arctraj(tmp_path, ("l6ab", entries(*SOLVING[:4], ("Submit", [[0, 1], [0, cell]], {})))).rejected
    assert "whole numbers" in rejected.reason


@pytest.mark.parametrize("grid", ["12", {"1": 2}, [[1, 2], [3]], ["12"], [], [[]], None], ids=repr)
def test_a_grid_is_a_list_of_rows_of_one_length(tmp_path, grid):
    (rejected,) = arctraj(tmp_path, ("l6ab", entries(*SOLVING[:4], ("Submit", grid, {})))).rejected
    assert "a grid" in rejected.reason


def test_numbers_that_a_table_wrote_with_a_point_count(tmp_path):
    found = arctraj(tmp_path, ("l6ab", entries(*SOLVING[:4], ("Submit", [[0.0, 1.0], [0.0, 3.0]], {}))))
    assert len(only_trace(found)) == 5


def test_a_row_that_lacks_its_last_fields_is_rejected(tmp_path):
    (tmp_path / "people.csv").write_text("logId,taskId,actionSequence\n7,l6ab\n")
    (rejected,) = convert_sessions(read_human_sessions(tmp_path), TASKS).rejected
    assert rejected.reason == "it has no task id, or no action sequence"
