"""Sessions of people as traces of mask actions, played and compared step by step."""

import copy
import dataclasses
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from jaxarc import constants as c
from jaxarc.experts.expert import Action, ExpertError, Pair
from jaxarc.experts.host_canvas import FULL_CANVAS, HostCanvas, check_action
from jaxarc.experts.traces.graph import PairId
from jaxarc.experts.traces.human_sessions import HumanSession
from jaxarc.experts.traces.trace import Trace, checked_trace
from jaxarc.experts.traces.work_unit import ExpertSpec, WorkUnit, hash_of

if TYPE_CHECKING:
    from jaxarc.datasets import TaskSet

HUMAN: Final = ExpertSpec("human", 1, "", "mask")


class Rejected(NamedTuple):
    """A session that makes no trace."""

    name: str
    task_id: str
    reason: str


@dataclasses.dataclass
class HumanTraces:
    """What became of sessions."""

    traces: dict[PairId, Trace]  # of several that solve a pair, the shortest
    rejected: list[Rejected]
    num_sessions: int = 0
    num_steps: int = 0  # of the sessions that make traces
    num_rewritten: int = 0  # of them: steps that no single action does, written as fills of the cells that changed


def convert_sessions(sessions: Iterable[HumanSession], tasks: "TaskSet") -> HumanTraces:
    """Turn sessions on the test pairs of some tasks into traces.

    The editor has tools that we have not (undo, layers) or that work otherwise (it turns a selection around its own
    center). A step is taken as the action of the same name where that leaves the very grid that the session recorded;
    otherwise as fills, one for each color, that leave it. What does not end in the output is rejected.
    """
    found = HumanTraces({}, [])
    for session in sessions:
        found.num_sessions += 1
        try:
            pair_id, trace, num_rewritten = _convert(session, tasks)
        except ExpertError as error:
            found.rejected.append(Rejected(session.name, session.task_id, str(error)))
            continue
        found.num_steps += len(session.steps)
        found.num_rewritten += num_rewritten
        if pair_id not in found.traces or len(trace.actions) < len(found.traces[pair_id].actions):
            found.traces[pair_id] = trace
    return found


def _convert(session: HumanSession, tasks: "TaskSet") -> tuple[PairId, Trace, int]:
    if session.problem or session.start is None:
        raise ExpertError(session.problem)
    task_id = _task_named(session.task_id, tasks)
    end = session.steps[-1].after if session.steps else session.start
    outputs = [pair[1] for pair in tasks.raw_task(task_id).test]
    index = next((i for i, output in enumerate(outputs) if np.array_equal(output, end)), None)
    if index is None:
        raise ExpertError(f"the last grid is the output of none of the {len(outputs)} test pairs")
    pair = Pair(*tasks.raw_task(task_id).test[index])
    actions, num_rewritten = _actions(session.start, session, pair)
    unit = WorkUnit(pair, HUMAN)
    return PairId(task_id, "test", index), checked_trace(hash_of(unit.to_json()), unit, actions), num_rewritten


def _task_named(task_id: str, tasks: "TaskSet") -> str:
    """Find a task by id or by title; Mini-ARC traces put one behind the other."""
    if task_id in tasks:
        return task_id
    for task in tasks:
        if task_id.endswith(f"_{task.task_id}") or (task.title and task_id.casefold() == task.title.casefold()):
            return task.task_id
    raise ExpertError(f"{tasks.name!r} has no task {task_id!r}")


def _actions(start: np.ndarray, session: HumanSession, pair: Pair) -> tuple[list[Action], int]:
    canvas = HostCanvas(pair.input)
    actions = _rewritten(canvas, start)
    num_rewritten = 0
    for step in session.steps:
        if np.array_equal(canvas.grid, step.after):  # a selection, a copy, a layer, or a tool that did nothing
            continue
        if step.guess is not None and (played := _played(step.guess, canvas, step.after)) is not None:
            canvas = played
            actions.append(step.guess)
        else:
            actions += _rewritten(canvas, step.after)
            num_rewritten += 1
    return [*actions, (c.SUBMIT,)], num_rewritten


def _played(guess: Action, canvas: HostCanvas, after: np.ndarray) -> HostCanvas | None:
    """Return the canvas after an action, if that is valid and leaves the grid that was recorded."""
    tried = copy.deepcopy(canvas)
    try:
        check_action(guess, 0, "mask", FULL_CANVAS)
    except ExpertError:
        return None
    tried.apply(guess, "mask")
    return tried if np.array_equal(tried.grid, after) else None


def _rewritten(canvas: HostCanvas, wanted: np.ndarray) -> list[Action]:
    """Bring the canvas to a grid by a resize and a fill for each color, and return these actions."""
    height, width = wanted.shape
    actions: list[Action] = [] if canvas.grid.shape == wanted.shape else [(c.RESIZE, height - 1, width - 1)]
    for action in actions:
        canvas.apply(action, "mask")
    changed = canvas.grid != wanted
    if changed.any() and not wanted.any():
        actions.append((c.CLEAR,))
    else:
        for color in np.unique(wanted[changed]).tolist():
            cells = np.argwhere(changed & (wanted == color))
            actions.append((c.FILL + color, *cells.ravel().tolist()))
    canvas.grid = wanted.copy()
    return actions
