"""Graphs of pairs as text: round trips, one text for equal graphs, and errors that say what is wrong."""

import hashlib
import json

import numpy as np
import pytest
from trace_experts import tiny_pairs

from jaxarc.datasets import TaskSet
from jaxarc.experts import Pair
from jaxarc.experts.traces import ExpertSpec, Graph, GraphError, PairId, WorkUnit, pairs_by_id
from jaxarc.experts.traces.trace import hash_of
from jaxarc.tasks import RawTask

PAIRS = tiny_pairs()
GRAPH = Graph({"all": None, "a": PAIRS[0], "b": PAIRS[1]}, frozenset({("all", "a"), ("all", "b")}))


def tasks():
    two = (tuple(PAIRS[0]), tuple(PAIRS[1]))
    return TaskSet("two", (RawTask("t1", two, (tuple(PAIRS[2]),)), RawTask("t2", two[:1], (tuple(PAIRS[3]),))))


def test_a_graph_comes_back_as_it_was():
    again = Graph.from_json(GRAPH.to_json())
    assert again == GRAPH
    assert list(again.nodes) == ["a", "all", "b"]
    np.testing.assert_array_equal(again.pairs["b"].output, PAIRS[1].output)


def test_grids_come_back_as_int8():
    assert Graph.from_json(GRAPH.to_json()).pairs["a"].input.dtype == np.int8


def test_a_node_without_a_pair_comes_back_without():
    assert Graph.from_json(GRAPH.to_json()).nodes["all"] is None


def test_an_empty_graph_comes_back():
    assert Graph.from_json(Graph({}).to_json()) == Graph({})


def test_needs_in_a_circle_come_back():
    circle = Graph({"a": None, "b": None}, frozenset({("a", "b"), ("b", "a")}))
    assert Graph.from_json(circle.to_json()).needs == circle.needs


def test_the_text_has_sorted_keys_and_no_spaces():
    assert Graph({"z": None, "a": None}, frozenset({("z", "a")})).to_json() == (
        '{"needs":[["z","a"]],"nodes":{"a":null,"z":null}}'
    )


def test_the_order_of_nodes_and_needs_leaves_text_and_hash_alone():
    turned = Graph({"b": PAIRS[1], "a": PAIRS[0], "all": None}, frozenset({("all", "b"), ("all", "a")}))
    assert turned.to_json() == GRAPH.to_json()
    assert turned.content_hash == GRAPH.content_hash
    assert hash(turned) == hash(GRAPH)


def test_reordered_keys_of_the_text_give_the_same_graph():
    data = json.loads(GRAPH.to_json())
    turned = {"nodes": dict(reversed(data["nodes"].items())), "needs": data["needs"][::-1]}
    assert Graph.from_json(json.dumps(turned, indent=2)).content_hash == GRAPH.content_hash


def test_one_changed_cell_changes_the_hash():
    changed = PAIRS[0].output.copy()
    changed[0, 0] += 1
    other = Graph({**GRAPH.nodes, "a": Pair(PAIRS[0].input, changed)}, GRAPH.needs)
    assert other.content_hash != GRAPH.content_hash
    assert other != GRAPH


def test_the_hash_is_that_of_the_text():
    text = '{"needs":[],"nodes":{"a":{"input":[[1]],"output":[[2]]}}}'
    assert (
        Graph({"a": Pair(np.array([[1]]), np.array([[2]]))}).content_hash == hashlib.sha256(text.encode()).hexdigest()
    )


def test_any_integer_dtype_gives_one_text():
    wide = Graph({name: pair and Pair(*(grid.astype(np.int64) for grid in pair)) for name, pair in GRAPH.nodes.items()})
    assert wide.to_json() == Graph(GRAPH.nodes).to_json()


def test_names_in_any_script_come_back():
    graph = Graph({'Aufgabe "ü" / 課題': PAIRS[0]})
    assert Graph.from_json(graph.to_json()) == graph


def test_a_large_graph_comes_back():
    nodes = {f"pair {i}": Pair(np.full((30, 30), i % 10), np.full((1, 30), i % 7)) for i in range(150)}
    graph = Graph({"all": None, **nodes}, frozenset(("all", name) for name in nodes))
    assert Graph.from_json(graph.to_json()) == graph


def test_a_task_set_becomes_set_tasks_and_pairs():
    graph = Graph.of_tasks(tasks())
    assert list(graph.pairs) == ["t1/train/0", "t1/train/1", "t1/test/0", "t2/train/0", "t2/test/0"]
    assert ("tasks of two", "t1") in graph.needs
    assert ("t2", "t2/test/0") in graph.needs
    assert Graph.from_json(graph.to_json()) == graph


@pytest.mark.parametrize(("choice", "count"), [("all", 5), ("train", 3), ("test", 2)])
def test_pairs_are_chosen_by_split(choice, count):
    assert len(Graph.of_tasks(tasks(), choice).pairs) == len(pairs_by_id(tasks(), choice)) == count


def test_a_place_names_its_node():
    assert all(place.node in Graph.of_tasks(tasks()).pairs for place in pairs_by_id(tasks()))
    assert PairId("t1", "test", 0).node == "t1/test/0"


def test_a_subgraph_keeps_the_needs_within():
    assert GRAPH.subgraph(["all", "b"]) == Graph({"all": None, "b": PAIRS[1]}, frozenset({("all", "b")}))
    with pytest.raises(GraphError, match="no node 'c'"):
        GRAPH.subgraph(["c"])


def test_a_unit_comes_back_and_knows_nothing_of_names():
    unit = WorkUnit(PAIRS[1], ExpertSpec("painter", 2, "", "mask"))
    again = WorkUnit.from_json(unit.to_json())
    assert again.spec == unit.spec
    assert again.to_json() == unit.to_json()
    assert "t1" not in unit.to_json()


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
    hashes = [hash_of(WorkUnit(PAIRS[0], spec).to_json()) for spec in (ExpertSpec("e", 1, "", "bbox"), other)]
    assert hashes[0] != hashes[1]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "a graph is JSON"),
        ("[]", "an object with 'nodes' and 'needs'"),
        ('{"nodes":{}}', "an object with 'nodes' and 'needs'"),
        ('{"nodes":[],"needs":[]}', "'nodes' maps names"),
        ('{"nodes":{"a":5},"needs":[]}', "node 'a' carries null or"),
        ('{"nodes":{"a":{"input":[],"output":[[1]]}},"needs":[]}', "node 'a': input is a list of rows"),
        ('{"nodes":{"a":{"input":[[1],[2,3]],"output":[[1]]}},"needs":[]}', "rows of input are equally long"),
        ('{"nodes":{"a":{"input":[[1]],"output":[[1.5]]}},"needs":[]}', "rows of output .* whole numbers"),
        ('{"nodes":{"a":{"input":[[1]],"output":[[10]]}},"needs":[]}', "output holds 10..10, colors are 0..9"),
        ('{"nodes":{"a":{"input":[[]],"output":[[1]]}},"needs":[]}', "input is 1x0|input must be whole"),
        ('{"nodes":{"":null},"needs":[]}', "a name that is not empty"),
        ('{"nodes":{"a":null},"needs":["ab"]}', "a need is a list of two names"),
        ('{"nodes":{"a":null},"needs":[["a","b"]]}', "'a' needs 'b', but there is no node 'b'"),
    ],
)
def test_a_wrong_text_is_refused_with_the_reason(text, complaint):
    with pytest.raises(GraphError, match=complaint):
        Graph.from_json(text)
