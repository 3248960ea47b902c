"""An episode that a person plays: moves with undo and redo, saved in a file after each of them.

The file is a file of traces with one line. ``jaxarc traces verify`` replays its actions; its field ``session`` holds
everything that the player did, moves that were taken back and hints included.
"""

import datetime
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from jaxarc.errors import JaxarcError
from jaxarc.experts import Action, Painter, Pair
from jaxarc.experts.host_canvas import check_action
from jaxarc.files import file_name
from jaxarc.play.session import MOST_STEPS, Session, StateView, StepResult
from jaxarc.render.actions import describe_action
from jaxarc.tasks.raw_task import require_answer
from jaxarc.traces import ExpertSpec, PairId, Trace, WorkUnit
from jaxarc.traces.trace_files import TraceFileError, TraceLine, read_trace_file, write_trace_file


class WrongMoveError(JaxarcError, ValueError):
    """A request that the episode does not allow."""


class Move(NamedTuple):
    """An action and its result."""

    action: Action
    result: StepResult


class Episode:
    """The moves on one pair.

    To go back is to take an earlier state. States are immutable, so that equals a replay of the remaining actions.
    """

    def __init__(self, name: str, session: Session, pair_id: PairId, dataset: str, folder: Path):
        """Reset the session to the pair.

        Raises:
            UnknownTaskError: there is no such task.
            WrongMoveError: the task has no such pair.
        """
        self.name = name
        self.pair_id = pair_id
        self.dataset = dataset
        self.pair = _pair_at(pair_id, session)
        self.file: Path | None = None
        self._session = session
        self._folder = folder
        self._file_problem = ""
        self._first = session.reset(pair_id)
        self._moves: list[Move] = []
        self._in_force = 0  # number of moves in force; the moves after them were taken back
        self._events: list[Event] = []
        self._plans: dict[tuple[Action, ...], tuple[Action, ...]] = {}  # actions so far -> proposed ones
        self._source: Path | None = None  # file of the episode that this one continues
        self._was_helped = False
        self._begun = datetime.datetime.now().astimezone()
        self._clock = time.monotonic()

    def act(self, action: Action) -> None:
        """Take a step in the environment; moves that were taken back are dropped.

        Raises:
            InvalidActionError: the action does not fit the format or the canvas.
            WrongMoveError: the episode is over.
        """
        self._take(action)
        self._note("act", action)

    def take_up(self, actions: Sequence[Action], was_helped: bool, source: Path) -> None:
        """Repeat the actions of an earlier episode on this pair; this episode gets a file of its own.

        Args:
            actions: those in force at its end.
            was_helped: whether it took hints; then this episode counts as helped, too.
            source: its file.

        Raises:
            InvalidActionError, WrongMoveError: as for :meth:`act`.
        """
        for action in actions:
            self._take(action)
            self._events.append(Event(0.0, "act", action))
        self._source = source
        self._was_helped = was_helped

    def rewind(self, to: int) -> None:
        """Go to the state after the first ``to`` moves: undo or redo.

        Raises:
            WrongMoveError: there are fewer moves.
        """
        if not 0 <= to <= len(self._moves):
            raise WrongMoveError(f"there are {len(self._moves)} moves, so go to 0..{len(self._moves)}, not {to}")
        if to != self._in_force:
            # Moves are kept, so that a later rewind can go forward to them again.
            self._in_force = to
            self._note("rewind", (to,))

    def hint(self) -> Action:
        """Return the next action of the painter, an expert that sees the answer; the hint is recorded as help.

        Raises:
            WrongMoveError: the episode is over.
        """
        self._require_open()
        done = self._actions
        if done not in self._plans:
            # A plan also answers the hints after its first actions: with plan a b c and done x, after x a comes b.
            plan = Painter().solve(Pair(self._view.grid, self.pair.output), self._session.action_format)
            self._plans.update({(*done, *plan[:count]): plan[count:] for count in range(len(plan))})
        action = self._plans[done][0]
        self._note("hint", action)
        return action

    def save(self) -> None:
        """Write the file if there is any event. After an error of the disk the board shows it, and the game goes on."""
        if not self._events:
            return
        num_hints = sum(event.kind == "hint" for event in self._events)
        expert = HELPED if num_hints or self._was_helped else ALONE
        spec = ExpertSpec(expert, 1, "", self._session.action_format)
        trace = Trace(WorkUnit(self.pair, spec).content_hash, spec, self._actions)
        session = {
            "begun": self._begun.isoformat(timespec="seconds"),
            "seconds": self._events[-1].seconds,
            "solved": self._now.is_solved,
            "return": round(self._return, 6),
            "hints": num_hints,
            "rewinds": sum(event.kind == "rewind" for event in self._events),
            "events": self._events,
        } | ({} if self._source is None else {"continues": self._source.name})
        try:
            self.file = self.file or new_episode_file(self._folder, self.pair_id, self._begun)
            write_trace_file(self.file, {self.pair_id: trace}, {"dataset": self.dataset, "session": session})
        except OSError as error:
            self._file_problem = f"not saved ({error}); free some space or fix the folder, then save again"
        else:
            self._file_problem = ""

    def board(self) -> dict[str, Any]:
        """Return the state of the board for the page, as JSON."""
        view = self._view
        now = self._now
        action_format = self._session.action_format
        return {
            "episode": self.name,
            "grid": view.grid.tolist(),
            "clipboard": None if view.clipboard_box is None else view.clipboard_box.tolist(),
            "selected": np.argwhere(view.selected).tolist(),
            "similarity": now.similarity,
            "reward": now.reward if self._in_force else None,
            "return": self._return,
            "steps": int(view.step_count),
            "most_steps": MOST_STEPS,
            "ending": self._ending(view),
            "in_force": self._in_force,
            "moves": [
                {
                    "name": describe_action(action, action_format),
                    "reward": result.reward,
                    "similarity": result.similarity,
                }
                for action, result in self._moves
            ],
            "hints": sum(event.kind == "hint" for event in self._events),
            "file": None if self.file is None else str(self.file),
            "file_problem": self._file_problem,
        }

    @property
    def _now(self) -> StepResult:
        return self._moves[self._in_force - 1].result if self._in_force else self._first

    @property
    def _view(self) -> StateView:
        return self._session.view(self._now.state)

    @property
    def _actions(self) -> tuple[Action, ...]:
        return tuple(move.action for move in self._moves[: self._in_force])

    @property
    def _return(self) -> float:
        return sum(move.result.reward for move in self._moves[: self._in_force])

    def _ending(self, view: StateView) -> str | None:
        if self._now.is_solved:
            return "solved"
        if view.terminated:
            return "wrong"
        return "out of time" if view.truncated else None

    def _take(self, action: Action) -> None:
        check_action(action, f"action {self._in_force}", self._session.action_format)
        self._require_open()
        move = Move(action, self._session.step(self._now.state, action))
        # After moves a b c and an undo to 1, only a is in force: a new move d makes a d, and b and c are gone.
        self._moves = [*self._moves[: self._in_force], move]
        self._in_force += 1

    def _require_open(self) -> None:
        if self._ending(self._view) is not None:
            raise WrongMoveError("the episode is over; undo its last move, or go to another pair")

    def _note(self, kind: Literal["act", "rewind", "hint"], numbers: Action) -> None:
        self._events.append(Event(round(time.monotonic() - self._clock, 2), kind, numbers))
        self.save()


def _pair_at(pair_id: PairId, session: Session) -> Pair:
    task = session.tasks.raw_task(pair_id.task_id)
    try:
        pair = task.pair(pair_id.split, pair_id.pair_index)
    except IndexError as error:
        raise WrongMoveError(str(error)) from error
    return Pair(*require_answer(pair, f"task {pair_id.task_id}, {pair_id.split} pair {pair_id.pair_index}"))


ALONE: Final = "human"
HELPED: Final = "human-with-hints"
"""Experts of the traces that people play: with hints they count as another expert."""


class Event(NamedTuple):
    """One thing that a player did."""

    seconds: float  # since the episode began
    kind: Literal["act", "rewind", "hint"]
    numbers: Action  # the action taken or proposed; of a rewind the number of actions in force


def read_human_episode(path: Path) -> TraceLine:
    """Read the trace of a saved episode.

    Raises:
        TraceFileError: the file does not hold exactly one trace.
        OSError: the file cannot be read.
    """
    lines = read_trace_file(path)
    if len(lines) != 1:
        raise TraceFileError(f"{path} holds {len(lines)} traces; name a file of jaxarc play, which has one")
    return lines[0]


def new_episode_file(folder: Path, pair_id: PairId, begun: datetime.datetime) -> Path:
    """Return a new path, unique also among processes: time, pair and random digits."""
    task = file_name(pair_id.task_id)
    name = f"{begun:%Y-%m-%d_%H-%M-%S}-{task}-{pair_id.split}-{pair_id.pair_index}"
    return folder / f"{name}-{secrets.token_hex(4)}.jsonl"
