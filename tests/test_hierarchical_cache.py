"""Units recorded through JAX: indices, store, strategies, and what goes wrong."""

import json
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from process_group import run_python
from trace_experts import BrittleExpert, CellExpert, CountingExpert, OddExpert, tiny_pairs

from jaxarc.experts import Pair
from jaxarc.traces import (
    ExpertSpec,
    Graph,
    RecordingFailedError,
    TraceCache,
    get_scc_graphs,
    get_trace_hierarchical,
    record_traces,
)
from jaxarc.traces.recording import (
    _compute_trace_jax,
    _record_trace_callback,
    _stored,
    _work_unit_store,
    device_layout,
    units_of,
)

PAIRS = tiny_pairs()
GRAPH = Graph({f"pair {i}": pair for i, pair in enumerate(PAIRS)})
SPEC = ExpertSpec.of(CellExpert(), "bbox")
BLOCK_JAX = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("jax", "jaxlib", "equinox"):
            raise ImportError(f"{name} is blocked")
sys.meta_path.insert(0, Blocked())
"""


def recorder_of(log):
    """A recorder that writes down the texts it was given and returns their hashes as results."""

    def record(unit_hash, text):
        log.append(text)
        return unit_hash

    return record


def test_get_scc_graphs():
    pairs = dict(zip("abcdef", [*PAIRS, *PAIRS[:2]], strict=True))
    circle = {("a", "b"), ("b", "c"), ("c", "a"), ("d", "e"), ("e", "d")}
    graph = Graph({"root": None, **pairs}, frozenset(circle | {("root", "a"), ("a", "d"), ("f", "a")}))
    components = get_scc_graphs(graph)
    assert [sorted(component.nodes) for component in components] == [["d", "e"], ["a", "b", "c"], ["root"], ["f"]]
    assert components[1].needs == {("a", "b"), ("b", "c"), ("c", "a")}
    assert components[0].needs == {("d", "e"), ("e", "d")}
    assert list(components[1].pairs) == ["a", "b", "c"]
    assert components[2].pairs == {}


def test_a_graph_of_a_hundred_and_fifty_nodes_is_cut_and_recorded():
    nodes = {f"n{i}": Pair(np.array([[i % 10, i // 10 % 10]]), np.array([[i // 100]])) for i in range(150)}
    needs = frozenset((f"n{i}", f"n{i - 1}") for i in range(1, 150))
    graph = Graph(nodes, needs)
    assert [next(iter(component.nodes)) for component in get_scc_graphs(graph)] == list(nodes)
    assert len(get_trace_hierarchical(graph, "vmap", expert=CellExpert()).traces) == 150


def test_an_index_that_is_not_in_the_store_is_an_error():
    with pytest.raises(KeyError, match="no work unit with index 7"):
        _record_trace_callback(7)


def test_the_callback_finds_unit_and_recorder_by_the_index_any_number_of_times():
    log = []
    with _stored({"h0": "text 0", "h1": "text 1"}, recorder_of(log)) as (indices, _):
        assert indices == [0, 1]
        assert _work_unit_store == {0: ("h0", "text 0"), 1: ("h1", "text 1")}
        assert [_record_trace_callback(1), _record_trace_callback(1)] == [("h1", "h1")] * 2
    assert log == ["text 1"] * 2
    assert _work_unit_store == {}


def test_the_wrapper_takes_and_gives_one_int32_by_a_pure_callback():
    shape = jax.ShapeDtypeStruct((), jnp.int32)
    assert jax.eval_shape(_compute_trace_jax, shape) == shape
    assert "pure_callback" in str(jax.make_jaxpr(_compute_trace_jax)(np.int32(0)))
    assert "vmap_method=sequential" in str(jax.make_jaxpr(_compute_trace_jax)(np.int32(0)))


def test_the_wrapper_works_under_jit_and_vmap_in_order_and_has_no_gradient():
    log = []
    with _stored({f"h{i}": f"t{i}" for i in range(5)}, recorder_of(log)) as (indices, _):
        asked = jnp.array(indices, jnp.int32)
        assert int(jax.block_until_ready(jax.jit(_compute_trace_jax)(asked[3]))) == 3
        np.testing.assert_array_equal(jax.vmap(_compute_trace_jax)(asked), asked)
        np.testing.assert_array_equal(jax.jit(jax.vmap(_compute_trace_jax))(asked), asked)
        with pytest.raises(TypeError, match="grad requires real- or complex-valued inputs"):
            jax.grad(_compute_trace_jax)(asked[0])
    assert log == ["t3", *[f"t{i}" for i in range(5)] * 2]


def test_indices_are_spread_evenly_and_filled_up():
    assert device_layout(range(5), 4).tolist() == [[0, 4], [1, -1], [2, -1], [3, -1]]
    assert device_layout(range(5), 4).dtype == np.int32
    assert device_layout(range(4), 2).tolist() == [[0, 2], [1, 3]]


@pytest.mark.parametrize("chunk_size", [1, 3, 64])
@pytest.mark.parametrize("strategy", ["sequential", "vmap"])
def test_all_strategies_and_chunks_give_the_same_traces(strategy, chunk_size):
    expected = record_traces(GRAPH, CellExpert())
    found = record_traces(GRAPH, CellExpert(), strategy=strategy, chunk_size=chunk_size)
    assert found.traces == expected.traces
    assert list(found.traces) == list(expected.traces) == list(units_of(GRAPH, SPEC)[1])
    assert found.hash_of_node == expected.hash_of_node


def test_equal_pairs_are_recorded_once():
    expert = CountingExpert()
    graph = Graph({"a": PAIRS[0], "b": PAIRS[1], "again": PAIRS[0]}, frozenset({("a", "b")}))
    recording = get_trace_hierarchical(graph, "vmap", expert=expert)
    assert len(expert.asked) == recording.num_recorded == 2
    assert recording.num_duplicates == 1
    assert recording.nodes_of(recording.hash_of_node["a"]) == ["a", "again"]
    assert recording.trace_of("again") == recording.trace_of("a")


def test_what_the_cache_has_is_not_recorded_again(tmp_path):
    expert, cache = CountingExpert(), TraceCache(tmp_path)
    first = get_trace_hierarchical(GRAPH, "vmap", expert=expert, cache=cache)
    second = get_trace_hierarchical(GRAPH, "sequential", expert=expert, cache=cache)
    assert len(expert.asked) == len(PAIRS)
    assert (second.num_cached, second.num_recorded) == (len(PAIRS), 0)
    assert second.traces == first.traces


def test_two_threads_that_record_at_once_do_not_meet():
    graphs = [GRAPH, Graph({f"own {i}": Pair(np.array([[i]]), np.array([[9]])) for i in range(6)})]
    found = {}

    def work(place):
        found[place] = record_traces(graphs[place], CellExpert(), strategy="vmap")

    threads = [threading.Thread(target=work, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for place, graph in enumerate(graphs):
        expected = record_traces(graph, CellExpert())
        assert found[place].traces == expected.traces
        assert "" not in found[place].traces
    assert _work_unit_store == {}


@pytest.mark.parametrize("strategy", ["sequential", "vmap"])
def test_a_unit_that_fails_is_named_by_hash_and_node(strategy):
    unit_hash = units_of(GRAPH, ExpertSpec.of(OddExpert(), "bbox"))[0]["pair 0"]
    with pytest.raises(RecordingFailedError, match=rf"{unit_hash} \(pair 0\).*2"):
        get_trace_hierarchical(GRAPH, strategy, expert=OddExpert())
    with pytest.raises(RecordingFailedError, match="BrittleError: glass"):
        get_trace_hierarchical(GRAPH, strategy, expert=BrittleExpert())


def test_a_strategy_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="strategy") as caught:
        get_trace_hierarchical(GRAPH, "vmpa", expert=CellExpert())
    assert str(caught.value) == (
        "Invalid parallelization strategy: 'vmpa'\n  Valid options: 'auto', 'vmap', 'pmap', 'sequential'"
    )


def test_pmap_on_one_device_is_refused():
    with pytest.raises(RuntimeError) as caught:
        get_trace_hierarchical(GRAPH, "pmap", expert=CellExpert())
    assert str(caught.value) == (
        "Cannot use strategy='pmap': only 1 device available\n"
        "  pmap requires 2+ devices (multi-GPU or distributed cluster)\n"
        "  Use: strategy='vmap' or strategy='auto'"
    )


def test_without_jax_everything_sequential_works_and_the_rest_says_so(tmp_path):
    code = f"""{BLOCK_JAX}
import json
from trace_experts import CellExpert, tiny_pairs
from jaxarc.traces import *
from jaxarc.traces.recording import choose_strategy
graph = Graph({{f"pair {{i}}": pair for i, pair in enumerate(tiny_pairs())}})
cache = TraceCache({str(tmp_path)!r})
recordings = [get_trace_hierarchical(graph, one, expert=CellExpert(), cache=cache) for one in ("auto", "sequential")]
try:
    choose_strategy("vmap")
except ImportError as error:
    message = str(error)
traces = [trace.to_json() for trace in recordings[0].traces.values()]
assert "jax" not in sys.modules
print(json.dumps([traces, recordings[1].num_cached, message]))
"""
    traces, num_cached, message = json.loads(run_python(code))
    expected = record_traces(GRAPH, CellExpert(), strategy="vmap")
    assert traces == [trace.to_json() for trace in expected.traces.values()]
    assert num_cached == len(PAIRS)
    assert message == (
        "Cannot use strategy='vmap': JAX not installed\n"
        "  Install JAX: pip install jax jaxlib\n"
        "  Or use: strategy='sequential' or strategy='auto'"
    )


def test_eight_devices_give_the_same_traces():
    code = """
import json, jax
from trace_experts import CellExpert, tiny_pairs
from jaxarc.traces import Graph, record_traces
from jaxarc.traces.recording import choose_strategy
graph = Graph({f"pair {i}": pair for i, pair in enumerate(tiny_pairs())})
found = [record_traces(graph, CellExpert(), strategy="pmap", chunk_size=size) for size in (64, 3)]
traces = [[trace.to_json() for trace in one.traces.values()] for one in found]
print(json.dumps([jax.device_count(), choose_strategy("auto"), traces]))
"""
    count, auto, found = json.loads(run_python(code, devices=8))
    expected = record_traces(GRAPH, CellExpert())
    assert (count, auto) == (8, "pmap")
    assert found == [[trace.to_json() for trace in expected.traces.values()]] * 2


def test_an_expert_that_releases_the_gil_solves_two_pairs_at_once():
    code = """
import threading
from trace_experts import CellExpert, tiny_pairs
from jaxarc.traces import Graph, record_traces

class Pairwise(CellExpert):
    releases_gil = True
    both = threading.Barrier(2)
    def solve(self, pair, action_format):
        self.both.wait(timeout=30)  # goes on when another thread is here too
        return super().solve(pair, action_format)

graph = Graph({f"pair {i}": pair for i, pair in enumerate(tiny_pairs())})
print(len(record_traces(graph, Pairwise(), strategy="pmap", chunk_size=4).traces))
"""
    assert run_python(code, devices=2).split() == ["4"]
