"""Graphs of pairs: which pairs belong to which task, in a canonical text form, and in an order that respects needs."""

import dataclasses
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from jaxarc.constants import MAX_GRID_SIZE, NUM_COLORS
from jaxarc.errors import JaxarcError
from jaxarc.experts.expert import Pair

if TYPE_CHECKING:  # tasks import JAX, which a graph does not need
    from jaxarc.datasets import TaskSet

PairChoice: TypeAlias = Literal["all", "train", "test"]
PAIR_CHOICES: Final = ("all", "train", "test")


class GraphError(JaxarcError, ValueError):
    """A graph, or the text of a graph, breaks a rule."""


class PairId(NamedTuple):
    """Names a pair by its task, its split and its index there."""

    task_id: str
    split: str  # "train" or "test"
    pair_index: int  # 0 ..

    @property
    def node(self) -> str:
        """The name of its node in :meth:`Graph.of_tasks`."""
        return f"{self.task_id}/{self.split}/{self.pair_index}"


@dataclasses.dataclass(frozen=True, eq=False)
class Graph:
    """Named nodes, some of which carry a pair, and what each node needs.

    Two graphs are equal when their canonical texts are.

    Raises:
        GraphError: a name is empty, a need names a node that is not there, or a grid is not one.
    """

    nodes: Mapping[str, Pair | None]
    needs: frozenset[tuple[str, str]] = frozenset()  # (node, what it needs)

    def __post_init__(self) -> None:
        # The dataclass is frozen, so the checked copies are set past its guard; callers cannot change them by their own
        # dict.
        object.__setattr__(self, "nodes", {name: _checked(name, pair) for name, pair in self.nodes.items()})
        object.__setattr__(self, "needs", frozenset((str(node), str(need)) for node, need in self.needs))
        for node, need in sorted(self.needs):
            for name in (node, need):
                if name not in self.nodes:
                    raise GraphError(f"{node!r} needs {need!r}, but there is no node {name!r}; add it")

    @classmethod
    def of_tasks(cls, tasks: "TaskSet", pairs: PairChoice = "all") -> "Graph":
        """Return the graph of a task set: it needs its tasks, and each task needs its pairs.

        Args:
            tasks: the set.
            pairs: which pairs of each task.
        """
        # Three layers: "tasks of X" needs the task "007bbfb7", which needs the pair "007bbfb7/train/0", and so on.
        root = f"tasks of {tasks.name}"
        nodes: dict[str, Pair | None] = {root: None}
        needs = set()
        for task in tasks:
            nodes[task.task_id] = None
            needs.add((root, task.task_id))
        for pair_id, pair in pairs_by_id(tasks, pairs).items():
            nodes[pair_id.node] = pair
            needs.add((pair_id.task_id, pair_id.node))
        return cls(nodes, frozenset(needs))

    @classmethod
    def from_json(cls, text: str) -> "Graph":
        """Read what :meth:`to_json` wrote; keys may come in any order.

        Raises:
            GraphError: not JSON, a field is missing or of another type, or the graph breaks a rule.
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise GraphError(f"a graph is JSON, got {text[:40]!r} ({error}); write it with to_json") from error
        if not isinstance(data, dict) or set(data) != {"nodes", "needs"}:
            raise GraphError("a graph is an object with 'nodes' and 'needs' and nothing else; write it with to_json")
        if not isinstance(data["nodes"], dict) or not isinstance(data["needs"], list):
            raise GraphError("'nodes' maps names to pairs or null, 'needs' lists pairs of names; correct them")
        nodes = {name: None if grids is None else _read_pair(name, grids) for name, grids in data["nodes"].items()}
        return cls(nodes, frozenset(_read_need(need) for need in data["needs"]))

    def to_json(self) -> str:
        """Write it in the one text that equal graphs share: sorted, without spaces."""
        nodes = {name: None if pair is None else pair_to_json(pair) for name, pair in self.nodes.items()}
        return canonical_json({"nodes": nodes, "needs": sorted(self.needs)})

    @property
    def content_hash(self) -> str:
        """SHA-256 of the canonical text, 64 hexadecimal digits."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @property
    def pairs(self) -> dict[str, Pair]:
        """The nodes that carry a pair, in the order of the nodes."""
        return {name: pair for name, pair in self.nodes.items() if pair is not None}

    def subgraph(self, names: Iterable[str]) -> "Graph":
        """Return these nodes with the needs among them, in the order of this graph."""
        kept = set(names)
        if unknown := sorted(kept - set(self.nodes)):
            raise GraphError(f"there is no node {unknown[0]!r}; choose among the {len(self)} nodes of the graph")
        within = frozenset((node, need) for node, need in self.needs if node in kept and need in kept)
        return Graph({name: pair for name, pair in self.nodes.items() if name in kept}, within)

    def __len__(self) -> int:
        return len(self.nodes)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.to_json())


def pairs_by_id(tasks: "TaskSet", pairs: PairChoice = "all") -> dict[PairId, Pair]:
    """List the pairs of a task set by their id.

    Raises:
        GraphError: ``pairs`` is another word.
        UnknownAnswerError: the answer of a pair is not known.
    """
    if pairs not in PAIR_CHOICES:
        raise GraphError(f"pairs is one of {', '.join(map(repr, PAIR_CHOICES))}, got {pairs!r}; choose one")
    from jaxarc.tasks.raw_task import require_answer  # imports JAX, which a worker of an expert does without

    splits = ("train", "test") if pairs == "all" else (pairs,)
    return {
        PairId(task.task_id, split, index): Pair(*require_answer(pair, f"task {task.task_id!r}, {split} pair {index}"))
        for task in tasks
        for split in splits
        for index, pair in enumerate(task.train if split == "train" else task.test)
    }


def demonstrations_by_node(tasks: "TaskSet") -> dict[str, tuple[Pair, ...]]:
    """List for each pair of a task set, by its node, the train pairs of its task that have another input.

    So a train pair is no demonstration of itself, nor of a test pair with the same input.
    """
    return {
        PairId(task.task_id, split, index).node: tuple(
            Pair(*shown) for shown in task.train if not np.array_equal(shown[0], pair[0])
        )
        for task in tasks
        for split, pairs in (("train", task.train), ("test", task.test))
        for index, pair in enumerate(pairs)
    }


def get_scc_graphs(graph: Graph) -> list[Graph]:
    """Cut a graph into its strongly connected components.

    Returns:
        Each component as a graph with the needs within it. A component comes after all that it needs; of those that
        could come next, the one whose first node is first in the graph.
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"a Graph was expected, got {type(graph).__name__}; see Graph.of_tasks")
    import networkx  # its import takes a third of a second, too long for a command that only prints its help

    # With nodes a, b, c and the needs a -> b, b -> a, c -> a the components are {a, b}, then {c}.
    order = {name: index for index, name in enumerate(graph.nodes)}
    whole = networkx.DiGraph()
    whole.add_nodes_from(graph.nodes)
    # Edges go from a need to what needs it, so that a topological order lists needs first. The condensation has a node
    # for each component and no circles.
    whole.add_edges_from((need, node) for node, need in graph.needs)
    condensed = networkx.condensation(whole)
    members = {index: condensed.nodes[index]["members"] for index in condensed}
    first = {index: min(order[name] for name in names) for index, names in members.items()}
    sequence = networkx.lexicographical_topological_sort(condensed, key=first.__getitem__)
    return _cut(graph, [members[index] for index in sequence])


def canonical_json(value: Any) -> str:
    """Write JSON with sorted keys and without spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def pair_to_json(pair: Pair) -> dict[str, list[list[int]]]:
    """Return the grids as lists of rows, as in files of ARC tasks."""
    return {"input": pair.input.tolist(), "output": pair.output.tolist()}


def pair_from_json(grids: Mapping[str, list[list[int]]]) -> Pair:
    """Read what :func:`pair_to_json` returned."""
    return Pair(np.array(grids["input"], np.int8), np.array(grids["output"], np.int8))


def _cut(graph: Graph, components: list[set[str]]) -> list[Graph]:
    """Make the subgraphs in one pass over nodes and needs; calls of ``subgraph`` would pass over them once each."""
    # In the example: a and b are in component 0, c in 1; a -> b and b -> a are within 0, c -> a joins two and is left
    # out.
    component_of = {name: index for index, names in enumerate(components) for name in names}
    within: list[set[tuple[str, str]]] = [set() for _ in components]
    for node, need in graph.needs:
        if component_of[node] == component_of[need]:
            within[component_of[node]].add((node, need))
    nodes: list[dict[str, Pair | None]] = [{} for _ in components]
    for name, pair in graph.nodes.items():
        nodes[component_of[name]][name] = pair
    return [Graph(held, frozenset(needs)) for held, needs in zip(nodes, within, strict=True)]


def _checked(name: str, pair: Pair | None) -> Pair | None:
    if not isinstance(name, str) or not name:
        raise GraphError(f"a node has a name that is not empty, got {name!r}; name it")
    if pair is None:
        return None
    return Pair(_grid(pair[0], f"node {name!r}: input"), _grid(pair[1], f"node {name!r}: output"))


def _grid(grid: Any, where: str) -> np.ndarray:
    array = np.asarray(grid)
    if array.ndim != 2 or not np.issubdtype(array.dtype, np.integer):
        raise GraphError(f"{where} must be whole numbers in rows and columns, got {array.dtype}{list(array.shape)}")
    if not (1 <= array.shape[0] <= MAX_GRID_SIZE and 1 <= array.shape[1] <= MAX_GRID_SIZE):
        raise GraphError(f"{where} is {array.shape[0]}x{array.shape[1]}, sides are 1..{MAX_GRID_SIZE}; crop it")
    if array.min() < 0 or array.max() >= NUM_COLORS:
        raise GraphError(f"{where} holds {array.min()}..{array.max()}, colors are 0..{NUM_COLORS - 1}; recolor it")
    return array.astype(np.int8)


def _read_pair(name: str, grids: Any) -> Pair:
    if not isinstance(grids, dict) or set(grids) != {"input", "output"}:
        raise GraphError(f"node {name!r} carries null or an object with 'input' and 'output', got {grids!r:.60}")
    found = []
    for side in ("input", "output"):
        rows = grids[side]
        if not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
            raise GraphError(f"node {name!r}: {side} is a list of rows, got {rows!r:.60}; correct it")
        if len({len(row) for row in rows}) != 1 or any(type(cell) is not int for row in rows for cell in row):
            raise GraphError(f"node {name!r}: rows of {side} are equally long lists of whole numbers; correct them")
        found.append(np.array(rows))
    return Pair(*found)


def _read_need(need: Any) -> tuple[str, str]:
    if not isinstance(need, list) or len(need) != 2 or not all(isinstance(name, str) for name in need):
        raise GraphError(f"a need is a list of two names, [node, what it needs], got {need!r:.60}; correct it")
    return need[0], need[1]
