"""What is recorded: pairs and what needs them, cut into work units that are known by their content, and traces.

task set -> Graph -> its components, what is needed first -> WorkUnit -> its text -> SHA-256 -> Trace
"""

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from jaxarc.constants import MAX_GRID_SIZE, NUM_COLORS
from jaxarc.errors import JaxarcError
from jaxarc.experts.expert import (
    Action,
    ActionFormat,
    AnyExpert,
    ExpertError,
    HiddenAnswerExpert,
    InvalidActionError,
    Pair,
)
from jaxarc.experts.host_canvas import check_solution
from jaxarc.host_arrays import to_numpy

if TYPE_CHECKING:  # tasks import JAX, which recording does without
    from jaxarc.datasets import TaskSet

PairChoice: TypeAlias = Literal["all", "train", "test"]
PAIR_CHOICES: Final = ("all", "train", "test")


class GraphError(JaxarcError, ValueError):
    """A graph breaks a rule."""


class RecordingFailedError(ExpertError):
    """A unit that had to be recorded has no trace."""


class TimeLimitError(ExpertError):
    """An expert took longer than its time limit."""


class WorkerDiedError(ExpertError):
    """The process of an expert ended before it answered."""


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

    Raises:
        GraphError: a name is empty, a need names a node that is not there, or a grid is not one.
    """

    nodes: Mapping[str, Pair | None]
    needs: frozenset[tuple[str, str]] = frozenset()  # (node, what it needs)

    def __post_init__(self) -> None:
        # The dataclass is frozen, so the checked copies are set past its guard.
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

    @property
    def pairs(self) -> dict[str, Pair]:
        """The nodes that carry a pair, in the order of the nodes."""
        return {name: pair for name, pair in self.nodes.items() if pair is not None}

    def __len__(self) -> int:
        return len(self.nodes)


def get_scc_graphs(graph: Graph) -> list[Graph]:
    """Cut a graph into its strongly connected components, each with the nodes and needs within it.

    A component comes after all that it needs, and otherwise where its first node stands in the graph.
    """
    if not isinstance(graph, Graph):
        raise TypeError(f"a Graph was expected, got {type(graph).__name__}; see Graph.of_tasks")
    components = list(_components(graph))
    # One pass over the nodes and one over the needs. With the components {a, b} and {c}, a -> b is within the first,
    # c -> a joins two and is left out.
    component_of = {name: index for index, names in enumerate(components) for name in names}
    nodes: list[dict[str, Pair | None]] = [{} for _ in components]
    within: list[set[tuple[str, str]]] = [set() for _ in components]
    for name, pair in graph.nodes.items():
        nodes[component_of[name]][name] = pair
    for node, need in graph.needs:
        if component_of[node] == component_of[need]:
            within[component_of[node]].add((node, need))
    return [Graph(held, frozenset(needs)) for held, needs in zip(nodes, within, strict=True)]


def _components(graph: Graph) -> Iterator[list[str]]:
    """Yield the components, needs first: Tarjan's algorithm (1972), without recursion.

    It walks from node to need. ``lowest`` of a node is the least number of a node on the path that is reached from it;
    a node that reaches none before itself closes a component. With the needs a -> b, b -> a, c -> a the walk a, b
    numbers them 0 and 1, b reaches 0, and a closes {a, b}; then c is alone.
    """
    rank = {name: index for index, name in enumerate(graph.nodes)}
    needs: dict[str, list[str]] = {name: [] for name in graph.nodes}
    for node, need in sorted(graph.needs, key=lambda pair: rank[pair[1]]):
        needs[node].append(need)
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}  # of the nodes that are in no component yet
    path: list[str] = []  # the same nodes, in the order of their numbers
    for first in graph.nodes:
        walk = [] if first in number else [(first, iter(needs[first]))]
        while walk:
            node, rest = walk[-1]
            if node not in number:
                number[node] = lowest[node] = len(number)
                path.append(node)
            for need in rest:
                if need not in number:
                    walk.append((need, iter(needs[need])))
                    break
                if need in lowest:
                    lowest[node] = min(lowest[node], number[need])
            else:
                walk.pop()
                if walk:
                    lowest[walk[-1][0]] = min(lowest[walk[-1][0]], lowest[node])
                if lowest[node] == number[node]:
                    component = [node]
                    while (last := path.pop()) != node:
                        component.append(last)
                    for name in component:
                        del lowest[name]
                    yield component


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


class ExpertSpec(NamedTuple):
    """An expert and the format of its actions: together with the pair, all that a trace depends on."""

    expert: str  # the expert's name
    version: int  # the expert's version
    settings: str  # of an expert that is a dataclass its fields, in canonical JSON; else empty
    action_format: ActionFormat
    canvas: tuple[int, int] = (MAX_GRID_SIZE, MAX_GRID_SIZE)  # rows and columns

    @property
    def title(self) -> str:
        """A line for people."""
        return f"{self.expert} {self.version}, {self.action_format}, {self.canvas[0]}x{self.canvas[1]}"

    @classmethod
    def of(cls, expert: AnyExpert, action_format: ActionFormat) -> "ExpertSpec":
        """Return the spec of an expert on the full canvas.

        Raises:
            ExpertError: its name is not a text, its version not an int, or one of its settings cannot be written as
                JSON.
        """
        if expert is None or isinstance(expert, str):
            raise ExpertError(f"an expert has a name, a version and a method solve, got {expert!r}; see find_expert")
        if not isinstance(expert.name, str) or not expert.name:
            raise ExpertError(f"an expert's name is a text that is not empty, got {expert.name!r}; name it")
        if type(expert.version) is not int:
            raise ExpertError(
                f"the version of the expert {expert.name!r} is an int, got {expert.version!r}; correct it"
            )
        return cls(expert.name, expert.version, _settings_of(expert), action_format)


class WorkUnit(NamedTuple):
    """One pair to be solved. It holds no task id: an equal pair of another task is the same unit."""

    pair: Pair
    spec: ExpertSpec
    demonstrations: tuple[Pair, ...] = ()  # what a HiddenAnswerExpert is shown instead of the output

    @classmethod
    def from_json(cls, text: str) -> "WorkUnit":
        """Read what :meth:`to_json` wrote."""
        data = json.loads(text)
        spec = ExpertSpec(
            data["expert"],
            data["version"],
            data["settings"],
            cast(ActionFormat, data["action_format"]),
            tuple(data["canvas"]),
        )
        shown = data.get("demonstrations", [])
        return cls(_pair_from_json(data["pair"]), spec, tuple(map(_pair_from_json, shown)))

    def to_json(self) -> str:
        """Write it in the one text that equal units share."""
        fields: dict[str, Any] = {**self.spec._asdict(), "pair": _pair_to_json(self.pair)}
        if self.demonstrations:
            fields["demonstrations"] = list(map(_pair_to_json, self.demonstrations))
        return _canonical_json(fields)

    @property
    def content_hash(self) -> str:
        """SHA-256 of its text, 64 hexadecimal digits.

        The text is that without demonstrations: a trace that solves the pair is valid whatever the expert was shown.
        """
        return hashlib.sha256(self._replace(demonstrations=()).to_json().encode()).hexdigest()


class Trace(NamedTuple):
    """Actions that turn the input of a unit into its output, the last of them a submit; checked by replay."""

    unit_hash: str
    spec: ExpertSpec
    actions: tuple[Action, ...]

    def to_json(self) -> str:
        """Write it in canonical form."""
        return _canonical_json({"unit": self.unit_hash, "spec": self.spec, "actions": self.actions})

    @classmethod
    def from_json(cls, text: str) -> "Trace":
        """Read what :meth:`to_json` wrote.

        Raises:
            ValueError: it is not such a text.
        """
        try:
            data = json.loads(text)
            expert, version, settings, action_format, (height, width) = data["spec"]
            actions = tuple(tuple(action) for action in data["actions"])
            return cls(data["unit"], ExpertSpec(expert, version, settings, action_format, (height, width)), actions)
        except (KeyError, TypeError, RecursionError) as error:
            raise ValueError(f"not a trace: {text[:60]!r}; record it again") from error


class Failure(NamedTuple):
    """Why a unit has no trace."""

    unit_hash: str
    kind: str  # the class of the error, such as NotSolvedError
    message: str


def solve_unit(expert: AnyExpert, unit: WorkUnit) -> tuple[Action, ...]:
    """Let an expert solve a unit, and return its checked actions; a :class:`HiddenAnswerExpert` sees no output.

    Raises:
        ExpertError: as :func:`checked_actions`; and whatever the expert raises.
    """
    action_format = unit.spec.action_format
    if isinstance(expert, HiddenAnswerExpert):
        actions = expert.solve_hidden(unit.demonstrations, unit.pair.input, action_format)
    else:
        actions = expert.solve(unit.pair, action_format)
    return checked_actions(unit.pair, actions, action_format)


def checked_actions(pair: Pair, actions: Any, action_format: ActionFormat) -> tuple[Action, ...]:
    """Return an expert's actions as tuples of ints that provably solve the pair.

    Raises:
        InvalidActionError: they are not lists of whole numbers, or one is not an action of the format.
        NotSolvedError: they do not end in the pair's output, submitted.
    """
    try:
        listed = tuple(tuple(action) for action in actions)
    except TypeError as error:
        raise InvalidActionError(
            f"an expert returns lists of whole numbers, such as [[34, 0, 0]], got {actions!r:.80} ({error}); correct it"
        ) from error
    check_solution(pair, listed, action_format)
    return tuple(tuple(map(int, action)) for action in listed)  # NumPy's integers become Python's


def checked_trace(unit: WorkUnit, actions: Any) -> Trace:
    """Check actions as :func:`checked_actions` does, and make a trace of them."""
    return Trace(unit.content_hash, unit.spec, checked_actions(unit.pair, actions, unit.spec.action_format))


def _canonical_json(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _pair_to_json(pair: Pair) -> dict[str, list[list[int]]]:
    """Return the grids as lists of rows, as in files of ARC tasks."""
    return {"input": pair.input.tolist(), "output": pair.output.tolist()}


def _pair_from_json(grids: Mapping[str, list[list[int]]]) -> Pair:
    return Pair(np.array(grids["input"], np.int8), np.array(grids["output"], np.int8))


def _settings_of(expert: AnyExpert) -> str:
    if not dataclasses.is_dataclass(expert) or isinstance(expert, type):
        return ""
    try:
        return _canonical_json(dataclasses.asdict(expert))
    except (TypeError, ValueError) as error:
        raise ExpertError(
            f"the settings of the expert {expert.name!r} cannot be written as JSON ({error}); give its fields numbers, "
            "texts, and tuples of them"
        ) from error


def _checked(name: str, pair: Pair | None) -> Pair | None:
    if not isinstance(name, str) or not name:
        raise GraphError(f"a node has a name that is not empty, got {name!r}; name it")
    if pair is None:
        return None
    return Pair(_grid(pair[0], f"node {name!r}: input"), _grid(pair[1], f"node {name!r}: output"))


def _grid(grid: Any, where: str) -> np.ndarray:
    array = to_numpy(grid)
    if array.ndim != 2 or not np.issubdtype(array.dtype, np.integer):
        raise GraphError(f"{where} must be whole numbers in rows and columns, got {array.dtype}{list(array.shape)}")
    if not (1 <= array.shape[0] <= MAX_GRID_SIZE and 1 <= array.shape[1] <= MAX_GRID_SIZE):
        raise GraphError(f"{where} is {array.shape[0]}x{array.shape[1]}, sides are 1..{MAX_GRID_SIZE}; crop it")
    if array.min() < 0 or array.max() >= NUM_COLORS:
        raise GraphError(f"{where} holds {array.min()}..{array.max()}, colors are 0..{NUM_COLORS - 1}; recolor it")
    return array.astype(np.int8)
