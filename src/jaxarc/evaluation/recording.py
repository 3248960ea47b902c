"""Play recorded actions as an agent, from files with one line of JSON for each test input.

``{"task_id": "007bbfb7", "pair_index": 0, "actions": [[33, 0, 0, 8, 8], ..., [34, 0, 0, 0, 0]]}``: an action is its
operation and then row and column of a point, ``r1, c1, r2, c2`` of a box, or row and column of every cell of a mask.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32

from jaxarc.config import JaxArcConfig
from jaxarc.datasets import TaskSet
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction, StructuredAction
from jaxarc.errors import JaxarcError
from jaxarc.evaluation.agent import Agent, EpisodeSpec, Memory
from jaxarc.evaluation.builtin_agents import submission
from jaxarc.experts.traces.trace_file import warn_of_missing_lines
from jaxarc.files import ChecksumError, verify_checksum
from jaxarc.tasks.registry import UnknownTaskError
from jaxarc.types import Observation, PRNGKey

Recordings: TypeAlias = Mapping[tuple[str, int], Sequence[Sequence[int]]]
"""By task id and index of the test input: its actions, each a list of numbers."""

_TAKES: Final = {
    "point": "operation, row, column",
    "bbox": "operation, r1, c1, r2, c2",
    "mask": "operation, then row and column of each cell",
}


class RecordingError(JaxarcError, ValueError):
    """A recording cannot be read, or does not fit the tasks or the actions of an environment."""


class RecordedAgent(Agent):
    """Plays the recording of a test input, and submits where it ends or there is none.

    The recordings of all test inputs are one array of actions, one after the other. With 3 actions for test 0 of task 0
    and 2 for test 1 of task 1, ``first`` is ``[[0 0] [0 3]]`` and ``after`` is ``[[3 0] [0 5]]``: test 0 of task 1 has
    none, so its first step is after its last.
    """

    actions: StructuredAction  # of all recordings, one after the other
    first: Int32[Array, "T P"]  # index of the first action of a test input
    after: Int32[Array, "T P"]  # index after its last action
    end: StructuredAction  # the submit that follows

    @classmethod
    def create(cls, recordings: Recordings, tasks: TaskSet, config: JaxArcConfig) -> "RecordedAgent":
        """Make an agent that plays these recordings.

        Args:
            recordings: for some or all test inputs.
            tasks: the tasks of the evaluation.
            config: the rules of the evaluation.

        Raises:
            RecordingError: a task or test input is unknown, there is no action, or an action is not one of the config.
        """
        # All actions in one list, and for each test input where its own begin and end: recordings of 3 and 2 actions
        # have the spans (0, 3) and (3, 5). Where there is none the span is (0, 0), so the agent submits at once.
        spans: dict[tuple[int, int], tuple[int, int]] = {}
        numbers: list[Sequence[int]] = []
        for (task_id, pair_index), actions in recordings.items():
            spans[_indices(task_id, pair_index, tasks)] = (len(numbers), len(numbers) + len(actions))
            where = f"recording of task {task_id!r}, test input {pair_index}"
            numbers += [_checked(action, f"{where}, action {i}", config) for i, action in enumerate(actions)]
        if not numbers:
            raise RecordingError("the recordings hold no action; record at least the submit of one test input")
        # [2, T, P]: one table of beginnings and one of ends, which compiled code can index by task and pair.
        bounds = np.zeros((2, len(tasks), max(len(task.test) for task in tasks)), np.int32)
        for (task_index, pair_index), span in spans.items():
            bounds[:, task_index, pair_index] = span
        kind = config.action.selection_format
        shape = config.grid_shape
        actions = _stack(numbers, kind, shape)
        return cls(actions, jnp.asarray(bounds[0]), jnp.asarray(bounds[1]), submission(kind, shape))

    def start(self, key: PRNGKey, spec: EpisodeSpec, observation: Observation) -> Memory:
        """Remember the index of the next action, and the index after the last one."""
        indices = spec.task_index, spec.pair_index
        return self.first[indices], self.after[indices]

    def act(self, key: PRNGKey, observation: Observation, memory: Memory) -> tuple[StructuredAction, Memory]:
        index, after = memory
        # The index is clipped to be valid; behind the recording's end the submit takes its place anyway.
        recorded = jax.tree.map(lambda x: x[jnp.minimum(index, x.shape[0] - 1)], self.actions)
        action = jax.tree.map(lambda x, last: jnp.where(index < after, x, last), recorded, self.end)
        return action, (index + 1, after)


def read_recordings(path: str | Path) -> dict[tuple[str, int], list[list[int]]]:
    """Read recorded actions.

    Warns:
        ShortTraceFileWarning: lines are missing, perhaps because the file was cut short between two of them.

    Raises:
        RecordingError: a line has another format, or a test input comes twice; the message names the line.
        OSError: the file cannot be read.
    """
    return {pair: _actions(value, where) for pair, value, where in _lines(path)}


def read_action_counts(path: str | Path) -> dict[tuple[str, int], int]:
    """Read how many actions an expert took: lines as for :func:`read_recordings`, or with a number as ``actions``.

    Raises:
        RecordingError: a line has another format, or a test input comes twice; the message names the line.
        OSError: the file cannot be read.
    """
    counts = {}
    for pair, value, where in _lines(path):
        counts[pair] = value if type(value) is int else len(_actions(value, where))
        if counts[pair] < 1:
            raise RecordingError(f"{where}: 'actions' says {value!r}; an expert takes at least one action, the submit")
    return counts


def _lines(path: str | Path) -> list[tuple[tuple[str, int], Any, str]]:
    """Return test input, actions and line number of every line; traces of demonstrations are left out."""
    found: dict[tuple[str, int], tuple[Any, str]] = {}
    written = 0
    try:
        lines = Path(path).read_text(encoding="utf-8").removesuffix("\n").split("\n")  # JSON texts may hold U+2028
    except UnicodeDecodeError as error:
        raise RecordingError(f"{path}: not UTF-8 text (byte {error.start}); save the file as UTF-8") from error
    for number, line in enumerate(lines, start=1):
        where = f"{path}, line {number}"
        pair, value, of = _line(line, where)
        written = max(written, of)
        if pair is None:
            continue
        if pair in found:
            raise RecordingError(f"{where}: task {pair[0]!r}, test input {pair[1]} comes twice; keep one")
        found[pair] = value, where
    warn_of_missing_lines(path, len(lines), written)
    return [(pair, value, where) for pair, (value, where) in found.items()]


def _line(line: str, where: str) -> tuple[tuple[str, int] | None, Any, int]:
    """Return test input, actions, and the number of lines that the file should have, 0 where it does not say.

    The test input is None where the line is about a demonstration.
    """
    try:
        data = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"{where}: not JSON ({error}); write one object a line") from error
    if not isinstance(data, dict) or not {"task_id", "pair_index", "actions"} <= set(data):
        raise RecordingError(
            f'{where}: an object with task_id, pair_index and actions is expected; write {{"task_id": "007bbfb7", '
            '"pair_index": 0, "actions": [[34, 0, 0, 0, 0]]}'
        )
    try:
        data = verify_checksum(data)
    except ChecksumError as error:
        raise RecordingError(f"{where}: {error}") from error
    task_id = data["task_id"]
    pair_index = data["pair_index"]
    if not isinstance(task_id, str) or type(pair_index) is not int:
        raise RecordingError(f"{where}: task_id is a text and pair_index a whole number; correct them")
    of = data.get("of", 0)
    is_test = data.get("split", "test") != "train"
    return (task_id, pair_index) if is_test else None, data["actions"], of if type(of) is int else 0


def _actions(value: Any, where: str) -> list[list[int]]:
    listed = isinstance(value, list) and all(isinstance(action, list) and action for action in value)
    if not listed or any(type(number) is not int for action in value for number in action):
        raise RecordingError(f"{where}: actions are lists of whole numbers, such as [[34, 0, 0, 0, 0]]; correct them")
    return value


def _indices(task_id: str, pair_index: int, tasks: TaskSet) -> tuple[int, int]:
    """Find task and test input in a task set."""
    try:
        task_index = tasks.index_of(task_id)
    except UnknownTaskError as error:
        raise RecordingError(f"the recordings are not of these tasks: {error}") from error
    count = len(tasks.tasks[task_index].test)
    if not 0 <= pair_index < count:
        raise RecordingError(
            f"task {task_id!r} has test inputs 0..{count - 1}, got pair_index {pair_index}; correct it"
        )
    return task_index, pair_index


def _checked(action: Sequence[int], where: str, config: JaxArcConfig) -> Sequence[int]:
    kind = config.action.selection_format
    height, width = config.grid_shape
    # A mask is an operation and pairs of numbers, a row and a column for each cell; a point has one pair, a box two.
    fits = len(action) % 2 == 1 if kind == "mask" else len(action) == 1 + {"point": 2, "bbox": 4}[kind]
    if not fits:
        raise RecordingError(
            f"{where}: {len(action)} numbers, but action.selection_format={kind!r} takes {_TAKES[kind]}; play it in "
            "the format it was recorded in"
        )
    if action[0] not in config.legal_operations:
        raise RecordingError(f"{where}: operation {action[0]} is not among those allowed, {config.legal_operations}")
    for name, indices, side in (("row", action[1::2], height), ("column", action[2::2], width)):
        wrong = [index for index in indices if not 0 <= index < side]
        if wrong:
            raise RecordingError(
                f"{where}: {name} {wrong[0]} is not on the canvas of {height}x{width}; play it on a larger one"
            )
    return action


def _stack(numbers: Sequence[Sequence[int]], kind: str, grid_shape: tuple[int, int]) -> StructuredAction:
    if kind == "mask":
        # [N, H, W] masks from lists of cells: (2, 0, 0, 1, 1) selects the cells (0, 0) and (1, 1).
        cells = np.zeros((len(numbers), *grid_shape), np.bool_)
        for mask, action in zip(cells, numbers, strict=True):
            mask[list(action[1::2]), list(action[2::2])] = True
        return MaskAction(jnp.array([action[0] for action in numbers], jnp.int32), jnp.asarray(cells))
    columns = np.array(numbers, np.int32).T  # in NumPy: JAX would compile for every length
    return PointAction(*columns) if kind == "point" else BboxAction(*columns)
