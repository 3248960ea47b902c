"""Work units as text: round trips, one text and one hash for equal content, and graphs that refuse what is wrong."""

import numpy as np
import pytest
from trace_experts import tiny_pairs

from jaxarc.datasets import TaskSet
from jaxarc.experts import Pair
from jaxarc.tasks import RawTask
from jaxarc.traces import ExpertSpec, Graph, Trace, WorkUnit, get_scc_graphs

PAIRS = tiny_pairs()
SPEC = ExpertSpec("e", 1, "", "bbox")
UNIT = WorkUnit(PAIRS[1], SPEC)


def tasks():
    two = (tuple(PAIRS[0]), tuple(PAIRS[1]))
    return TaskSet("two", (RawTask("t1", two, (tuple(PAIRS[2]),)), RawTask("t2", two[:1], (tuple(PAIRS[3]),))))


@pytest.mark.parametrize("pair", PAIRS)
@pytest.mark.parametrize("action_format", ["point", "bbox", "mask"])
def test_a_unit_comes_back_as_it_was(pair, action_format):
    unit = WorkUnit(pair, ExpertSpec("painter", 2, '{"a":1}', action_format, (20, 30)))
    again = WorkUnit.from_json(unit.to_json())
    assert again.spec == unit.spec
    assert again.to_json() == unit.to_json()
    for grid, expected in zip(again.pair, pair, strict=True):
        np.testing.assert_array_equal(grid, expected)


def test_demonstrations_come_back_and_leave_the_hash_alone():
    shown = UNIT._replace(demonstrations=(PAIRS[0], PAIRS[2]))
    again = WorkUnit.from_json(shown.to_json())
    np.testing.assert_array_equal(again.demonstrations[1].output, PAIRS[2].output)
    assert shown.to_json() != UNIT.to_json()
    assert shown.content_hash == UNIT.content_hash


def test_the_text_has_sorted_keys_and_no_spaces():
    unit = WorkUnit(Pair(np.array([[1]]), np.array([[2]])), SPEC)
    assert unit.to_json() == (
        '{"action_format":"bbox","canvas":[30,30],"expert":"e","pair":{"input":[[1]],"output":[[2]]},"settings":"",'
        '"version":1}'
    )


def test_any_integer_dtype_gives_one_text():
    wide = UNIT._replace(pair=Pair(*(grid.astype(np.int64) for grid in UNIT.pair)))
    assert wide.to_json() == UNIT.to_json()


def test_one_changed_cell_changes_the_hash():
    changed = PAIRS[1].output.copy()
    changed[0, 0] += 1
    assert UNIT._replace(pair=Pair(PAIRS[1].input, changed)).content_hash != UNIT.content_hash


def test_a_trace_comes_back_as_it_was():
    trace = Trace("0" * 64, SPEC, ((2, 0, 0, 1, 5), (34, 0, 0, 0, 0)))
    assert Trace.from_json(trace.to_json()) == trace


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"unit":"0","spec":5,"actions":[]}', "[" * 3000])
def test_what_is_no_trace_is_refused(text):
    with pytest.raises(ValueError):  # noqa: PT011
        Trace.from_json(text)


@pytest.mark.parametrize(
    "other",
    [
        ExpertSpec("other", 1, "", "bbox"),
        ExpertSpec("e", 2, "", "bbox"),
        ExpertSpec("e", 1, "x", "bbox"),
        ExpertSpec("e", 1, "", "mask"),
        ExpertSpec("e", 1, "", "bbox", (20, 30)),
    ],
)
def test_whatever_a_trace_depends_on_changes_the_hash_of_a_unit(other):
    assert UNIT._replace(spec=other).content_hash != UNIT.content_hash


def test_a_task_set_becomes_set_tasks_and_pairs():
    graph = Graph.of_tasks(tasks())
    assert list(graph.pairs) == ["t1/train/0", "t1/train/1", "t1/test/0", "t2/train/0", "t2/test/0"]
    assert ("tasks of two", "t1") in graph.needs
    assert ("t2", "t2/test/0") in graph.needs
    order = [next(iter(component.nodes)) for component in get_scc_graphs(graph)]
    assert order == [*list(graph.pairs)[:3], "t1", *list(graph.pairs)[3:], "t2", "tasks of two"]
