"""The agent of an evaluation: a policy, or one with a memory of its episode; one that submits, one that replays."""

import abc
import sysconfig
import traceback
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int32, PyTree

from jaxarc import constants as c
from jaxarc.config import JaxArcConfig
from jaxarc.datasets import TaskSet
from jaxarc.device_arrays import device_array
from jaxarc.envs.environment import Action, ArcEnvironment
from jaxarc.envs.params import EnvParams
from jaxarc.envs.structured_actions import (
    ACTION_CLASSES,
    BboxAction,
    MaskAction,
    PointAction,
    StructuredAction,
    actions_of,
)
from jaxarc.errors import JaxarcError, UsageError
from jaxarc.experts.expert import Action as ActionNumbers
from jaxarc.experts.expert import Caught
from jaxarc.experts.host_canvas import check_action
from jaxarc.tasks.registry import UnknownTaskError
from jaxarc.traces.trace_files import PairFinder, TraceFileError, TraceLine, read_trace_file
from jaxarc.types import Observation, PRNGKey
from jaxarc.unroll import Policy
from jaxarc.wrappers import FlatActions

Memory = PyTree[Array]

# Where code is that only runs the agent's.
_LIBRARIES: Final = tuple(
    str(Path(folder).resolve())
    for folder in (Path(__file__).parents[1], sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"))
)


class AgentMismatchError(UsageError, ValueError):
    """An agent needs other observations than it gets, or takes other actions than it may."""


class EpisodeSpec(NamedTuple):
    """An episode of an evaluation, by task, pair and attempt."""

    task_index: Int32[Array, "*B"]  # in the task set
    pair_index: Int32[Array, "*B"]  # which test input of the task
    attempt_index: Int32[Array, "*B"]  # which episode of this test input, from 0 on


class Agent(eqx.Module):
    """Acts in one episode with a memory; evaluations ``vmap`` it.

    An agent without memory is simply a :class:`jaxarc.parallel.Policy`, a function ``(key, observation) -> action``.
    """

    @abc.abstractmethod
    def start(self, key: PRNGKey, spec: EpisodeSpec, observation: Observation) -> Memory:
        """Make the memory that an episode starts with, any pytree of arrays, from its first observation."""

    @abc.abstractmethod
    def act(self, key: PRNGKey, observation: Observation, memory: Memory) -> tuple[Action, Memory]:
        """Return the next action, structured or flat, and the memory with its shapes and dtypes unchanged."""


class Memoryless(Agent):
    """A policy as an agent."""

    policy: Policy

    def start(self, key: PRNGKey, spec: EpisodeSpec, observation: Observation) -> Memory:
        return ()

    def act(self, key: PRNGKey, observation: Observation, memory: Memory) -> tuple[Action, Memory]:
        return self.policy(key, observation), memory


def as_agent(agent: Agent | Policy) -> Agent:
    """Return an agent as it is, and a policy as an agent without memory."""
    return agent if isinstance(agent, Agent) else Memoryless(agent)


class SubmitPolicy(eqx.Module):
    """Submits at once: right where the answer equals the input."""

    selection_format: str = eqx.field(static=True)
    grid_shape: tuple[int, int] = eqx.field(static=True)

    @classmethod
    def for_config(cls, config: JaxArcConfig) -> "SubmitPolicy":
        """Make the policy of environments with this config."""
        return cls(config.action.selection_format, config.grid_shape)

    def __call__(self, key: PRNGKey, observation: Observation) -> StructuredAction:
        return submission(self.selection_format, self.grid_shape)


def submission(selection_format: str, grid_shape: tuple[int, int]) -> StructuredAction:
    """Return the action that submits; its selection does not matter."""
    if selection_format == "mask":
        return MaskAction(c.SUBMIT, jnp.zeros(grid_shape, jnp.bool_))
    if selection_format == "point":
        return PointAction(c.SUBMIT, 0, 0)
    return BboxAction(c.SUBMIT, 0, 0, 0, 0)


def as_structured(action: Action, params: EnvParams) -> StructuredAction:
    """Return an action as it is, and of flat actions, integers, those that they number; see :class:`FlatActions`."""
    is_flat = isinstance(action, int | jax.Array)
    return FlatActions(ArcEnvironment()).to_structured(action, params) if is_flat else action


def require_canvas_fits(agent: Agent, params: EnvParams) -> None:
    """Refuse an agent of one canvas where an evaluation has several; see :func:`require_agent_fits`."""
    try:
        require_agent_fits(agent, params, may_be_flat=False)
    except AgentMismatchError as error:
        height, width = params.config.grid_shape
        raise AgentMismatchError(
            f"canvases must be empty for an agent of one canvas: on that of {height}x{width} {error}"
        ) from error


def require_agent_fits(agent: Agent, params: EnvParams, *, may_be_flat: bool = True) -> None:
    """Refuse an agent that cannot act on the observations, or whose actions the environment does not take.

    Only shapes are computed.
    """
    selection_format = params.config.action.selection_format
    wanted = ACTION_CLASSES[selection_format]
    key = jax.random.key(0)
    # Everything is traced by shapes, so a wrong agent is refused before any task is played.
    observation = eqx.filter_eval_shape(lambda: ArcEnvironment().reset(key, params)[1])
    action, memory, after = _shapes_of_first_step(agent, key, observation)
    if not may_be_flat and isinstance(action, int | jax.ShapeDtypeStruct):
        raise AgentMismatchError(
            "the agent's flat actions, integers, number other cells than on another; return structured actions"
        )
    action = eqx.filter_eval_shape(as_structured, action, params)
    if not isinstance(action, wanted):
        raise AgentMismatchError(
            f"the agent takes actions of type {type(action).__name__}, but action.selection_format is "
            f"{selection_format!r}, which takes {wanted.__name__} or an integer; change the agent or the config"
        )
    if isinstance(action, MaskAction) and action.selection.shape != params.config.grid_shape:
        raise AgentMismatchError(
            f"the agent's masks have the shape {action.selection.shape}, but the canvas {params.config.grid_shape}; "
            "make them as large as the grids that it sees"
        )
    # The memory is carried through a loop, whose structure, shapes and types may not change from step to step.
    before, now = ([(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(tree)] for tree in (memory, after))
    if before != now or jax.tree.structure(memory) != jax.tree.structure(after):
        raise AgentMismatchError(
            f"the agent's memory changes from {_describe(memory)} to {_describe(after)} in its first step; keep "
            "structure, shapes and dtypes as start made them"
        )


def _shapes_of_first_step(agent: Agent, key: PRNGKey, observation: Observation) -> tuple[Any, Memory, Memory]:
    with Caught() as caught:
        return eqx.filter_eval_shape(_first_step, agent, key, observation)
    error = caught.error
    assert error is not None
    may_need_other = isinstance(error, AttributeError | IndexError | KeyError | TypeError | ValueError)
    made_for = ", or evaluate it by the rules that it was made for, with answers_visible=True if it sees answers"
    raise AgentMismatchError(
        f"the agent fails{_place_of(error)} on what this environment shows, {_describe(observation)} "
        f"({type(error).__name__}: {' '.join(str(error).split())[:200]}); "
        f"correct it{made_for if may_need_other else ''}"
    ) from error


def _place_of(error: Exception) -> str:
    """Name the last line of the agent's own code that led to an error; nothing where only libraries have a part."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<") and not str(Path(frame.filename).resolve()).startswith(_LIBRARIES)
    ]
    return f" in {frames[-1].filename}, line {frames[-1].lineno}," if frames else ""


def _first_step(agent: Agent, key: PRNGKey, observation: Observation) -> tuple[Action, Memory, Memory]:
    index = jnp.int32(0)
    memory = agent.start(key, EpisodeSpec(index, index, index), observation)
    action, after = agent.act(key, observation, memory)
    return action, *(jax.tree.map(device_array, tree) for tree in (memory, after))


def _describe(tree: PyTree) -> str:
    """Write shapes and dtypes as text: ``working_grid int8[3, 3], step_count int32[]``."""
    if isinstance(tree, dict):
        return ", ".join(f"{name} {_describe(part)}" for name, part in tree.items())
    leaves = [f"{leaf.dtype}{list(leaf.shape)}" for leaf in jax.tree.leaves(tree)]
    return ", ".join(leaves) or "nothing"


Recordings: TypeAlias = Mapping[tuple[str, int], Sequence[ActionNumbers]]
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
        numbers: list[ActionNumbers] = []
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
        stacked = actions_of(numbers, kind, config.grid_shape)
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


def read_recordings(path: str | Path, tasks: TaskSet | None = None) -> dict[tuple[str, int], tuple[ActionNumbers, ...]]:
    """Read recorded actions of test inputs, from lines as :mod:`jaxarc.traces.trace_files` says.

    Args:
        path: of the file.
        tasks: where the pairs of traces are looked up by their content, as another set may number them in another
            order; when left out, by task id and index.

    Warns:
        ShortTraceFileWarning: lines are missing, perhaps because the file was cut short between two of them.

    Raises:
        TraceFileError: a line has another format, or a test input comes twice; the message names the line.
        OSError: the file cannot be read.
    """
    lines = read_trace_file(path)
    if tasks is not None:
        finder = PairFinder(tasks)
        lines = [line._replace(pair_id=finder.find(line)) for line in lines]
    return {pair: line.actions for pair, line in _test_lines(lines).items()}


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
