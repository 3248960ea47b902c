"""Play recorded actions as an agent."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32

from jaxarc.config import JaxArcConfig
from jaxarc.datasets import TaskSet
from jaxarc.envs.structured_actions import BboxAction, MaskAction, PointAction, StructuredAction
from jaxarc.errors import JaxarcError
from jaxarc.evaluation.agent import Agent, EpisodeSpec, Memory, submission
from jaxarc.experts.expert import Action
from jaxarc.experts.host_canvas import check_action
from jaxarc.tasks.registry import UnknownTaskError
from jaxarc.traces.trace_files import TraceFileError, TraceLine, read_trace_file
from jaxarc.types import Observation, PRNGKey

Recordings: TypeAlias = Mapping[tuple[str, int], Sequence[Action]]
"""By task id and index of the test input: its actions."""


class RecordingError(JaxarcError, ValueError):
    """Recordings do not fit the tasks that they are played on."""


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
            RecordingError: a task or test input is unknown, or there is no action.
            InvalidActionError: an action is not one of the config.
        """
        # All actions in one list, and for each test input where its own begin and end: recordings of 3 and 2 actions
        # have the spans (0, 3) and (3, 5). Where there is none the span is (0, 0), so the agent submits at once.
        kind = config.action.selection_format
        spans: dict[tuple[int, int], tuple[int, int]] = {}
        numbers: list[Action] = []
        for (task_id, pair_index), actions in recordings.items():
            spans[_indices(task_id, pair_index, tasks)] = (len(numbers), len(numbers) + len(actions))
            where = f"recording of task {task_id!r}, test input {pair_index}"
            for index, action in enumerate(actions):
                check_action(action, f"{where}, action {index}", kind, config.grid_shape, config.legal_operations)
            numbers += actions
        if not numbers:
            raise RecordingError("the recordings hold no action; record at least the submit of one test input")
        # [2, T, P]: one table of beginnings and one of ends, which compiled code can index by task and pair.
        bounds = np.zeros((2, len(tasks), max(len(task.test) for task in tasks)), np.int32)
        for (task_index, pair_index), span in spans.items():
            bounds[:, task_index, pair_index] = span
        stacked = _stack(numbers, kind, config.grid_shape)
        return cls(stacked, jnp.asarray(bounds[0]), jnp.asarray(bounds[1]), submission(kind, config.grid_shape))

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


def read_recordings(path: str | Path) -> dict[tuple[str, int], tuple[Action, ...]]:
    """Read recorded actions of test inputs, from lines as :mod:`jaxarc.traces.trace_files` says.

    Warns:
        ShortTraceFileWarning: lines are missing, perhaps because the file was cut short between two of them.

    Raises:
        TraceFileError: a line has another format, or a test input comes twice; the message names the line.
        OSError: the file cannot be read.
    """
    return {pair: line.actions for pair, line in _test_lines(read_trace_file(path)).items()}


def _test_lines(lines: Iterable[TraceLine]) -> dict[tuple[str, int], TraceLine]:
    """Index the lines by test input; traces of demonstrations are left out."""
    found: dict[tuple[str, int], TraceLine] = {}
    for line in lines:
        task_id, split, pair_index = line.pair_id
        if split == "train":
            continue
        if (task_id, pair_index) in found:
            raise TraceFileError(f"{line.where}: task {task_id!r}, test input {pair_index} comes twice; keep one")
        found[task_id, pair_index] = line
    return found


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


def _stack(numbers: Sequence[Action], kind: str, grid_shape: tuple[int, int]) -> StructuredAction:
    if kind == "mask":
        # [N, H, W] masks from lists of cells: (2, 0, 0, 1, 1) selects the cells (0, 0) and (1, 1).
        cells = np.zeros((len(numbers), *grid_shape), np.bool_)
        for mask, action in zip(cells, numbers, strict=True):
            mask[list(action[1::2]), list(action[2::2])] = True
        return MaskAction(jnp.array([action[0] for action in numbers], jnp.int32), jnp.asarray(cells))
    columns = np.array(numbers, np.int32).T  # in NumPy: JAX would compile for every length
    return PointAction(*columns) if kind == "point" else BboxAction(*columns)
